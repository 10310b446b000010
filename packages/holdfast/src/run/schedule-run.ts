// `holdfast schedule run`: fires schedules and runs what they start or signal, until it is stopped.
//
// The process can be killed at any moment. Each firing is stored with the schedule's next time, and the next
// process continues the sessions that this one was running. Several processes share the work; each time fires
// once.
//
// Firing is the runtime's. Here agents are found by the files they are recorded to come from.

import { clearInterval, setInterval } from "node:timers";
import {
  type AgentRef,
  type AgentStorage,
  type AgentTracer,
  HoldfastError,
  readInPlaceOf,
  type Schedule,
  type StorageReader,
  toHoldfastError,
  type TraceEvent,
} from "@holdfast/core";
import { compositeTracer, limitProcessMemory, type Agent, type Firing } from "@holdfast/runtime";
import { graceOf } from "@holdfast/terminal/frame/arguments";
import { STOP_EXIT, type Arguments, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import { StoppableWork, stopper } from "./typing/stopper.ts";
import { keepRuntime } from "./keep-runtime.ts";
import { loadAgent } from "./load-agent.ts";
import { withOwnStorage } from "@holdfast/place/own-database";
import { count, localTime, plainLine } from "@holdfast/terminal/frame/plain-text";
import { findDatabase, findTraces, type Database } from "@holdfast/place/project";
import { LATE_MS, scheduleJson } from "@holdfast/terminal/view/schedule-text";
import { wantedTracer } from "@holdfast/place/settings/wanted-tracer";

const MESSAGE_CHARS = 300;

/** @returns the exit code. */
export async function runSchedules(args: Arguments, io: Io): Promise<number> {
  limitProcessMemory();
  const database = findDatabase(args, io);
  const tracer = await wantedTracer(findTraces(args, io), io);
  const work = new StoppableWork(io, graceOf(args).graceMs);
  const stopped = Promise.withResolvers<StopSignal>();
  const after = "its sessions continue when it is started again";
  const release = io.onStop(stopper(io, after, (signal) => stopped.resolve(signal), work));
  const agents = new AgentFiles(io);
  // Waiting for a time holds nothing that would keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    const signal = await withOwnStorage(database, io, ({ storage }) =>
      keep({ storage, database, agents, tracer, io, stopped: stopped.promise, work }),
    );
    io.note(`stopped; schedules stay, and fire again with: ${io.call("schedule run")}`);
    return STOP_EXIT[signal];
  } finally {
    clearInterval(alive);
    release();
  }
}

interface Keeping {
  readonly storage: AgentStorage;
  readonly database: Database;
  readonly agents: AgentFiles;
  readonly tracer: AgentTracer | undefined;
  readonly io: Io;
  readonly stopped: Promise<StopSignal>;
  readonly work: StoppableWork;
}

async function keep({ storage, database, agents, tracer, io, stopped, work }: Keeping): Promise<StopSignal> {
  const schedules = await storage.reader.schedules();
  const known = await agents.ofSchedules(schedules, storage.reader);
  showSchedules(schedules, io);
  const watcher: AgentTracer = { trace: (event) => logEvent(event, io) };
  return keepRuntime({
    database,
    runtime: {
      storage,
      agents: known,
      tracer: tracer === undefined ? watcher : compositeTracer([watcher, tracer]),
      schedules: {
        findAgent: (ref) => agents.find(ref),
        onFired: (firing) => void logFiring(firing, storage.reader, io),
      },
    },
    until: stopped,
    work,
  });
}

/** Agents by the files they came from. Each file is loaded once; one that could not be is tried again. */
class AgentFiles {
  readonly #io: Io;
  readonly #loaded = new Map<string, Promise<Agent>>();

  constructor(io: Io) {
    this.#io = io;
  }

