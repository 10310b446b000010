// `replaySession`: replays a recorded turn with the agent's code, without effects.
//
// It uses the real kernel, the recorded outcomes and the agent's function, but no storage and no claim. Tasks
// and closures would start only after a commit, so none starts here. The agent's commands are compared with
// the recorded ones, as when a session is resumed (K5).

import { setImmediate } from "node:timers";
import {
  type CommandRecord,
  type EventRecord,
  type HoldfastError,
  isCommand,
  type JournalRecord,
  type JsonText,
  Kernel,
  LIMITS,
  type OpenTask,
  refuseNewerSession,
  type Session,
  type StorageReader,
  type Wait,
} from "@holdfast/core";
import { callAgent } from "../agents/call-agent.ts";
import type { Agent } from "../agents/define.ts";
import { storedLife } from "../agents/kernel-start.ts";
import { neutral } from "../loop/neutral-context.ts";
import { sha256 } from "../node/node-ports.ts";

export interface ReplayOptions {
  readonly agent: Agent;
  readonly session: Session;
  /**
   * One turn: from its checkpoint's record, or the journal's beginning, to the next checkpoint or the
   * journal's end.
   */
  readonly records: readonly JournalRecord[];
  /** Payloads of the checkpoints that the first record's changes build on. */
  readonly states?: readonly JsonText[];
  /** Stop after the slice that contains this position. */
  readonly stopAt?: number;
  readonly acceptDrift?: boolean;
  readonly onStep: (step: ReplayStep) => void;
}

/** One delivered outcome, and the commands that followed it. */
export interface ReplayStep {
  readonly event: EventRecord;
  readonly commands: readonly CommandRecord[];
}

/** The state of the agent after the last step. */
export interface ReplayStand {
  readonly turn: number;
  /** The agent's current state; `undefined` when it has none. */
  readonly state: unknown;
  /** Position after the last replayed record. */
  readonly nextSeq: number;
  readonly tasks: readonly OpenTask[];
  readonly waits: readonly Wait[];
  /** The number of entries by then. */
  readonly entryCount: number;
  /** Whether the turn is over: its checkpoint or the session's end was reached. */
  readonly isOver: boolean;
  /** Positions whose recorded results were used for changed inputs. */
  readonly drift: readonly number[];
  /** The divergence of the code from the journal; the replay stops there. */
  readonly fault: HoldfastError | undefined;
}

/**
 * The session that did the turn. The first turns of a fork were done by its origin, or by the origin of that
 * one. Their id, seed and perhaps their input are others. If the origin was deleted, its fork takes its
 * place.
 *
 * @param records of one turn of `session`.
 */
export async function ownerOfTurn(
  reader: Pick<StorageReader, "session">,
  session: Session,
  records: readonly JournalRecord[],
): Promise<Session> {
  const end = (records.at(-1)?.seq ?? -1) + 1;
  let owner = session;
  while (owner.fork !== undefined && end <= owner.fork.at) {
    const origin = await reader.session(owner.fork.origins[0] ?? "");
    if (origin === undefined) return owner;
    owner = origin;
  }
  return owner;
}

/** @throws HoldfastError `version_unsupported` when a newer Holdfast began the session. */
export async function replaySession(options: ReplayOptions): Promise<ReplayStand> {
  const { agent, session, records, states = [], stopAt = Infinity, acceptDrift = false, onStep } = options;
  refuseNewerSession(session);
  const life = storedLife({ session, records, signals: [], states, holds: [] }, agent);
  const kinds = new Set(records.flatMap((record) => (record.type === "schedule_task" ? record.kind : [])));
  const kernel = new Kernel({
    ...life,
    sessionId: session.sessionId,
    hash: sha256,
    limits: LIMITS,
    // A recorded kind of task was known to some process, even if not to this one.
    describeTask: (kind) =>
      agent.tasks.find(({ name }) => name === kind) ?? (kinds.has(kind) ? {} : undefined),
    bindClosure: (_, closure) => closure, // No closure is called.
    taskKinds: () => agent.tasks.map(({ name }) => name),
    // No child is started: commands are only compared with recorded ones.
    describeAgent: () => undefined,
    agentNames: () => [],
    handlerOf: (request) => agent.handlers[request]?.name,
    remaining: () => undefined,
    development: true,
    acceptDrift,
    onStrayFault: () => {},
  });
  const start = (): Promise<unknown> => callAgent(kernel, agent, session);
  while (kernel.fault === undefined && kernel.cursor.replaying) {
    const event = kernel.nextRecorded();
    if (event === undefined || event.seq > stopAt) break;
    await slice(kernel, event, start);
    const commands = life.recorded
      .slice(event.seq + 1 - life.baseSeq, kernel.cursor.seq - life.baseSeq)
      .filter((record) => isCommand(record));
    onStep({ event, commands });
  }
  return {
    turn: life.turn,
    state: life.state.current,
    nextSeq: kernel.cursor.seq,
    tasks: kernel.open.tasks(),
    waits: kernel.open.waits(),
    entryCount: kernel.tip.count,
    isOver: kernel.turn.closed && kernel.fault === undefined,
    drift: kernel.cursor.takeDrift(),
    fault: kernel.fault,
  };
}

/**
 * One slice, as in `SliceLoop`: only ticks and microtasks run between two immediates that are queued together
 * (K2).
 */
function slice(kernel: Kernel, event: EventRecord, start: () => Promise<unknown>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const guarded = (step: () => void) => () => {
    try {
      step();
    } catch (error) {
      reject(error);
    }
  };
  setImmediate(
    guarded(() => {
      kernel.openSlice();
      kernel.deliver(event, () => neutral(start));
    }),
  );
  setImmediate(
    guarded(() => {
      kernel.closeSlice();
      resolve();
    }),
  );
  return promise;
}
