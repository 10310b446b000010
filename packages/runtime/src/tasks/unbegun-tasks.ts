// `UnbegunTasks`: tasks of sessions that this process let go of, with the first attempt that it had not begun.
//
//   - A commit without an answer may be stored, and only this process knows that it began nothing after it.
//     The next claim of this process begins the attempt that it finds there (O16).
//   unbegun-tasks-2. It is known only as long as no other process held the session in between. Therefore a
//       claim names the one before it. This process follows its own claims from one to the next. Some of them
//       it did not use, and some came while it still had the session.
// Leaky: another process, this one after a restart, and a claim whose answer was lost count the attempt as
// lost (decision 0106).

/** The number of the first attempt that has not begun, by the number of its task. */
export type Unbegun = ReadonlyMap<number, number>;

/** Sessions that another process took are never asked for again here. */
const SESSIONS_MAX = 10_000;

export class UnbegunTasks {
  readonly #sessions = new Map<string, { readonly token: number; readonly tasks: Unbegun }>();
  /** The newest claim of a session that nothing is noted of, with the claim before it and others that were not used. */
  readonly #claims = new Map<string, { readonly token: number; readonly before: number }>();

  /** The claim with this token is let go of. */
  note(sessionId: string, token: number, tasks: Unbegun): void {
    const later = this.#claims.get(sessionId);
    this.#sessions.delete(sessionId);
    if (tasks.size === 0) return;
    // mutant: later-claim-forgotten
    put(this.#sessions, sessionId, { token: later?.before === token ? later.token : token, tasks });
  }

  /** This process has claimed the session again. @param before the token of the claim before; absent when it is unknown. */
  claimed(sessionId: string, token: number, before: number | undefined): void {
    const noted = this.#sessions.get(sessionId);
    if (noted === undefined) this.#noteClaim(sessionId, token, before);
    if (noted === undefined || noted.token === token) return;
    // mutant: unbegun-under-any-claim
    if (noted.token === before) this.#sessions.set(sessionId, { ...noted, token });
    else this.#sessions.delete(sessionId);
  }

  #noteClaim(sessionId: string, token: number, before: number | undefined): void {
    const last = this.#claims.get(sessionId);
    const first = last?.token === before ? last?.before : before;
    if (first === undefined) this.#claims.delete(sessionId);
    else put(this.#claims, sessionId, { token, before: first });
  }

  /** Takes what is known under a claim. */
  take(sessionId: string, token: number | undefined): Unbegun {
    const noted = this.#sessions.get(sessionId);
    if (this.#claims.get(sessionId)?.token === token) this.#claims.delete(sessionId);
    if (noted === undefined || noted.token !== token) return NOTHING;
    this.#sessions.delete(sessionId);
    return noted.tasks;
  }
}

const NOTHING: Unbegun = new Map();

/** As the newest; the oldest goes where there are too many. */
function put<Value>(map: Map<string, Value>, sessionId: string, value: Value): void {
  map.delete(sessionId);
  map.set(sessionId, value);
  const [oldest] = map.keys();
  if (map.size > SESSIONS_MAX && oldest !== undefined) map.delete(oldest);
}
