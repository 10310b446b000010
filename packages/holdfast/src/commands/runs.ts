import { refuse, takeNothing } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command } from "@holdfast/terminal/frame/command";
import { listRuns, showRun } from "../sessions/run-list.ts";

const STATUSES = ["queued", "claimed", "ended"];

export const runs: Command = {
  name: "runs",
  usage:
    "runs [RUN [--wait]] [--status queued|claimed|ended] [--session ID] [--agent NAME] [--runner RUNNER] [--owner USER] [--limit N]",
  description:
    "A run is one piece of work that advances a session: queued until a runner claims it, and ended when the session has ended or the " +
    "runner has released it. Queued runs show why no runner has claimed them; claimed runs show the runner and when its lease expires. " +
    "A crashed runner keeps its claim until then. Ended runs are listed with --status ended: the newest 50 of each session, each with " +
    "the status its session had when the run ended. With the id of a RUN, the command shows that run and how it ended; --wait waits " +
    "for its end. Other runs of the session are never shown in its place. Which coordinator: --url, HOLDFAST_URL, or " +
    "http://127.0.0.1:8765; users see the runs of their own sessions. " +
    "Exit codes: 2 an option is wrong, 4 there is no such run, 5 the token is not valid, 7 the coordinator cannot be reached.",
  options: {
    status: { help: "only runs that are queued, claimed or ended", value: "STATUS" },
    session: { help: "only runs of this session", value: "ID" },
    agent: { help: "only runs of this agent", value: "NAME" },
    runner: { help: "only runs that the runner of this name or id has claimed", value: "RUNNER" },
    owner: { help: "only runs of this user's sessions", value: "USER" },
    wait: { help: "wait until the run has ended" },
    limit: { help: "how many runs (default: 100)", value: "N" },
  },
  examples: [
    ["runs", "all queued and claimed runs"],
    ["runs --status queued", "runs that no runner has claimed, and why"],
    ["runs --runner box-1", "runs of this runner"],
    ["runs --status ended --session desk", "ended runs of a session, newest first"],
    ["runs run_desk.7 --wait", "how that run ends"],
    ["runs --json --limit 1000", "one JSON list, for programs"],
  ],

  async run(args, io) {
    const [runId, ...more] = args.positionals;
    takeNothing(more, runs.usage);
    if (runId !== undefined) return showRun(runId, args, io);
    if (args.has("wait"))
      throw refuse("--wait waits for one run", runs.usage, { expected: "the id of a run" });
    const status = args.text("status");
    if (status !== undefined && !STATUSES.includes(status))
      throw refuse(`"${status}" is no status of a run`, runs.usage, { expected: STATUSES.join(", ") });
    return listRuns(readLimit(args), args, io);
  },
};

function readLimit(args: Arguments): number {
  const text = args.text("limit") ?? "100";
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit > 0 && limit <= 1_000_000) return limit;
  throw refuse("--limit is not a number of runs", runs.usage, {
    got: text,
    expected: "a whole number from 1 to 1000000",
  });
}
