// `UnbegunTasks`: new tasks whose commit had no answer when their claim was abandoned. No attempt of them began here.
//
//   unbegun-tasks-1. The commit may be stored all the same. The next claim of this process then finds the task, and only this process
//       knows that it never began (O16).
//   unbegun-tasks-2. It is known only as long as no other process held the session in between. The token of the next claim is then
//       greater by one.
// Leaky: a storage whose tokens have gaps, another process, and a session with a payer count the attempt as lost.

import type { OpenTask } from "@holdfast/core";

/** Sessions that another process took are never asked for again here. */
const SESSIONS_MAX = 10_000;

export class UnbegunTasks {
  readonly #claims = new Map<string, { readonly token: number; readonly tasks: ReadonlySet<number> }>();

  /** The claim with this token is abandoned. @param tasks new in the commit that has no answer. */
  note(sessionId: string, token: number, tasks: readonly OpenTask[]): void {
    if (tasks.length === 0) return;
    this.#claims.delete(sessionId);
    this.#claims.set(sessionId, { token, tasks: new Set(tasks.map(({ id }) => id)) });
    const [oldest] = this.#claims.keys();
    if (this.#claims.size > SESSIONS_MAX && oldest !== undefined) this.#claims.delete(oldest);
  }

  /** Answers, under the next claim of the session, whether a task never began. The answer is given once. */
  take(sessionId: string, token: number | undefined): (task: OpenTask) => boolean {
    const claim = this.#claims.get(sessionId);
    this.#claims.delete(sessionId);
    // mutant: unbegun-under-any-claim
    if (claim === undefined || token !== claim.token + 1) return () => false;
    return ({ id, attempt }) => attempt === 1 && claim.tasks.has(id);
  }
}