  /** @throws HoldfastError when its file is not known, or cannot be loaded. */
  find({ name, file }: AgentRef): Promise<Agent> {
    if (file === undefined) {
      return Promise.reject(
        new HoldfastError(
          "agent_invalid",
          `agent "${name}" was not started from a file, so it cannot run here`,
        ),
      );
    }
    const key = JSON.stringify([file, name]);
    const known = this.#loaded.get(key);
    if (known !== undefined) return known;
    const onSlow = (): void => this.#io.note(`${file} is still loading`);
    const loading = loadAgent(file, { cwd: this.#io.cwd, env: this.#io.env, name, onSlow }).then(
      ({ agent }) => agent,
    );
    this.#loaded.set(key, loading);
    loading.catch(() => this.#loaded.delete(key));
    return loading;
  }

  /** The agents that can be loaded, one for each name; problems with the others are reported. */
  async ofSchedules(schedules: readonly Schedule[], reader: StorageReader): Promise<readonly Agent[]> {
    const agents = new Map<string, Agent>();
    for (const { scheduleId, action } of schedules) {
      const ref = action.type === "start" ? action.agent : (await reader.session(action.sessionId))?.agent;
      if (ref === undefined || agents.has(ref.name)) continue;
      try {
        agents.set(ref.name, await this.find(ref));
      } catch (error) {
        const { message, at } = toHoldfastError(error);
        logWarning(
          `the agent of schedule ${scheduleId}: ${message}${at === undefined ? "" : ` (${at})`}`,
          this.#io,
        );
      }
    }
    return [...agents.values()];
  }
}

// ---- what is shown -----------------------------------------------------------------------------------------------

function showSchedules(schedules: readonly Schedule[], io: Io): void {
  if (io.isJson) return io.result({ type: "schedules", schedules: schedules.map(scheduleJson) }, "");
  const [next] = schedules;
  const what =
    next === undefined
      ? `no schedules yet: add one with ${io.call("schedule add")}, also while this command runs`
      : `${count(schedules.length, "schedule")}; ${next.isPaused === true ? "all are paused" : `the next is ${next.scheduleId} at ${localTime(next.nextAt)}`}`;
  io.note(`${what}. Ctrl-C stops`);
}

/** Never rejects. */
async function logFiring(
  { scheduleId, sessionId, type, dueAt, nextAt }: Firing,
  reader: StorageReader,
  io: Io,
): Promise<void> {
  const now = Date.now();
  if (io.isJson) return io.result({ type: "fired", scheduleId, sessionId, action: type, dueAt, nextAt }, "");
  const { paint, symbols } = io.notes;
  const late = now - dueAt < LATE_MS ? "" : ` (was due at ${localTime(dueAt)})`;
  const isOver = type === "signal" && (await wasOver(sessionId, dueAt, reader));
  const did = isOver
    ? `sent nothing: ${sessionId} has ended. Remove the schedule with \`${io.call(`schedule remove ${scheduleId}`)}\``
    : type === "start"
      ? `started ${sessionId}`
      : `signalled ${sessionId}`;
  io.note(
    `${symbols.begin} ${localTime(now)} ${paint.bold(scheduleId)} ${did}${late}${paint.dim(`, next at ${localTime(nextAt)}`)}`,
  );
}

/**
 * Whether a session or its successor had ended before the signal was due, or was deleted. Such a session took
 * no signal.
 */
async function wasOver(sessionId: string, dueAt: number, reader: StorageReader): Promise<boolean> {
  try {
    const session = await readInPlaceOf((id) => reader.session(id), sessionId);
    return session === undefined || (session.endedAt !== undefined && session.endedAt < dueAt);
  } catch {
    return false; // Storage is unavailable, which is reported elsewhere.
  }
}

function logEvent(event: TraceEvent, io: Io): void {
  const { sessionId } = event;
  const { paint, symbols } = io.notes;
  switch (event.type) {
    case "session_ended": {
      const { status, error } = event;
      if (io.isJson)
        return io.result({ type: "session_ended", sessionId, status, ...(error && { error }) }, "");
      const why = error === undefined ? "" : `: ${plainLine(error.message, MESSAGE_CHARS)}`;
      const mark = status === "completed" ? paint.green(symbols.done) : paint.red(symbols.failed);
      return io.note(`${mark} ${sessionId} ${status}${why}`);
    }
    case "waiting": {
      if (io.isJson || !event.waits.some(({ type }) => type === "input")) return;
      return io.note(`${symbols.ask} ${sessionId} asks something: ${io.call(`show ${sessionId}`)}`);
    }
    case "warned":
      return logWarning(`${sessionId}: ${event.message}`, io);
    default:
  }
}

function logWarning(message: string, io: Io): void {
  const text = plainLine(message, MESSAGE_CHARS);
  if (io.isJson) io.result({ type: "warning", message: text }, "");
  else io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${text}`));
}
