// `PendingCalls`: the calls of one turn to its session that wait for their results in this process.

import type { CallResult } from "./way-back.ts";
import type { SessionCall } from "./way-back-tools.ts";

/** A call that the agent has made. */
export interface PendingCall {
  /** Names the call within its turn. */
  readonly callId: number;
  readonly call: SessionCall;
}

/** The event of a call. */
export interface SessionCallEvent extends PendingCall {
  readonly type: "session_call";
  /** The use of the turn before the call, which no budget of a session has counted. */
  readonly used?: { readonly tokens: number; readonly costMicroUsd: number };
}

export class PendingCalls {
  readonly #waiting = new Map<number, (result: CallResult) => void>();
  readonly #early: PendingCall[] = [];
  #taker: ((call: PendingCall) => void) | undefined;
  #count = 0;

  /** Gives every call to one subscriber, also those that came before. */
  subscribe(taker: (call: PendingCall) => void): void {
    this.#taker = taker;
    for (const call of this.#early.splice(0)) taker(call);
  }

  carryOut(call: SessionCall, signal?: AbortSignal): Promise<CallResult> {
    const callId = ++this.#count;
    signal?.addEventListener("abort", () => this.#waiting.delete(callId), { once: true });
    return new Promise((resolve) => {
      this.#waiting.set(callId, resolve);
      const taker = this.#taker ?? ((early: PendingCall) => this.#early.push(early));
      taker({ callId, call });
    });
  }

  /** @returns whether the agent waited for the result. */
  answer(callId: number, result: CallResult): boolean {
    const resolve = this.#waiting.get(callId);
    this.#waiting.delete(callId);
    resolve?.(result);
    return resolve !== undefined;
  }
}
