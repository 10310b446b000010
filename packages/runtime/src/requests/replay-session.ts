// A recorded turn, gone through again by the agent's code, without effects.
//
// The real kernel, the recorded outcomes, the agent's function; and nothing else: no storage, no claim, no task is started and no
// closure called, because what would start them comes after a commit, and here is none. What the agent asks is compared with what is
// recorded, as when a session is resumed (K5).

import {
  isCommand,
  Kernel,
  LIMITS,
  type CommandRecord,
  type EventRecord,
  type HoldfastError,
  type JournalRecord,
  type JsonText,
  type OpenTask,
  type Session,
  type StorageReader,
  type Wait,
} from "@holdfast/core";
import { refuseNewerSession } from "@holdfast/core/internal";
import { callAgent } from "../agents/call-agent.ts";
import type { Agent } from "../agents/define.ts";
import { storedLife } from "../agents/kernel-start.ts";
import { sha256 } from "../node/node-ports.ts";

export interface ReplayOptions {
  readonly agent: Agent;
  readonly session: Session;
  /** One turn: from its checkpoint's record (or the journal's beginning) to the next one's, or as far as it goes. */
  readonly records: readonly JournalRecord[];
  /** Payloads of the checkpoints that the first record's changes build on. */
  readonly states?: readonly JsonText[];
  /** Go no further than the slice that holds this position. */
  readonly stopAt?: number;
  readonly acceptDrift?: boolean;
  readonly onStep: (step: ReplayStep) => void;
}

/** One outcome handed to the agent, and what it asked for in answer. */
export interface ReplayStep {
  readonly event: EventRecord;
  readonly commands: readonly CommandRecord[];
}

/** Where the agent stands after the last step. */
export interface ReplayStand {
  readonly turn: number;
  /** The agent's, as far as it has got; `undefined` when it has none. */
  readonly state: unknown;
  /** Position behind the last record that was gone through. */
  readonly nextSeq: number;
  readonly tasks: readonly OpenTask[];
  readonly waits: readonly Wait[];
  /** Entries there were by then. */
  readonly entryCount: number;
  /** Whether the turn is over: its checkpoint or the session's end was reached. */
  readonly isOver: boolean;
  /** Positions whose recorded results stood for changed inputs. */
  readonly drift: readonly number[];
  /** Where the code does other than it did: nothing after that was gone through. */
  readonly fault: HoldfastError | undefined;
}

/**
 * Whose turn it was. What a fork begins with was done by its origin, or that one's: under another name, perhaps on another input, with
 * another chance. An origin that is not here any more is stood in for by its fork.
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
    // What was done once was known to somebody, if not to this process.
    describeTask: (kind) =>
      agent.tasks.find(({ name }) => name === kind) ?? (kinds.has(kind) ? {} : undefined),
    taskKinds: () => agent.tasks.map(({ name }) => name),
    // Nothing is asked for: what was recorded is only compared with.
    describeAgent: () => undefined,
    agentNames: () => [],
    handlerOf: (request) => agent.handlers[request]?.name,
    remaining: () => undefined,
    development: true,
    acceptDrift,
    onStrayFault: () => {},
  });
  const start = (): Promise<unknown> => callAgent(kernel, agent, session);
  while (kernel.fault === undefined && kernel.replaying) {
    const event = kernel.nextRecorded();
    if (event === undefined || event.seq > stopAt) break;
    await slice(kernel, event, start);
    const commands = life.recorded
      .slice(event.seq + 1 - life.baseSeq, kernel.nextSeq - life.baseSeq)
      .filter((record) => isCommand(record));
    onStep({ event, commands });
  }
  return {
    turn: life.turn,
    state: life.state.current,
    nextSeq: kernel.nextSeq,
    tasks: kernel.open.tasks(),
    waits: kernel.open.waits(),
    entryCount: kernel.entryCount,
    isOver: kernel.closed && kernel.fault === undefined,
    drift: kernel.takeDrift(),
    fault: kernel.fault,
  };
}

/** As the slice loop does it: two immediates queued together, so that between them only ticks and microtasks run (K2). */
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
      kernel.deliver(event, start);
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
