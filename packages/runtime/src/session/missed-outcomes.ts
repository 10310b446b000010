// `MissedOutcomes`: redelivers outcomes of other sessions that this one has missed, or can no longer receive.
//
// A child signals its end once (S4), and a checkpoint does not keep received outcomes. Therefore the row of a
// child is read when the session waits for a child of an earlier life. It is also read if the session has
// received the child's end before. The row of the parent is read when a new process finds a wait for its
// reply. The result is sent to the session as a signal with an id made from the wait. After a crash that
// signal is found again, so it is sent once (child-ends-2, consequences-4).
//
// The row is read after the wait is stored, and a signal is sent only if the other session has ended. A
// session that ends later sends its own signal in the transaction of its end, so none is missed in between.

import {
  absentEnd,
  endEvent,
  type HoldfastError,
  isChildOf,
  isEnded,
  positionId,
  readInPlaceOf,
  refuseRequest,
  repliedRequest,
  type SendSignal,
  type Wait,
} from "@holdfast/core";
import type { DriverWorld } from "./driver-environment.ts";
import type { DrivenSession } from "./driven-session.ts";
import type { Inbox } from "./inbox.ts";
import { alarm } from "../loop/timers.ts";

const RETRY_MS = 500;

export class MissedOutcomes {
  readonly #world: Pick<DriverWorld, "arrivals" | "clock" | "find" | "submit" | "timers">;
  readonly #driven: DrivenSession;
  readonly #inbox: Inbox;
  readonly #looked = new Set<number>();

  constructor(world: DriverWorld, driven: DrivenSession, inbox: Inbox) {
    this.#world = world;
    this.#driven = driven;
    this.#inbox = inbox;
  }

  /**
   * The session is blocked on these stored waits.
   *
   * @param recovered whether another process may have stored them.
   */
  blocked(waits: readonly Wait[], recovered: boolean): void {
    for (const wait of waits) {
      if (wait.type !== "signal" || this.#looked.has(wait.id)) continue;
      const answer = this.#answerTo(wait.name, wait.id, recovered);
      if (answer === undefined) continue;
      this.#looked.add(wait.id);
      answer.catch(() => this.#lookLater(wait, recovered));
    }
  }

  #lookLater(wait: Wait, recovered: boolean): void {
    this.#looked.delete(wait.id);
    const again = alarm(() => this.#isOpen(wait.id) && this.blocked([wait], recovered));
    if (this.#isOpen(wait.id)) this.#world.timers.after(again, RETRY_MS);
  }

  #answerTo(name: string, wait: number, recovered: boolean): Promise<void> | undefined {
    const children = this.#driven.isOver ? undefined : this.#driven.kernel.children;
    const child = children?.ends.mayHaveEnded(name);
    if (child !== undefined) return this.#redeliverEnd(child, name, wait);
    const request = recovered ? repliedRequest(name) : undefined;
    const parentId = children?.relations.parent?.sessionId;
    return request === undefined || parentId === undefined
      ? undefined
      : this.#refuse(request, wait, parentId);
  }

  async #redeliverEnd(child: number, name: string, wait: number): Promise<void> {
    const { sessionId } = this.#driven;
    const childId = positionId(sessionId, child);
    const row = await readInPlaceOf(async (id) => {
      const found = await this.#world.find(id);
      return id !== childId || isChildOf(found, { sessionId, child }) ? found : undefined;
    }, childId);
    if (row !== undefined && !isEnded(row.status)) return; // It will signal its end.
    const signalId = `${positionId(sessionId, wait)}:again`;
    const payload = row === undefined ? absentEnd(childId) : endEvent(row);
    await this.#send({ type: "send_signal", sessionId, signalId, name, payload }, wait);
  }

  async #refuse(request: number, wait: number, parentId: string): Promise<void> {
    const row = await this.#world.find(parentId);
    if (row !== undefined && !isEnded(row.status)) return; // It will answer, or its end will.
    await this.#send(refuseRequest(this.#driven.sessionId, request, parentId), wait);
  }

  /** Send the signal, unless one of its name has arrived meanwhile. */
  async #send(signal: SendSignal, wait: number): Promise<void> {
    const { signals } = await this.#world.arrivals(this.#driven.sessionId, this.#inbox.seen);
    if (!this.#isOpen(wait) || signals.some(({ name }) => name === signal.name)) return;
    await new Promise<void>((resolve, reject: (error: HoldfastError) => void) =>
      this.#world.submit(signal, () => resolve(), reject),
    );
  }

  #isOpen(wait: number): boolean {
    return !this.#driven.isOver && this.#driven.kernel.open.get(wait) !== undefined;
  }
}
