// `UndrivenSessions`: stores the status of sessions that are claimed here and cannot be driven, and settles
// their waits.

import {
  isEnded,
  recordError,
  type HoldfastError,
  type PauseReason,
  type Session,
  type SessionPatch,
} from "@holdfast/core";
import type { Watchdog } from "../isolation/watchdog.ts";
import type { Claims } from "./claims.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import { poisonFault } from "../session/session-errors.ts";
import { settledAs, type Settled } from "../session/session-outcome.ts";
import { lostPatch } from "../session/session-row.ts";

export interface UndrivenSessionsHost {
  readonly committer: GroupCommitter;
  readonly claims: Claims;
  readonly watchdog: Watchdog | undefined;
  /** @throws NotFoundError */
  find(sessionId: string): Promise<Session>;
  settle(sessionId: string, settled: Settled): void;
}

export class UndrivenSessions {
  readonly #host: UndrivenSessionsHost;

  constructor(host: UndrivenSessionsHost) {
    this.#host = host;
  }

  /** Whether the session kept its process busy, and did so again alone. */
  isPoison(sessionId: string): boolean {
    return this.#host.watchdog?.isCharged(sessionId) === true;
  }

  parkPoison(sessionId: string, token: number): Promise<void> {
    const fault = poisonFault(sessionId, this.#host.watchdog?.placeOf(sessionId));
    return this.park(sessionId, token, "poison", fault);
  }

  /** The journal does not fit the code here: release the session for a process with earlier code, or park it. */
  async diverged(sessionId: string, token: number, fault: HoldfastError, mayReturn = false): Promise<void> {
    if (!mayReturn) return this.park(sessionId, token, "nondeterminism", fault);
    this.#host.claims.release(sessionId, token, undefined, { diverged: true });
  }

  /** Store the session as paused. Its position is read now, as it is constant only under a claim. */
  async park(
    sessionId: string,
    token: number,
    pauseReason: PauseReason,
    fault: HoldfastError,
  ): Promise<void> {
    const { nextSeq } = await this.#host.find(sessionId);
    const patch = { status: "paused", pauseReason, waits: [], error: recordError(fault) } as const;
    await this.#store(sessionId, token, nextSeq, patch);
    this.#host.claims.release(sessionId, token);
    this.#host.settle(sessionId, { status: "paused", fault });
  }

  /** K11. Store the end of an ephemeral session whose process has ended. */
  async lose(session: Session, token: number): Promise<void> {
    const { sessionId, nextSeq } = session;
    await this.#store(sessionId, token, nextSeq, lostPatch(session));
    const now = await this.#host.find(sessionId);
    const left: Settled = isEnded(now.status) ? settledAs(now) : { status: "released", error: undefined };
    this.#host.settle(sessionId, left);
  }

  async #store(sessionId: string, token: number, firstSeq: number, session: SessionPatch): Promise<void> {
    const batch = { sessionId, token, firstSeq, records: [], entries: [], consumed: [], session };
    await this.#host.committer.commit({ type: "commit_batch", ...batch });
  }
}
