// `ChildEnds`: the ends of a session's children, as its agent and its own end wait for them.
//
//   - A child's end can be awaited any number of times in a turn; it is consumed once.
//   child-ends-2. The runtime redelivers a child's end that was received before, also before a checkpoint, to
//       a new wait for it. This file tells the runtime which child that may be.
//   K13. An agent that returned waits for the ends of the children that were asked for with that policy.

import { childEndName, senderChild } from "../journal/signal-names.ts";
import { DurableFuture } from "../replay/future.ts";
import type { KernelParts } from "../replay/turn.ts";
import { isLastEvent, type ChildEvent } from "../rules/consequences.ts";

export class ChildEnds {
  readonly #parts: KernelParts;
  readonly #awaited: Set<number>;
  /** The futures that the agent asked for. Most sessions have no children, so none of these maps. */
  #asked: Map<number, DurableFuture<unknown>> | undefined;
  /** Children whose end was received in this turn. */
  #ended: Set<number> | undefined;
  /** Children whose end the session's own end waits for, and the waits that its slices have added. */
  #ownChildren: Set<number> | undefined;
  #ownWaits: Set<DurableFuture<unknown>> | undefined;

  constructor(parts: KernelParts) {
    this.#parts = parts;
    this.#awaited = new Set(parts.options.relations.awaited);
  }

  /** Children whose end this session's end waits for, and which have not ended so far. */
  get awaited(): readonly number[] {
    return [...this.#awaited];
  }

  /** K13. The session's end is to wait for the end of this child. */
  await(child: number): void {
    this.#awaited.add(child);
  }

  /** After a fork, the children so far are another session's. */
  leaveOrigin(): void {
    this.#awaited.clear();
    this.#ownChildren = undefined;
    this.#ownWaits = undefined;
  }

  /** Take note of an event from a child. */
  received(name: string, event: unknown): void {
    const child = senderChild(name);
    if (child === undefined || !isLastEvent(event as ChildEvent)) return;
    (this.#ended ??= new Set()).add(child);
    if (name === childEndName(child)) this.#awaited.delete(child);
  }

  /** child-ends-2. The number of the child behind this name, if its end may be known already. */
  mayHaveEnded(name: string): number | undefined {
    const child = senderChild(name);
    if (child === undefined) return undefined;
    if (child >= this.#parts.options.baseId && this.#ended?.has(child) !== true) return undefined;
    return child;
  }

  /** K13. Wait for the ends of children with that policy, once the agent has returned. */
  awaitAll(): void {
    const { cursor, turn, open } = this.#parts;
    for (const child of this.#awaited) {
      if (this.#ownChildren?.has(child) === true) continue;
      const name = childEndName(child);
      const id = cursor.append({ type: "wait_signal", name, mode: "consume" });
      const future = new DurableFuture<unknown>(turn, "signal", id, `the end of child ${child}`);
      open.add({ future, name, sheltered: true });
      (this.#ownChildren ??= new Set()).add(child);
      (this.#ownWaits ??= new Set()).add(future);
    }
  }

  /** Whether the session is active only because its children are. */
  get isAwaited(): boolean {
    return this.#ownWaits !== undefined;
  }

  /** Whether the future is a wait of the session's own end. */
  isOwnWait(future: DurableFuture<unknown>): boolean {
    return this.#ownWaits?.has(future) === true;
  }

  /** The future that was asked for in this turn, unless it was rejected. */
  asked(child: number): DurableFuture<unknown> | undefined {
    const known = this.#asked?.get(child);
    return known !== undefined && (known.fulfilled || !known.settled) ? known : undefined;
  }

  /** Returns the future, which the agent has asked for. */
  keep(child: number, future: DurableFuture<unknown>): DurableFuture<unknown> {
    (this.#asked ??= new Map()).set(child, future);
    return future;
  }
}
