// `holdfast schedule add`, `remove`, `pause` and `unpause`. Every problem of a schedule is reported when it
// is added, to the person who adds it, and not when it fires.
//
// A schedule that starts an agent is stored where `holdfast run` would start the agent. That is the local
// stack when the stack has loaded the agent, and else the project's database. A schedule stores a start that
// a runtime makes later, so it shares the plan with `run` and starts nothing here.

import {
  ConflictError,
  defined,
  HoldfastError,
  isEnded,
  isMeantBy,
  shortIds,
  type AgentStorage,
  type Schedule,
} from "@holdfast/core";
import {
  type Agent,
  createRuntime,
  MemoryStorage,
  readCron,
  type Runtime,
  type ScheduleRequest,
} from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { CommandError } from "@holdfast/terminal/frame/command-error";
import { noteStack, withReader, withSession, withStorage } from "@holdfast/place/find-session";
import { readJson } from "@holdfast/terminal/frame/input";
import { plainLine, zonedTime } from "@holdfast/terminal/frame/plain-text";
import { findDatabase, placesOf, type Database } from "@holdfast/place/project";
import { loadStarted, readCall } from "../run/starting/prepare-start.ts";
import { planStart } from "../run/starting/start-plan.ts";
import { scheduleJson, whatItDoes } from "@holdfast/terminal/view/schedule-text";

/** @returns the exit code. */
export async function addSchedule(args: Arguments, io: Io): Promise<number> {
  const { usage } = args;
  const [cron = "", name, payload] = args.positionals;
  const file = args.text("run");
  const sessionId = args.text("signal");
  if (file !== undefined && name !== undefined) {
    throw refuse(`"${plainLine(name, 80)}" is one argument too many`, usage, {
      fix: `put the cron line in quotes: schedule add "0 3 * * *"`,
    });
  }
  const id = args.text("id");
  const timing = {
    ...defined({ id }),
    cron,
    timeZone: args.text("tz") ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  readCron(timing.cron, timing.timeZone); // The cron line was typed first, so it is checked first.
  if (file !== undefined) return addStart(file, timing, args, io);
  if (sessionId === undefined) throw refuse("--run FILE or --signal ID is missing", usage);
  if (name === undefined) throw refuse("the signal's name is missing", usage);
  return addSignal({ sessionId, name, payload }, timing, args, io);
}

/** @returns the exit code. */
export async function removeSchedule(asked: string, args: Arguments, io: Io): Promise<number> {
  const database = findDatabase(args, io);
  const place = await findSchedule(asked, database);
  const { scheduleId = asked } = place?.schedule ?? {};
  const wasRemoved =
    place !== undefined &&
    (await withStorage(place.database, ({ storage }) =>
      withRuntime(storage, (runtime) => runtime.unschedule(scheduleId)),
    ));
  if (!wasRemoved) throw noSchedule(asked, database, io);
  io.result({ scheduleId, status: "removed" }, "");
  io.note(`schedule ${scheduleId} is removed; sessions that it started stay`);
  return 0;
}

/** @returns the exit code. */
export async function pauseSchedule(
  asked: string,
  isPaused: boolean,
  args: Arguments,
  io: Io,
): Promise<number> {
  const database = findDatabase(args, io);
  const place = await findSchedule(asked, database);
  if (place === undefined) throw noSchedule(asked, database, io);
  const { schedule: known } = place;
  const { scheduleId } = known;
  const now = Date.now();
  const nextAt = isPaused ? known.nextAt : readCron(known.cron, known.timeZone).after(now);
  const schedule =
    (known.isPaused ?? false) === isPaused
      ? known
      : await withStorage(place.database, async ({ storage }) => {
          const changed = { ...known, nextAt, isPaused };
          const [result] = await storage.commit([{ type: "put_schedule", schedule: changed }], now);
          return result?.status === "done" ? (result.schedule ?? changed) : changed;
        });
  io.result(scheduleJson(schedule), "");
  io.note(
    isPaused
      ? `schedule ${scheduleId} is paused; \`${io.call(`schedule unpause ${scheduleId}`)}\` ends the pause`
      : `schedule ${scheduleId} is not paused, next at ${zonedTime(schedule.nextAt, schedule.timeZone)}`,
  );
  return 0;
}

interface FoundSchedule {
  readonly schedule: Schedule;
  readonly database: Database;
}

/**
 * It is looked for before a storage is opened, so that a wrong id makes no database. The project's, where the
 * local stack has one of the same id. Otherwise the only one that this beginning of an id means.
 *
 * @throws CommandError `ambiguous` when there are several.
 */
async function findSchedule(asked: string, database: Database): Promise<FoundSchedule | undefined> {
  const meant: FoundSchedule[] = [];
  for (const place of placesOf(database)) {
    const schedules = await withReader(place, async (reader) => (await reader?.schedules()) ?? []);
    const found = schedules.map((schedule) => ({ schedule, database: place }));
    const exact = found.find(({ schedule }) => schedule.scheduleId === asked);
    if (exact !== undefined) return exact;
    meant.push(...found.filter(({ schedule }) => isMeantBy(schedule.scheduleId, asked)));
  }
  if (meant.length < 2) return meant[0];
  const ids = shortIds(meant.map(({ schedule }) => schedule.scheduleId));
  throw new CommandError("ambiguous", `several schedules are meant by ${plainLine(asked, 120)}`, {
    got: meant.map(({ schedule }) => `${ids.get(schedule.scheduleId)}: ${whatItDoes(schedule)}`).join("\n"),
    fix: "give more characters of the id",
  });
}

function noSchedule(scheduleId: string, database: Database, io: Io): HoldfastError {
  return new HoldfastError("schedule_not_found", `there is no schedule ${plainLine(scheduleId, 120)}`, {
    at: database.path,
    fix: `run \`${io.call("schedule list")}\` to see all schedules`,
  });
}

type Timing = Pick<ScheduleRequest, "id" | "cron" | "timeZone">;

async function addStart(path: string, timing: Timing, args: Arguments, io: Io): Promise<number> {
  const call = await readCall(args, { command: "schedule" }, io);
  const loaded = await loadStarted(path, args, call, io);
  const { agent } = loaded;
  const database = findDatabase(args, io);
  const plan = planStart(args, { ...call, loaded, found: null, database });
  const { file = "", input, options } = plan.start;
  const { budget, environment, timeoutMs: ttlMs } = options;
  const limits = ttlMs === undefined ? budget : { ...budget, ttlMs };
  const more = defined({ budget: limits, environment });
  const request: ScheduleRequest = { ...timing, start: { agent, input, file, ...more } };
  await refuseWrong(request);
  const place = plan.place.type === "runners" ? plan.place.database : database;
  if (place !== database) noteStack(place, io);
  if (plan.missedByStack !== undefined)
    io.note(io.notes.paint.dim(`${plan.missedByStack}: the schedule is the project's`));
  return withStorage(place, async ({ storage }) => {
    refuseOtherFile(await storage.reader.schedules(), { agent, file, id: timing.id });
    return reportPut(await put(storage, request), place, io);
  });
}

async function addSignal(
  signal: { readonly sessionId: string; readonly name: string; readonly payload: string | undefined },
  timing: Timing,
  args: Arguments,
  io: Io,
): Promise<number> {
  const { name } = signal;
  const payload =
    signal.payload === undefined
      ? undefined
      : readJson(signal.payload, "the payload", `payload of signal "${name}"`);
  const requestFor = (sessionId: string): ScheduleRequest => ({
    ...timing,
    signal: { sessionId, name, payload },
  });
  await refuseWrong(requestFor(signal.sessionId));
  const database = findDatabase(args, io);
  return withSession(database, signal.sessionId, async ({ sessionId, status }, { role, storage }) => {
    if (isEnded(status)) {
      throw new ConflictError(
        "session_ended",
        `session ${sessionId} has ended (${status}): it takes no more signals`,
        { fix: "name another session" },
      );
    }
    const place = role === "remote" ? (database.stack ?? database) : database;
    return reportPut(await put(storage, requestFor(sessionId)), place, io);
  });
}

/** On a storage that is thrown away, so that what is wrong leaves no database behind. */
async function refuseWrong(request: ScheduleRequest): Promise<void> {
  await put(new MemoryStorage(), request);
}

function put(storage: AgentStorage, request: ScheduleRequest): Promise<Schedule> {
  return withRuntime(storage, (runtime) => runtime.schedule(request));
}

async function withRuntime<T>(storage: AgentStorage, work: (runtime: Runtime) => Promise<T>): Promise<T> {
  const runtime = createRuntime({ storage, adopt: false, development: false });
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
  }
}

