// `Holdings` are the sessions that runners hold, as far as this coordinator knows: sessions that it gave, and
// sessions that it found by asking storage.
//
//   - Only storage knows which runner holds which session. Asking it changes nothing. Knowledge under a newer
//     token is kept.
//   - Arrivals through another coordinator may come without a notice. `look` finds them with one query for
//     each runner. It also finds the sessions that another coordinator gave, and the commits that prove a
//     session to be no suspect.
//
// This class knows no polls. It returns which arrivals are news for which runner.

import { type AgentStorage, ChurnMap, type Clock, defined, type HeldClaim } from "@holdfast/core";
import { isSuspect } from "./rules.ts";

const PAGE = 1_000;

export interface Holding {
  readonly runnerId: string;
  readonly token: number;
  /** The place in the inbox of the last arrival that the runner was sent, or said it knew. */
  readonly inbox: number;
  /** The place up to which the runner has read the inbox, or was sent it, if this coordinator knows. */
  readonly read?: number;
  /** When the session was given, if this coordinator gave it. */
  readonly givenAt?: number;
  /** How many claims in a row were lost before this one. */
  readonly losses: number;
}

export class Holdings {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #bySession = new ChurnMap<string, Holding>();
  readonly #byRunner = new Map<string, Set<string>>();
  /** Held suspects, each with the time at which this coordinator learned of it. */
  readonly #suspects = new Map<string, number>();

  constructor(storage: AgentStorage, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
  }

  find(sessionId: string): Holding | undefined {
    return this.#bySession.get(sessionId);
  }

  countOf(runnerId: string): number {
    return this.#byRunner.get(runnerId)?.size ?? 0;
  }

  /** Since when a runner holds a suspect. If it holds several, the time of the last one. */
  suspectSince(runnerId: string): number | undefined {
    const sinces = this.suspectsOf(runnerId).map(([sessionId]) => this.#suspects.get(sessionId)!);
    return sinces.length === 0 ? undefined : Math.max(...sinces);
  }

  /** The suspects that a runner holds. */
  suspectsOf(runnerId: string): readonly (readonly [string, Holding])[] {
    const held = [...this.#suspects.keys()].map((sessionId) => [sessionId, this.find(sessionId)!] as const);
    return held.filter(([, holding]) => holding.runnerId === runnerId);
  }

  hold(sessionId: string, holding: Holding): void {
    const known = this.#bySession.get(sessionId);
    if (known !== undefined && known.token > holding.token) return;
    if (known?.runnerId !== holding.runnerId) this.drop(sessionId);
    const isSame = known?.token === holding.token;
    this.#bySession.set(sessionId, isSame ? { ...known, ...holding } : holding);
    if (!isSuspect(holding.losses)) this.#suspects.delete(sessionId);
    else if (!isSame || !this.#suspects.has(sessionId)) this.#suspects.set(sessionId, this.#clock.now());
    const held = this.#byRunner.get(holding.runnerId);
    if (held === undefined) this.#byRunner.set(holding.runnerId, new Set([sessionId]));
    else held.add(sessionId);
  }

  /** Notes that the runner knows the inbox up to this place. */
  knows(sessionId: string, inbox: number): void {
    const known = this.#bySession.get(sessionId);
    if (known !== undefined && known.inbox < inbox) this.#bySession.set(sessionId, { ...known, inbox });
  }

  /**
   * The place up to which a runner has read the inbox of a session that it holds, if this coordinator knows.
   */
  readBy(runnerId: string, sessionId: string): number | undefined {
    const known = this.#bySession.get(sessionId);
    return known?.runnerId === runnerId ? known.read : undefined;
  }

  /** Notes that a runner has read, or was sent, the inbox of a session that it holds. */
  reads(runnerId: string, sessionId: string, read: number): void {
    const known = this.#bySession.get(sessionId);
    if (known?.runnerId === runnerId && (known.read ?? -1) < read)
      this.#bySession.set(sessionId, { ...known, read });
  }

  /** Notes that no runner holds the session. @returns the runner that held it. */
  drop(sessionId: string): string | undefined {
    const known = this.#bySession.get(sessionId);
    if (known === undefined) return undefined;
    this.#bySession.delete(sessionId);
    this.#suspects.delete(sessionId);
    const held = this.#byRunner.get(known.runnerId);
    held?.delete(sessionId);
    if (held?.size === 0) this.#byRunner.delete(known.runnerId);
    return known.runnerId;
  }

  forget(runnerId: string): void {
    for (const sessionId of this.#byRunner.get(runnerId) ?? []) this.drop(sessionId);
  }

  /** The claim of a session, as storage has it. */
  async ask(sessionId: string): Promise<HeldClaim | undefined> {
    const [claim] = await this.#storage.heldClaims({ now: this.#clock.now(), limit: 1, sessionId });
    return claim;
  }

  /** @returns the sessions of this runner with arrivals that it was not sent. */
  async look(runnerId: string): Promise<readonly string[]> {
    const before = new Map([...(this.#byRunner.get(runnerId) ?? [])].map((id) => [id, this.find(id)!.token]));
    const news: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.#storage.heldClaims({
        now: this.#clock.now(),
        limit: PAGE,
        owner: runnerId,
        ...defined({ after }),
      });
      for (const { sessionId, token, inbox, losses } of page) {
        before.delete(sessionId);
        const known = this.find(sessionId);
        const isNews = known === undefined || known.token < token || known.inbox < inbox;
        if (isNews) news.push(sessionId);
        if (isNews || known.losses !== losses) this.hold(sessionId, { runnerId, token, inbox, losses });
      }
      after = page.at(-1)?.sessionId;
      if (page.length < PAGE) break;
    }
    // The runner no longer holds these sessions, unless one was given to it again since.
    for (const [sessionId, token] of before) if (this.find(sessionId)?.token === token) this.drop(sessionId);
    return news;
  }
}
