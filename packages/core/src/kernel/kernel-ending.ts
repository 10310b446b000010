// `KernelEnding`: how a turn of an agent ends, by a checkpoint, a return, an error or a hand-over.
//
// The agent asks for a checkpoint or ends in the middle of a slice. At the standstill after each slice,
// `settle` closes the turn once all that its end awaits is answered. Everything else that is open is
// withdrawn.
//
// A mistake in the agent's code is a fault, and not its end (K4).
//
//   K7. A checkpoint or an end closes the turn; what comes after is another kernel.
//   K13. After a return, unobserved tasks are awaited until a cancel; everything else is withdrawn.

import type { Asks } from "../asks/asks.ts";
import type { ChildAsks } from "../asks/child-asks.ts";
import { CancelledError } from "../errors/errors.ts";
import { recordError } from "../errors/recorded-error.ts";
import type { CancelNotice, CommandRecord } from "../journal/record.ts";
import type { JsonText } from "../json/json.ts";
import {
  checkpointNotAwaited,
  checkpointWithoutProgress,
  ENDED_ASTRAY,
  isMistake,
  mistakeOf,
} from "../replay/faults.ts";
import type { DurableFuture } from "../replay/future.ts";
import type { Draft } from "../replay/journal-cursor.ts";
import type { CheckpointRequest, Ending, KernelParts } from "../replay/turn.ts";
import type { RepeatGuard } from "./repeat-guard.ts";

type EndingParts = KernelParts & {
  readonly asks: Asks;
  readonly children: ChildAsks;
  readonly repeats: RepeatGuard;
};

export class KernelEnding {
  readonly #parts: EndingParts;

  constructor(parts: EndingParts) {
    this.#parts = parts;
  }

  /** Call the agent, and note its end when it comes. */
  startAgent(start: () => Promise<unknown>): void {
    const { turn, cursor } = this.#parts;
    const note = (ending: () => Ending, thrown?: unknown): void => {
      if (turn.closed || turn.ending !== undefined) return;
      if (cursor.slice === "none") turn.strayFault(ENDED_ASTRAY, undefined, thrown);
      else turn.ending = ending();
    };
    start().then(
      (output) => note(() => this.#returned(output)),
      (error: unknown) => note(() => this.#threw(error), error),
    );
  }

  #returned(output: unknown): Ending {
    try {
      return { type: "returned", output: this.#parts.turn.encodeForgiving(output, "the agent's output") };
    } catch (error) {
      return this.#threw(error);
    }
  }

  /**
   * Nothing of the segment is committed and the session parks, until the code is fixed. A session that is
   * being cancelled ends instead.
   */
  #threw(error: unknown): Ending {
    const { turn, faults, options } = this.#parts;
    if (turn.cancel === undefined && isMistake(error)) faults.remember(mistakeOf(error, options));
    return { type: "threw", error: recordError(error) };
  }

  /** K13. The task failed after the agent returned. If no code observed it, the session fails. */
  failsUnobserved({ observed }: DurableFuture<unknown>, error: Error): void {
    const { turn } = this.#parts;
    if (turn.ending?.type === "returned" && !observed)
      turn.ending = { type: "threw", error: recordError(error) };
  }

  /** Reject the waits of the agent, which was asked to end. */
  requestCancel(notice: CancelNotice): void {
    const { turn, open } = this.#parts;
    turn.cancel ??= notice;
    open.requestCancel(turn.ending !== undefined);
    for (const { task, sheltered, future } of open.values())
      if (task === undefined && sheltered !== true) this.#reject(future, notice.reason);
  }

  /** Separate a fork from its origin: waits on others reject, and open tasks run again or are cancelled. */
  leaveOrigin(seed: number, tasks: "rerun" | "cancel"): void {
    const { asks, children, open, cursor, segment } = this.#parts;
    asks.reseed(seed);
    children.relations.leaveOrigin(seed);
    children.ends.leaveOrigin();
    for (const { future } of open.ofOthers(tasks === "cancel"))
      this.#reject(future, "the session was forked");
    for (const task of open.restartTasks(cursor.now)) if (cursor.slice === "live") segment.addTask(task);
  }

  /** Apply what the agent did to its session in this slice. @throws UsageError */
  settle(): void {
    const { turn } = this.#parts;
    switch (turn.ending?.type) {
      case undefined:
        if (turn.checkpoint !== undefined) this.#settleCheckpoint(turn.checkpoint);
        return;
      case "returned":
        if (turn.checkpoint !== undefined) throw checkpointNotAwaited();
        return this.#settleReturn(turn.ending.output);
      case "threw":
        turn.checkpoint = undefined;
        this.#withdrawAll();
        this.#close({ type: "fail", payload: JSON.stringify(turn.ending.error) });
    }
  }

  #settleCheckpoint({ cancelTasks, line, state: { payload, base, version } }: CheckpointRequest): void {
    const { turn, open, cursor, tip, children, repeats, options } = this.#parts;
    const { awaited } = children.ends;
    if ((cancelTasks ? open.requestCount : open.taskCount) > 0) return;
    if (turn.isJustStarted && !options.state.hasChanged) throw checkpointWithoutProgress(line);
    // mutant: checkpoint-leaves-tasks
    this.#withdrawAll();
    turn.number++;
    this.#close({
      type: "checkpoint",
      at: cursor.now,
      turn: turn.number,
      entryCount: tip.count,
      ...(tip.leaf === undefined ? {} : { leaf: tip.leaf }),
      ...(base === undefined ? {} : { base }),
      ...(version === undefined ? {} : { schemaVersion: version }),
      ...(turn.cancel === undefined ? {} : { cancel: turn.cancel }),
      ...(awaited.length === 0 ? {} : { awaited }),
      ...(repeats.seen.length === 0 ? {} : { repeats: repeats.seen }),
      payload,
    });
  }

  /** K13. */
  #settleReturn(returned: JsonText | undefined): void {
    const { turn, open, children } = this.#parts;
    const rest = open.besideReturn(children.ends.isAwaited);
    this.#withdraw(rest.filter((future) => !children.ends.isOwnWait(future)));
    children.ends.awaitAll();
    if (open.size > 0) return;
    const handedOffTo = turn.cancel === undefined ? children.handOver() : undefined;
    const output = handedOffTo === undefined ? returned : JSON.stringify({ handedOffTo });
    if (handedOffTo !== undefined) turn.ending = { type: "returned", output, handedOffTo };
    this.#close({ type: "complete", payload: output });
  }

  #withdrawAll(): void {
    this.#withdraw([...this.#parts.open.values()].map(({ future }) => future));
  }

  /** Withdraw without settling the futures. Code that awaits them hangs with the closed segment. */
  #withdraw(futures: readonly DurableFuture<unknown>[]): void {
    if (futures.length === 0) return;
    const { cursor, turn } = this.#parts;
    cursor.append({ type: "withdraw", targets: futures.map(({ id }) => id) });
    for (const { id } of futures) turn.drop(id);
  }

  /** Append the last command of the turn. */
  #close(command: Draft<CommandRecord>): void {
    this.#parts.cursor.append(command);
    this.#parts.turn.closed = true;
  }

  #reject(future: DurableFuture<unknown>, reason: string | undefined): void {
    this.#parts.turn.drop(future.id);
    future.reject(new CancelledError(future.label, reason));
  }
}
