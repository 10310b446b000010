// `Inbox`: fetches the arrivals of one session from storage, which are signals and requests to cancel.
//
//   inbox-3. Whenever a commit answers an inbox position beyond the last one seen, the inbox fetches again
//       (S2).
//
// The inbox is idle until `look` is called, then *looking* until storage has answered. A call of `look`
// meanwhile causes another fetch afterwards, as the running one may miss the arrival. That fetch is skipped
// if the call names an inbox position that was fetched. When storage is unavailable, the inbox retries later.

import { toHoldfastError, type AgentStorage, type Arrivals, type HoldfastError } from "@holdfast/core";
import type { DriverWorld } from "./driver-environment.ts";
import { sessionMoved } from "./session-errors.ts";
import { alarm } from "../loop/timers.ts";

const RETRY_MS = 500;

/** The session that an inbox belongs to. */
export interface InboxSession {
  readonly sessionId: string;
  readonly isOver: boolean;
  receive(arrivals: Arrivals): void;
  /** Called with an error of storage that waiting does not fix. */
  abandon(error: HoldfastError): void;
}

/**
 * The arrivals of a session.
 *
 * @throws ConflictError when it has moved away, which a session that only waits would not notice by a fenced
 * commit.
 */
export async function arrivalsHere(
  storage: AgentStorage,
  sessionId: string,
  after: number,
): Promise<Arrivals> {
  const arrivals = await storage.arrivals(sessionId, after);
  const { move } = arrivals.session;
  if (move?.isDone === true) throw sessionMoved(sessionId, move.to);
  return arrivals;
}

export class Inbox {
  readonly #world: Pick<DriverWorld, "arrivals" | "timers">;
  readonly #session: InboxSession;
  readonly #retryAlarm = alarm(() => this.look());
  #seen: number;
  #looking = false;
  /** The highest inbox position that `look` was called with during the running fetch. */
  #said = 0;

  constructor(world: Pick<DriverWorld, "arrivals" | "timers">, session: InboxSession, seen: number) {
    this.#world = world;
    this.#session = session;
    this.#seen = seen;
  }

  /** The position in the inbox up to which all arrivals were received. */
  get seen(): number {
    return this.#seen;
  }

  /** Something arrived. @param inbox how far the inbox goes, if that is known (inbox-3). */
  look(inbox = Infinity): void {
    if (this.#session.isOver || inbox <= this.#seen) return;
    this.#said = this.#looking ? Math.max(this.#said, inbox) : 0;
    if (this.#looking) return;
    this.#looking = true;
    this.#world.arrivals(this.#session.sessionId, this.#seen).then(
      (arrivals) => {
        this.#looking = false;
        this.#seen = Math.max(this.#seen, arrivals.inbox);
        this.#session.receive(arrivals);
        this.look(this.#said);
      },
      (error: unknown) => {
        this.#looking = false;
        this.#lookLater(toHoldfastError(error));
      },
    );
  }

  close(): void {
    this.#world.timers.after(this.#retryAlarm, Infinity);
  }

  /** Arrivals are stored, so waiting loses none of them (S2). */
  #lookLater(error: HoldfastError): void {
    if (this.#session.isOver) return;
    if (error.code === "storage_unavailable") this.#world.timers.after(this.#retryAlarm, RETRY_MS);
    else this.#session.abandon(error);
  }
}
