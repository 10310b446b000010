// `holdfast schedule add`, `remove`, `pause` and `unpause`. Every problem of a schedule is reported when it is added, to the
// person who adds it, and not when it fires.

import { ConflictError, HoldfastError, isEnded, type AgentStorage, type Schedule } from "@holdfast/core";
import {
  createRuntime,
  MemoryStorage,
  type Agent,
  type Runtime,
  type RuntimeOptions,
  type ScheduleRequest,
} from "@holdfast/runtime";
import { readCron } from "@holdfast/runtime/internal";
import { refuse } from "../frame/arguments.ts";
import { readLimits } from "../view/budget-text.ts";
import type { Arguments, Io } from "../frame/command.ts";
import { withReader, withSession, withStorage } from "../place/find-session.ts";
import { readInput, readJson } from "../frame/input.ts";
import { loadAgent } from "../run/load-agent.ts";
import { plainLine, zonedTime } from "../frame/plain-text.ts";
import { findDatabase, findStrictBounds, type Database } from "../place/project.ts";
import { scheduleJson, whatItDoes } from "../view/schedule-text.ts";

/** @param rest what follows `add`. @returns the exit code. */
export async function addSchedule(
  rest: readonly string[],
  args: Arguments,
  io: Io,
  usage: string,
): Promise<number> {
  const [cron, name, payload, extra] = rest;
  if (cron === undefined) throw refuse("the cron line is missing", usage);
  const file = args.text("run");
  const sessionId = args.text("signal");
  const tooMany = file === undefined ? extra : name;
  if (tooMany !== undefined) {
    throw refuse(`"${plainLine(tooMany, 80)}" is one argument too many`, usage, {
      fix: `put the cron line in quotes: schedule add "0 3 * * *"`,
    });
  }
  const id = args.text("id");
  const timing = {
    ...(id === undefined ? {} : { id }),
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
export async function removeSchedule(scheduleId: string, args: Arguments, io: Io): Promise<number> {
  const database = findDatabase(args, io);
  const known = await findSchedule(database, scheduleId);
  const wasRemoved =
    known !== undefined &&
    (await withStorage(database, ({ storage }) =>
      withRuntime({ storage }, (runtime) => runtime.unschedule(scheduleId)),
    ));
  if (!wasRemoved) throw noSchedule(scheduleId, database, io);
  io.result({ scheduleId, status: "removed" }, "");
  io.note(`schedule ${scheduleId} is removed; sessions that it started stay`);
  return 0;
}

/** @returns the exit code. */
export async function pauseSchedule(
  scheduleId: string,
  isPaused: boolean,
  args: Arguments,
  io: Io,
): Promise<number> {
  const database = findDatabase(args, io);
  const known = await findSchedule(database, scheduleId);
  if (known === undefined) throw noSchedule(scheduleId, database, io);
  const now = Date.now();
  const nextAt = isPaused ? known.nextAt : readCron(known.cron, known.timeZone).after(now);
  const schedule =
    (known.isPaused ?? false) === isPaused
      ? known
      : await withStorage(database, async ({ storage }) => {
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

/** It is looked for first, so that a wrong id makes no database. */
function findSchedule(database: Database, scheduleId: string): Promise<Schedule | undefined> {
  return withReader(database, async (reader) =>
    ((await reader?.schedules()) ?? []).find((schedule) => schedule.scheduleId === scheduleId),
  );
}

function noSchedule(scheduleId: string, database: Database, io: Io): HoldfastError {
  return new HoldfastError("schedule_not_found", `there is no schedule ${plainLine(scheduleId, 120)}`, {
    at: database.path,
    fix: `run \`${io.call("schedule list")}\` to see all schedules`,
  });
}

type Timing = Pick<ScheduleRequest, "id" | "cron" | "timeZone">;

async function addStart(path: string, timing: Timing, args: Arguments, io: Io): Promise<number> {
  const given = args.text("input");
  const input = given === undefined ? undefined : await readInput(given, io);
  const { agent, file } = await loadAgent(path, {
    cwd: io.cwd,
    env: io.env,
    onSlow: () => io.note(`${path} is still loading`),
  });
  const { budget, timeoutMs: ttlMs } = readLimits(args);
  const limits = ttlMs === undefined ? budget : { ...budget, ttlMs };
  const within = limits === undefined ? {} : { budget: limits };
  const request: ScheduleRequest = { ...timing, start: { agent, input, file, ...within } };
  await refuseWrong(request, findStrictBounds(args, io).value);
  return withStorage(findDatabase(args, io), async ({ storage }) => {
    refuseOtherFile(await storage.reader.schedules(), { agent, file, id: timing.id });
    return reportPut(await put(storage, request), io);
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
  return withSession(findDatabase(args, io), signal.sessionId, async ({ sessionId, status }, { storage }) => {
    if (isEnded(status)) {
      throw new ConflictError(
        "session_ended",
        `session ${sessionId} has ended (${status}): it takes no more signals`,
        { fix: "name another session" },
      );
    }
    return reportPut(await put(storage, requestFor(sessionId)), io);
  });
}

/** On a storage that is thrown away, so that what is wrong leaves no database behind. */
async function refuseWrong(request: ScheduleRequest, strictBounds = false): Promise<void> {
  const storage = new MemoryStorage();
  await withRuntime({ storage, strictBounds }, (runtime) => runtime.schedule(request));
}

function put(storage: AgentStorage, request: ScheduleRequest): Promise<Schedule> {
  return withRuntime({ storage }, (runtime) => runtime.schedule(request));
}

async function withRuntime<T>(
  options: Pick<RuntimeOptions, "storage" | "strictBounds">,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const runtime = createRuntime({ ...options, adopt: false, development: false });
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
  }
}

/** `schedule run` knows agents by their names, as every process does: two files of one name would be taken for each other. */
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

function reportPut(schedule: Schedule, io: Io): number {
  const { scheduleId, timeZone, nextAt } = schedule;
  io.result(scheduleJson(schedule), scheduleId);
  const next =
    schedule.isPaused === true
      ? `paused: \`${io.call(`schedule unpause ${scheduleId}`)}\` ends that`
      : `next at ${zonedTime(nextAt, timeZone)}`;
  io.note(`${whatItDoes(schedule)}, ${next}`);
  io.note(io.notes.paint.dim(`it fires while this runs: ${io.call("schedule run")}`));
  return 0;
}
