// What runners hold, as far as this coordinator knows: what it gave them, and what it found out by asking.
//
//   holdings-1. Storage alone knows who holds what. Asking it changes nothing; and what is known here under a newer
//       token stands.
//   holdings-2. What came by way of another coordinator is told by nobody: `look` finds it, with one question for each
//       runner. So are the sessions themselves that a runner was given there, and what proves that a session is no
//       suspect.
//
// It knows no polls: it says what is news for which runner.

import type { AgentStorage, Clock, HeldClaim } from "@holdfast/core";
import { ChurnMap } from "@holdfast/core/internal";
import { isSuspect } from "./rules.ts";

const PAGE = 1_000;

export interface Holding {
  readonly runnerId: string;
  readonly token: number;
  /** How much had arrived for the session when its runner was last told of it, or knew it by itself. */
  readonly inbox: number;
  /** How far its runner has read the inbox, or was sent it, if that was here. */
  readonly read?: number;
  /** When it was given, if that was here. */
  readonly givenAt?: number;
  /** How many before it were lost, as far as no commit has taken that back. */
  readonly losses: number;
}

export class Holdings {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #bySession = new ChurnMap<string, Holding>();
  readonly #byRunner = new Map<string, Set<string>>();
  /** Of what is held, the suspects, and since when that is known here. */
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

  /** Since when a runner holds a suspect; the last one's, if it holds several. */
  suspectSince(runnerId: string): number | undefined {
    const sinces = this.suspectsOf(runnerId).map(([sessionId]) => this.#suspects.get(sessionId)!);
    return sinces.length === 0 ? undefined : Math.max(...sinces);
  }

  /** The suspects that a runner holds. */
  suspectsOf(runnerId: string): readonly (readonly [string, Holding])[] {
    const held = [...this.#suspects.keys()].map((sessionId) => [sessionId, this.find(sessionId)!] as const);
    return held.filter(([, holding]) => holding.runnerId === runnerId);
  }

  /** holdings-1. */
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

  /** Its runner knows how much has arrived for it. */
  knows(sessionId: string, inbox: number): void {
    const known = this.#bySession.get(sessionId);
    if (known !== undefined && known.inbox < inbox) this.#bySession.set(sessionId, { ...known, inbox });
  }

  /** How far a runner has read the inbox of a session that it holds; `undefined` where that is not known here. */
  readBy(runnerId: string, sessionId: string): number | undefined {
    const known = this.#bySession.get(sessionId);
    return known?.runnerId === runnerId ? known.read : undefined;
  }

  /** A runner has read the inbox of a session that it holds so far, or was sent it. */
  reads(runnerId: string, sessionId: string, read: number): void {
    const known = this.#bySession.get(sessionId);
    if (known?.runnerId === runnerId && (known.read ?? -1) < read)
      this.#bySession.set(sessionId, { ...known, read });
  }

  /** Nobody holds it, as far as is known here. @returns who did. */
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

  /** Who holds a session, by storage. */
  async ask(sessionId: string): Promise<HeldClaim | undefined> {
    const [claim] = await this.#storage.heldClaims({ now: this.#clock.now(), limit: 1, sessionId });
    return claim;
  }

  /** holdings-2. @returns the sessions of this runner for which something came that it was not told of. */
  async look(runnerId: string): Promise<readonly string[]> {
    const before = new Map([...(this.#byRunner.get(runnerId) ?? [])].map((id) => [id, this.find(id)!.token]));
    const news: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.#storage.heldClaims({
        now: this.#clock.now(),
        limit: PAGE,
        owner: runnerId,
        ...(after === undefined ? {} : { after }),
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
    // What it no longer holds, unless it was given to it anew meanwhile.
    for (const [sessionId, token] of before) if (this.find(sessionId)?.token === token) this.drop(sessionId);
    return news;
  }
}
