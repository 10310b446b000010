// What arrives for one session, fetched from storage: signals, and requests to cancel.
//
//   inbox-3. What arrives is looked for again whenever a commit answers an inbox above the one last seen (S2).
//
// Idle, until somebody says that something arrived; *looking*, until storage has answered. What is said meanwhile is looked for
// once more afterwards, as what is being fetched may be older, unless it is known how far the inbox goes and it was fetched so far.
// When storage cannot be read for a moment, it is read later.

import {
  toHoldfastError,
  type AgentStorage,
  type Arrivals,
  type Clock,
  type HoldfastError,
} from "@holdfast/core";
import { sessionMoved } from "./session-errors.ts";
import { alarm, type Timers } from "../loop/timers.ts";

const RETRY_MS = 500;

/** What an inbox needs of its session. */
export interface InboxHost {
  readonly timers: Timers;
  readonly clock: Clock;
  /** What arrived after this place in the inbox. */
  arrivals(after: number): Promise<Arrivals>;
  isOver(): boolean;
  receive(arrivals: Arrivals): void;
  /** Storage answers with what no waiting mends. */
  fail(error: HoldfastError): void;
}

/** What arrived for a session. @throws ConflictError when it has moved away: one that waits commits nothing, and is fenced by nobody. */
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
  readonly #host: InboxHost;
  readonly #retryAlarm = alarm(() => this.look());
  #seen: number;
  #looking = false;
  /** How far the inbox goes, as was said since it was last looked. */
  #said = 0;

  constructor(host: InboxHost, seen: number) {
    this.#host = host;
    this.#seen = seen;
  }

  /** The place in the inbox up to which everything was received. */
  get seen(): number {
    return this.#seen;
  }

  /** Something arrived. @param inbox how far the inbox goes, if that is known (inbox-3). */
  look(inbox = Infinity): void {
    if (this.#host.isOver() || inbox <= this.#seen) return;
    this.#said = this.#looking ? Math.max(this.#said, inbox) : 0;
    if (this.#looking) return;
    this.#looking = true;
    this.#host.arrivals(this.#seen).then(
      (arrivals) => {
        this.#looking = false;
        this.#seen = Math.max(this.#seen, arrivals.inbox);
        this.#host.receive(arrivals);
        this.look(this.#said);
      },
      (error: unknown) => {
        this.#looking = false;
        this.#lookLater(toHoldfastError(error));
      },
    );
  }

  close(): void {
    this.#host.timers.after(this.#retryAlarm, Infinity);
  }

  /** What arrived is stored, so nothing is lost by waiting (S2). */
  #lookLater(error: HoldfastError): void {
    if (this.#host.isOver()) return;
    if (error.code === "storage_unavailable") this.#host.timers.after(this.#retryAlarm, RETRY_MS);
    else this.#host.fail(error);
  }
}
