// `sessionHandle`: the calls of a runtime with a session's id filled in, and promises of the session's end.
//
//   session-handle-1. A promise of a session's end keeps the process alive until it settles, or the runtime
//       closes. Otherwise Node would end a program in the middle of its `await`: a session that only waits
//       holds no other handle.

import { clearInterval, setInterval } from "node:timers";
import { checkOptions, flagRule, type OptionRules, type Session } from "@holdfast/core";
import type { Runtime, SessionHandle, ResultOptions } from "./runtime-api.ts";
import { outputOf, type Settled } from "../session/session-outcome.ts";

export interface HandleHost {
  readonly runtime: Runtime;
  setTitle(sessionId: string, title: string): Promise<void>;
  find(sessionId: string): Promise<Session>;
  settledOf(sessionId: string): Promise<Settled>;
  readonly aliveness: ProcessHold;
}

export function sessionHandle<Output>(
  { runtime, setTitle, find, settledOf, aliveness }: HandleHost,
  sessionId: string,
  created: boolean,
): SessionHandle<Output> {
  const awaitEnd = (call: string, options: ResultOptions = {}): Promise<Settled<Output>> => {
    checkOptions(call, options, WAIT);
    const settled = settledOf(sessionId) as Promise<Settled<Output>>;
    return options.unref === true ? settled : aliveness.until(settled);
  };
  return {
    sessionId,
    created,
    result: async (options) => outputOf(sessionId, await awaitEnd("result", options)),
    settled: async (options) => awaitEnd("settled", options),
    session: () => find(sessionId),
    signal: (name, payload, options) => runtime.signal(sessionId, name, payload, options),
    answer: (answer, options) => runtime.answer(sessionId, answer, options),
    cancel: (options) => runtime.cancel(sessionId, options),
    pause: () => runtime.pause(sessionId),
    unpause: () => runtime.unpause(sessionId),
    setBudget: (limits) => runtime.setBudget(sessionId, limits),
    grantWindow: (per) => runtime.grantWindow(sessionId, per),
    setTitle: (title) => setTitle(sessionId, title),
    releaseLost: () => runtime.releaseLost(sessionId),
  };
}

const WAIT: OptionRules = { unref: flagRule };

/** Node counts a timer as work left to do, however late it is due. */
const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the process alive while at least one promise is pending (session-handle-1). */
export class ProcessHold {
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  async until<T>(promise: Promise<T>): Promise<T> {
    this.#pending += 1;
    if (!this.#isClosed) this.#timer ??= setInterval(() => {}, LONGEST_MS);
    try {
      return await promise;
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) this.#release();
    }
  }

  /** Let the process end from here on, even with pending promises. */
  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  #release(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
