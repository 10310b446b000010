// `Turn`: the state of one turn of an agent, which says what the agent may still ask for.
//
// A turn is *open* until its agent asks for a checkpoint or ends. The agent is then *leaving*: it may ask for
// nothing more. The turn is *closed* once its checkpoint or its end is in the segment, or its kernel has a
// fault.
//
//   K2. An ask outside a slice is a fault.
//   K4. Every refusal is remembered before it is thrown.
//   K7. A checkpoint or an end closes the turn, and its futures cannot be used after it.
//
// This file does not know how a turn ends: `kernel-ending.ts` decides that.

import { callerLine } from "../errors/author-line.ts";
import type { HoldfastError } from "../errors/errors.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import type { CancelNotice, CommandRecord } from "../journal/record.ts";
import { encodeWithin, type JsonText } from "../json/json.ts";
import type { SealedState, SessionState } from "../state/session-state.ts";
import type { ConversationTip } from "./conversation-tip.ts";
import type { FaultMemory } from "./fault-memory.ts";
import { askedTooLate, strayFault } from "./faults.ts";
import type { DurableFuture, FutureOwner } from "./future.ts";
import type { Draft, JournalCursor } from "./journal-cursor.ts";
import type { KernelOptions } from "./kernel-options.ts";
import type { OpenItems } from "./open-items.ts";
import type { PendingSignals } from "./pending-signals.ts";
import type { Segment } from "./segment.ts";

export type Ending =
  | {
      readonly type: "returned";
      readonly output: JsonText | undefined;
      /** The successor of the session. */
      readonly handedOffTo?: string;
    }
  | { readonly type: "threw"; readonly error: RecordedError };

/** The condition of the agent after a slice, when none of its code runs. */
export type Standstill =
  | { readonly type: "open" }
  /** The agent awaits nothing that is durable and has not ended. */
  | { readonly type: "nothing" }
  | { readonly type: "faulted"; readonly fault: HoldfastError }
  | { readonly type: "checkpointed"; readonly state: SessionState; readonly turn: number }
  | { readonly type: "ended"; readonly ending: Ending };

/** The checkpoint that an agent has asked for, until its segment is closed. */
export interface CheckpointRequest {
  readonly state: SealedState;
  readonly cancelTasks: boolean;
  /** The agent's line, for the error when the turn made no progress. */
  readonly line: string | undefined;
}

/** The parts of a kernel that a turn uses. */
interface TurnParts {
  readonly options: KernelOptions;
  readonly faults: FaultMemory;
  readonly segment: Segment;
  readonly cursor: JournalCursor;
  readonly open: OpenItems;
}

/** The parts of a kernel that the asks of its agent use. */
export interface KernelParts extends TurnParts {
  readonly tip: ConversationTip;
  readonly pending: PendingSignals;
  readonly turn: Turn;
}

export class Turn implements FutureOwner {
  /** The number of checkpoints before; after a checkpoint, that of the next turn. */
  number: number;
  closed = false;
  checkpoint: CheckpointRequest | undefined;
  ending: Ending | undefined;
  /** The first request to cancel of which the agent was notified. */
  cancel: CancelNotice | undefined;
  /** Whether signals were taken without waiting. This is progress without a delivery. */
  tookSignals = false;
  readonly #parts: TurnParts;

  constructor(parts: TurnParts) {
    this.#parts = parts;
    this.number = parts.options.turn;
    this.cancel = parts.options.cancel;
  }

  /** Whether the agent asked for a checkpoint or has ended. It may then ask for nothing more. */
  get isLeaving(): boolean {
    return this.closed || this.checkpoint !== undefined || this.ending !== undefined;
  }

  /** Whether nothing has come of the turn but the start of the agent, after an earlier checkpoint. */
  get isJustStarted(): boolean {
    const { cursor, options } = this.#parts;
    return cursor.deliveries === 1 && options.turn > 0 && !this.tookSignals;
  }

  /** K2, K4. Refuse asks outside a slice, and after a fault, a checkpoint or the end. @throws HoldfastError */
  guard(): void {
    const { faults, cursor } = this.#parts;
    if (faults.first !== undefined) throw faults.first;
    // mutant: stray-ask-allowed
    if (cursor.slice === "none")
      throw this.strayFault("the agent asked for something after awaiting what is not durable", callerLine());
    if (!this.isLeaving) return;
    const after = this.checkpoint === undefined ? "the end" : "ctx.checkpoint()";
    throw faults.fail(askedTooLate(after, callerLine()));
  }

  /** Claim a number and a place for a command of the agent. @throws HoldfastError */
  ask(draft: Draft<CommandRecord>): number {
    this.guard();
    return this.#parts.cursor.append(draft, callerLine);
  }

  /** The text to record. @throws UsageError or LimitError, which is remembered. */
  encode(value: unknown, what: string): JsonText | undefined {
    try {
      return this.encodeForgiving(value, what);
    } catch (error) {
      throw this.#parts.faults.failWith(error);
    }
  }

  /** The same, but the error is not remembered. */
  encodeForgiving(value: unknown, what: string): JsonText | undefined {
    const { cursor, options } = this.#parts;
    // Records replay under any limit (K5).
    return encodeWithin(value, what, cursor.slice === "live" ? options.limits.payloadChars : Infinity);
  }

  /** Withdraw open futures. A leaving agent needs no command, because everything is withdrawn. */
  withdraw(targets: readonly DurableFuture<unknown>[]): void {
    if (this.isLeaving) return;
    const open = targets.flatMap((future) => {
      const waitedFor = future.heldBy ?? future; // The question that holds its outcome back.
      return this.#parts.open.get(waitedFor.id)?.future === waitedFor ? { future, id: waitedFor.id } : [];
    });
    if (open.length === 0) return;
    this.ask({ type: "withdraw", targets: open.map(({ id }) => id) });
    for (const { future, id } of open) {
      this.drop(id);
      future.rejectWithdrawn();
    }
  }

  /** Take an open item out without an answer. Its task starts no more, or is aborted. */
  drop(id: number): void {
    const task = this.#parts.open.remove(id)?.task;
    if (task !== undefined) this.#parts.segment.withdrawTask(task);
  }

  fail<E extends HoldfastError>(fault: E): E {
    return this.#parts.faults.fail(fault);
  }

  /** K2. The agent did something outside a slice, where no caller would see the fault. */
  strayFault(what: string, line: string | undefined, why?: unknown): HoldfastError {
    const { faults, options } = this.#parts;
    const isFirst = faults.first === undefined && !this.closed;
    const fault = strayFault(`${what} (session ${options.sessionId})`, line, options, why);
    if (isFirst) {
      faults.remember(fault);
      options.onStrayFault();
    }
    return fault;
  }
}
