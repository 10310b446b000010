// `LastErrors`: the last error of each session, for a limited number of sessions, as a process may live for
// long.

import type { HoldfastError } from "@holdfast/core";

const SESSIONS_MAX = 1_000;

export class LastErrors {
  readonly #errors = new Map<string, HoldfastError>();

  get(sessionId: string): HoldfastError | undefined {
    return this.#errors.get(sessionId);
  }

  set(sessionId: string, error: HoldfastError): void {
    this.#errors.delete(sessionId); // The latest is last.
    this.#errors.set(sessionId, error);
    const [oldest] = this.#errors.keys();
    if (this.#errors.size > SESSIONS_MAX && oldest !== undefined) this.#errors.delete(oldest);
  }

  delete(sessionId: string): void {
    this.#errors.delete(sessionId);
  }
}