/**
 * `schedule run` knows agents by their names, as every process does: two files of one name would be taken for
 * each other.
 */
export function refuseOtherFile(
  schedules: readonly Schedule[],
  {
    agent,
    file,
    id,
  }: { readonly agent: Pick<Agent, "name">; readonly file: string; readonly id: string | undefined },
): void {
  for (const { scheduleId, action } of schedules) {
    if (scheduleId === id || action.type !== "start" || action.agent.name !== agent.name) continue;
    if (action.agent.file === undefined || action.agent.file === file) continue;
    throw new ConflictError(
      "usage",
      `schedule ${scheduleId} has an agent of the same name from another file`,
      {
        got: `agent "${agent.name}" of ${file}`,
        expected: `the one of ${action.agent.file}, or an agent with another name`,
        fix: "give one of them another name with defineAgent({ name }), or remove the other schedule",
      },
    );
  }
}

function reportPut(schedule: Schedule, { coordinator }: Pick<Database, "coordinator">, io: Io): number {
  const { scheduleId, timeZone, nextAt } = schedule;
  io.result(scheduleJson(schedule), scheduleId);
  const next =
    schedule.isPaused === true
      ? `paused: \`${io.call(`schedule unpause ${scheduleId}`)}\` ends that`
      : `next at ${zonedTime(nextAt, timeZone)}`;
  io.note(`${whatItDoes(schedule)}, ${next}`);
  io.note(
    io.notes.paint.dim(
      coordinator === undefined
        ? `it fires while this runs: ${io.call("schedule run")}`
        : `it fires while the coordinator runs: ${coordinator.url}`,
    ),
  );
  return 0;
}
