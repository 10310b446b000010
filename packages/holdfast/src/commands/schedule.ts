import {
  GRACE_OPTION,
  TRACE_OPTION,
  type Argument,
  type Arguments,
  type Command,
  type Io,
  ENV_OPTION,
  ENV_REF_OPTION,
} from "@holdfast/terminal/frame/command";
import { findDatabase, placesOf } from "@holdfast/place/project";
import { placeLine, withReader } from "@holdfast/place/find-session";
import { scheduleJson, scheduleTable } from "@holdfast/terminal/view/schedule-text";

const SCHEDULE: Argument = { name: "ID", is: "the schedule's id" };

export const schedule: Command = {
  name: "schedule",
  actions: {
    add: {
      does: "start sessions, or send a signal, at these times",
      takes: [
        {
          name: "CRON",
          is: "the cron line",
          ifMore: `put the cron line in quotes: schedule add "0 3 * * *"`,
        },
        { name: "NAME", is: "the signal's name", optional: true },
        { name: "JSON", is: "the payload", optional: true },
      ],
      options: ["run", "input", "budget", "ttl", "strict-bounds", "env", "env-ref", "signal", "tz", "id"],
    },
    list: { does: "all schedules, the next to fire first" },
    pause: { does: "let it not fire", takes: [SCHEDULE] },
    unpause: { does: "let it fire again", takes: [SCHEDULE] },
    remove: { does: "forget a schedule; sessions that it started stay", takes: [SCHEDULE] },
    run: { does: "fire schedules, and run their agents, until Ctrl-C", options: ["grace", "trace"] },
  },
  description:
    "CRON has five or six fields, in quotes: [second] minute hour day month weekday. The clock is that of ZONE, or of this machine: " +
    "a time that the clock skips is the first moment after the gap; a time that the clock shows twice is the first of the two, or both if CRON takes every hour. " +
    "Schedules fire while a `holdfast schedule run` is running: each time once, however many of them run. Times that pass while none " +
    "is running fire once, as soon as one runs. A paused schedule does not fire, and adding it again keeps it paused; times that pass " +
    "during its pause do not fire. `schedule run` runs the sessions that it starts or signals, continues other " +
    "unfinished sessions of the same agents, and can be stopped or killed at any moment. Exit codes: 2 a line, zone or option is wrong, 3 the agent's file is wrong, 4 no such " +
    "schedule or session, 6 the session has ended, 10 storage, 130 stopped by Ctrl-C.",
  options: {
    run: {
      help: "start a session of the agent that this file exports",
      value: "FILE",
      excludes: ["signal"],
      required: true,
    },
    input: {
      help: "its input: JSON, @file, or - for standard input",
      value: "JSON|@file|-",
      excludes: ["signal"],
    },
    budget: {
      help: "what each session it starts may spend, in units of usd, tokens, steps, turns",
      value: "LIMITS",
      excludes: ["signal"],
    },
    ttl: {
      help: "cancel each session it starts after this time, such as 10m",
      value: "TIME",
      excludes: ["signal"],
    },
    "strict-bounds": {
      help: "refuse an agent in the turn form unless --budget or --ttl bounds its sessions",
      excludes: ["signal"],
    },
    env: { ...ENV_OPTION, excludes: ["signal"] },
    "env-ref": { ...ENV_REF_OPTION, excludes: ["signal"] },
    signal: {
      help: "send a signal to this session; its name and payload follow CRON",
      value: "ID",
      required: true,
    },
    tz: {
      help: "IANA name of the time zone, such as Europe/Berlin (default: this machine's)",
      value: "ZONE",
    },
    id: { help: "an id of your own; adding it again replaces the schedule", value: "ID" },
    grace: GRACE_OPTION,
    trace: TRACE_OPTION,
  },
  examples: [
    [
      `schedule add "0 3 * * *" --run nightly.ts --tz Europe/Berlin --id nightly`,
      "every night at three in Berlin",
    ],
    [`schedule add "*/5 * * * *" --signal desk tick '{"n": 1}'`, "signal a session every five minutes"],
    ["schedule run", "fire them, and run their agents, until Ctrl-C"],
    ["schedule list --json", "all schedules, the next to fire first"],
    ["schedule pause nightly", "it does not fire until `schedule unpause nightly`"],
    ["schedule remove nightly", "sessions that it started stay"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    switch (action) {
      case "add":
        return (await changes()).addSchedule(args, io);
      case "list":
        return list(args, io);
      case "remove":
        return (await changes()).removeSchedule(rest[0]!, args, io);
      case "pause":
      case "unpause":
        return (await changes()).pauseSchedule(rest[0]!, action === "pause", args, io);
      default:
        return (await import("../run/schedule-run.ts")).runSchedules(args, io);
    }
  },
};

const changes = () => import("../sessions/schedule-changes.ts");

async function list(args: Arguments, io: Io): Promise<number> {
  const places = placesOf(findDatabase(args, io));
  const isSeveral = places.length > 1;
  const found = await Promise.all(
    places.map(async (place) => {
      const schedules = await withReader(place, async (reader) => (await reader?.schedules()) ?? []);
      const json = schedules.map((one) => ({
        ...scheduleJson(one),
        ...(isSeveral ? { place: place.path } : {}),
      }));
      return { place, schedules, json };
    }),
  );
  if (io.isJson)
    io.show(
      found.flatMap(({ json }) => json),
      "",
    );
  else
    for (const { place, schedules } of found) {
      if (schedules.length > 0 && isSeveral) io.note(placeLine(place));
      io.show([], schedules.length === 0 ? "" : scheduleTable(schedules, Date.now()));
    }
  if (found.every(({ schedules }) => schedules.length === 0))
    io.note(`no schedules in ${places.map(({ path }) => path).join(" and ")}`);
  return 0;
}
