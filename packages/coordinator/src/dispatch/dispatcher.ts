// `Dispatcher` matches waiting polls of runners with sessions that have something to do, and claims those.
//
//   poll ─► poller ─┐
//                 ├─► round: scan what is due ─► match (rules.ts) ─► claim ─► load ─► answer
//   arrival ──────┘
//
//   dispatcher-1. Only the claim in storage gives a session to a runner. Everything in this class may be
//       forgotten at any time: a coordinator's end loses no claim and gives none twice.
//   dispatcher-2. A claim that no poll acknowledges and no runner uses is released after `ACK_MS`.
//   dispatcher-3. There is one round at a time. A poll or a known candidate begins one at once, and later
//       events belong to the next round. A round that must ask storage first waits `JOIN_MS`.
//   dispatcher-4. An arrival for a session that a runner holds is sent to that runner alone.
//   dispatcher-5. Losing every notice costs time and nothing more. While a poll waits, the dispatcher asks
//       storage every `SCAN_MS` which sessions are due, and what has arrived for sessions of waiting runners.
//   dispatcher-6. If storage fails for one session, the other sessions of the round are not affected. The
//       failed session is no candidate until `AGAIN_MS` later, when the dispatcher asks whether it was
//       claimed and releases that claim. If storage did not return a token, the end of the lease identifies
//       the claim. A claim with another end belongs to another coordinator and is left alone.
//   dispatcher-7. Only the claim of a session says how often it was lost. If the claim shows a suspect, the
//       dispatcher releases it, which counts as no loss, and matches the session again as one. A suspect that
//       gets company is pardoned first, in storage.
//   dispatcher-8. The poller of a runner that has been silent here for `FORGET_MS` is forgotten. Candidates for
//       runners that poll elsewhere are compared with storage every `PRUNE_MS`. Memory here therefore does
//       not grow with all the sessions and runners that ever existed.
//
// The dispatcher knows no requests and no callers. The service decides which caller may poll as which runner.

import {
  type AgentStorage,
  type Arrival,
  type Clock,
  type HeldClaim,
  type ReleaseClaim,
  type Session,
} from "@holdfast/core";
import type { Commit } from "../store/joined-commits.ts";
import { fitnessOf, type Registry, type StoredRunner } from "../store/registry.ts";
import { Holdings } from "./holdings.ts";
import { hasSomethingToDo, isPoison, isSuspect, match, type Match, type Offer } from "./rules.ts";
import { park, pardon } from "./suspects.ts";
import { DRAIN, Poller, type GivenClaim, type PollAnswer, type PollRequest } from "./poller.ts";
import { SCAN_MS, WaitingSessions } from "./waiting-sessions.ts";

export const ACK_MS = 2_000;
export const FORGET_MS = 10 * 60_000;
export const PRUNE_MS = 60_000;
const JOIN_MS = 50;
/** The pause before a round that failed in storage is tried again. */
const AGAIN_MS = 500;

export interface DispatcherHost {
  readonly storage: AgentStorage;
  readonly commit: Commit;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly leaseMs: number;
  /** rules-4. How often a session may be lost with a runner that holds nothing else. */
  readonly lossesMax: number;
  /** Called with each failure of storage. Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
  /** Called with how long a session waited, for each claim that is given. Must not throw. */
  readonly claimed: (waitedMs: number) => void;
}

/** A claim that may exist, and that no runner knows of (dispatcher-6). */
interface Owed {
  readonly runnerId: string;
  readonly asked: AskedClaim;
  readonly at: number;
}

interface AskedClaim {
  /** The end of its lease, unless it was renewed. */
  until?: number;
  /** `undefined` until storage has confirmed the claim. */
  token?: number | undefined;
}

export class Dispatcher {
  readonly #host: DispatcherHost;
  readonly #pollers = new Map<string, Poller>();
  readonly #holdings: Holdings;
  readonly #waiting: WaitingSessions;
  readonly #owed = new Map<string, Owed>();
  readonly #unsubscribe: () => void;
  /** The pollers of runners whose held claims were read from storage. */
  readonly #looked = new WeakSet<Poller>();
  /** Sessions that something arrived for since the last round. */
  #arrived = new Set<string>();
  #isScanWanted = true;
  #scannedAt = -Infinity;
  #prunedAt: number;
  #lookedAt = -Infinity;
  #scannedAgents = new Set<string>();
  #round: Promise<void> | undefined;
  #isAgain = false;
  #endedRoundAt = -Infinity;
  #cancelTimer: (() => void) | undefined;
  #timerAt = Infinity;
  #isClosed = false;

  constructor(host: DispatcherHost) {
    this.#host = host;
    this.#prunedAt = host.clock.monotonic();
    this.#holdings = new Holdings(host.storage, host.clock);
    this.#waiting = new WaitingSessions(host.storage);
    this.#unsubscribe = host.storage.subscribe((arrival) => this.#onArrival(arrival));
  }

  /** Answers as soon as there is something to send, or with nothing after `waitMs` (poller-1, poller-4). */
  async poll(request: PollRequest, runner: StoredRunner, signal?: AbortSignal): Promise<PollAnswer> {
    const { pollId, free, waitMs } = request;
    const poller = this.#pollerOf(runner.runnerId);
    this.seen(runner.runnerId);
    const known = poller.answerOf(pollId);
    if (known !== undefined) return known;
    if (poller.isOvertaken(request)) return { pollId, claims: [], arrivals: [], commands: [] };
    this.#giveBackUnused(poller.acknowledge(request));
    poller.drains(runner.draining === true);
    const slots = runner.draining === true ? 0 : Math.min(free, runner.maxRuns);
    const answer = poller.wait(pollId, slots, this.#host.clock.monotonic());
    const { waiting } = poller;
    if (this.#isClosed || signal?.aborted === true) waiting?.answer([]);
    const end = (): void => waiting?.answer([]);
    const cancel = waitMs > 0 ? this.#host.clock.setTimer(end, waitMs) : () => {};
    signal?.addEventListener("abort", end, { once: true });
    this.#wake(0);
    if (waitMs <= 0) void this.#quiet().then(end);
    try {
      const sent = await answer;
      if (signal?.aborted !== true) poller.lastSeenAt = this.#host.clock.monotonic(); // The runner has waited until now.
      if (sent.claims.length > 0) this.#expectUse(poller, sent);
      return sent;
    } finally {
      cancel();
      signal?.removeEventListener("abort", end);
    }
  }

  /**
   * Whether a runner holds a session. Storage answers if this coordinator does not know the session under
   * `token`. It also answers if the runner has been silent here for a lease, and may have lost the session.
   */
  async holds(runnerId: string, sessionId: string, token?: number): Promise<boolean> {
    const known = this.#holdings.find(sessionId);
    const isSure =
      token === undefined ? this.quietFor(runnerId) < this.#host.leaseMs : token === known?.token;
    if (known?.runnerId === runnerId && isSure) return true;
    const claim = await this.#holdings.ask(sessionId);
    if (claim?.owner !== runnerId) return false;
    this.#pollerOf(runnerId);
    this.#found(claim);
    return true;
  }

  /** The sessions that runners hold, as far as this coordinator knows. */
  get holdings(): Holdings {
    return this.#holdings;
  }

  /** When a claim was given, if this coordinator gave it. */
  givenAt(sessionId: string, token: number): number | undefined {
    const held = this.#holdings.find(sessionId);
    return held?.token === token ? held.givenAt : undefined;
  }

  /** How long a runner has been silent here: 0 while its poll waits, and Infinity if it never polled. */
  quietFor(runnerId: string): number {
    const poller = this.#pollers.get(runnerId);
    if (poller?.waiting !== undefined) return 0;
    return this.#host.clock.monotonic() - (poller?.lastSeenAt ?? -Infinity);
  }

  /** Whether this coordinator knows that a waiting session is a suspect (rules-6). */
  isSuspect(sessionId: string): boolean {
    return this.#waiting.get(sessionId)?.suspectSince !== undefined;
  }

  /** For metrics: the waiting polls, the known waiting sessions, and the start of the longest wait. */
  get load(): { readonly polls: number; readonly waiting: number; readonly oldestSince: number | undefined } {
    const sinces = this.#waiting.all.map(({ since }) => since);
    return {
      polls: [...this.#pollers.values()].filter(({ waiting }) => waiting !== undefined).length,
      waiting: sinces.length,
      oldestSince: sinces.length === 0 ? undefined : sinces.reduce((a, b) => Math.min(a, b)),
    };
  }

  /** Adds a new session that has something to do. */
  created(session: Session): void {
    this.#waiting.add(session, this.#host.clock.now());
    this.#wake(0);
  }

  /** A runner uses or renews a claim, so the claim has arrived. @param inbox its place in the inbox. */
  used(runnerId: string, sessionId: string, inbox = 0): void {
    this.#pollers.get(runnerId)?.used(sessionId);
    this.#holdings.knows(sessionId, inbox);
  }

  /** A runner has renewed its claims. */
  seen(runnerId: string): void {
    this.#pollerOf(runnerId).lastSeenAt = this.#host.clock.monotonic();
  }

  /** A runner no longer holds the session, which may have something to do. */
  released(sessionId: string, isEnded: boolean): void {
    const runnerId = this.#holdings.drop(sessionId);
    if (isEnded) return;
    if (runnerId !== undefined) this.#waiting.ran(sessionId, runnerId);
    this.#isScanWanted = true;
    this.#wake(JOIN_MS);
  }

  /** Makes a runner drain. The command is sent until the runner acknowledges it (poller-3). */
  drain(runnerId: string): void {
    this.#pollerOf(runnerId).command(DRAIN);
    this.#wake(0);
  }

  /** Makes a runner stop a session. The command is sent until the runner acknowledges it (poller-3). */
  stop(runnerId: string, sessionId: string): void {
    this.#pollerOf(runnerId).command({ commandId: `stop:${sessionId}`, type: "stop", sessionId });
    this.#wake(0);
  }

  /** Forgets a runner that is gone. Its claims end with their leases. */
  forget(runnerId: string): void {
    const poller = this.#pollers.get(runnerId);
    poller?.waiting?.answer([]);
    this.#pollers.delete(runnerId);
    this.#holdings.forget(runnerId);
  }

  /** dispatcher-8. */
  sweep(): void {
    const before = this.#host.clock.monotonic() - FORGET_MS;
    for (const { runnerId, waiting, lastSeenAt, madeAt } of this.#pollers.values())
      if (waiting === undefined && Math.max(lastSeenAt, madeAt) <= before) this.forget(runnerId);
  }

  /** Answers waiting polls with nothing, and releases the claims that are being made. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#cancelTimer?.();
    for (const { waiting } of this.#pollers.values()) waiting?.answer([]);
    await this.#quiet();
  }

  // ---- rounds ------------------------------------------------------------------------------------------------------

  #onArrival({ sessionId, awaited }: Arrival): void {
    const holder = this.#pollers.get(this.#holdings.find(sessionId)?.runnerId ?? "");
    // Otherwise the runner may have lost the session by now.
    if (holder !== undefined && this.quietFor(holder.runnerId) < this.#host.leaseMs) {
      holder.arrived(sessionId, awaited);
      this.#wake(0);
    } else if (awaited) {
      this.#arrived.add(sessionId);
      this.#wake(0);
    }
  }

  /** dispatcher-3. */
  #wake(joinMs: number): void {
    if (this.#isClosed) return;
    if (this.#round !== undefined) {
      this.#isAgain = true;
      return;
    }
    const wait = Math.max(0, this.#endedRoundAt + joinMs - this.#host.clock.monotonic());
    if (joinMs > 0 && wait > 0) this.#wakeAt(wait);
    else this.#begin();
  }

  #wakeAt(ms: number): void {
    if (this.#isClosed) return; // A round that was under way leaves no timer behind.
    const at = this.#host.clock.monotonic() + ms;
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = this.#host.clock.setTimer(() => {
      this.#timerAt = Infinity;
      this.#begin();
    }, ms);
  }

  #begin(): void {
    if (this.#isClosed) return;
    if (this.#round !== undefined) {
      this.#isAgain = true;
      return;
    }
    this.#isAgain = false;
    this.#round = this.#runRound()
      .catch((error: unknown) => {
        this.#host.warn("dispatch could not read storage", error);
        this.#wakeAt(AGAIN_MS);
      })
      .finally(() => {
        this.#round = undefined;
        this.#endedRoundAt = this.#host.clock.monotonic();
        if (this.#isAgain) this.#wake(0);
      });
  }

  /** Waits until no round is under way. */
  async #quiet(): Promise<void> {
    while (this.#round !== undefined) await this.#round;
  }

  async #runRound(): Promise<void> {
    await this.#giveBackOwed();
    await this.#takeArrived();
    await this.#lookAtHeld();
    const offers = await this.#offers();
    if (offers.length > 0) {
      await this.#lookAround(offers);
      const free = this.#waiting.all.filter(({ sessionId }) => !this.#owed.has(sessionId));
      const matches = match(offers, free, this.#host.clock.now());
      const given = await this.#claimAll(matches);
      if (matches.length === 0) this.#waiting.widen();
      this.#answer(given);
      // A session could not be claimed, so that its runner is matched again, until nothing is left to match.
      if (this.#waiting.isBehind || countOf(given) < matches.length) this.#isAgain = true;
      this.#wakeAt(SCAN_MS); // dispatcher-5.
    } else if (this.#host.clock.monotonic() - Math.max(this.#prunedAt, this.#scannedAt) >= PRUNE_MS)
      await this.#prune();
    for (const { waiting, hasNews } of this.#pollers.values()) if (hasNews) waiting?.answer([]);
  }

  async #takeArrived(): Promise<void> {
    if (this.#arrived.size === 0) return;
    const ids = [...this.#arrived];
    this.#arrived = new Set();
    try {
      const claims = await Promise.all(ids.map((sessionId) => this.#holdings.ask(sessionId)));
      for (const claim of claims) if (claim !== undefined) this.#found(claim);
      const free = ids.filter((_, i) => claims[i] === undefined);
      await this.#waiting.arrived(free, this.#host.clock.now());
    } catch (error) {
      for (const sessionId of ids) this.#arrived.add(sessionId);
      throw error;
    }
  }

  /** Notes the holder of a session, as storage says. It is sent earlier arrivals now (dispatcher-4). */
  #found({ owner, sessionId, token, inbox, losses }: HeldClaim): void {
    const poller = this.#pollers.get(owner);
    if (poller === undefined) return;
    const known = this.#holdings.find(sessionId);
    this.#holdings.hold(sessionId, { runnerId: owner, token, inbox, losses });
    if (known?.runnerId !== owner || known.inbox < inbox) poller.arrived(sessionId, true);
  }

  /** dispatcher-5. */
  async #lookAtHeld(): Promise<void> {
    const pollers = [...this.#pollers.values()].filter(({ waiting }) => waiting !== undefined);
    if (pollers.length > 0) this.#wakeAt(SCAN_MS);
    const isDue = this.#host.clock.monotonic() - this.#lookedAt >= SCAN_MS;
    if (isDue) this.#lookedAt = this.#host.clock.monotonic();
    await Promise.all(
      pollers.map(async (poller) => {
        if (!isDue && this.#looked.has(poller)) return;
        this.#looked.add(poller);
        for (const sessionId of await this.#holdings.look(poller.runnerId)) poller.arrived(sessionId, true);
      }),
    );
  }

  async #offers(): Promise<readonly Offer[]> {
    const offers: Offer[] = [];
    for (const [runnerId, poller] of this.#pollers) {
      const { waiting } = poller;
      const runner = waiting && (await this.#host.registry.find(runnerId));
      if (waiting === undefined || runner === undefined) continue;
      if (poller.drains(runner.draining === true) || waiting.free === 0) continue;
      const held = this.#holdings.countOf(runnerId);
      const suspectSince = this.#holdings.suspectSince(runnerId);
      offers.push({
        runnerId,
        free: waiting.free,
        since: waiting.since,
        held,
        ...(suspectSince === undefined ? {} : { suspectSince }),
        ...fitnessOf(runner),
      });
    }
    return offers;
  }

  /** dispatcher-8. */
  async #prune(): Promise<void> {
    this.#prunedAt = this.#host.clock.monotonic();
    await this.#waiting.prune(this.#host.clock.now());
  }

  /** Reads due sessions again when a scan is due (waiting-sessions-1). */
  async #lookAround(offers: readonly Offer[]): Promise<void> {
    const { clock } = this.#host;
    const agents = new Set(offers.flatMap((offer) => [...offer.agents.keys()]));
    const isOld = clock.monotonic() - this.#scannedAt >= SCAN_MS;
    const isNarrow = [...agents].some((agent) => !this.#scannedAgents.has(agent));
    if (this.#isScanWanted || isOld || isNarrow) {
      this.#isScanWanted = false;
      this.#scannedAt = clock.monotonic();
      this.#scannedAgents = agents;
      const nextAt = await this.#waiting.scan([...agents], clock.now());
      for (const { sessionId } of this.#waiting.all) this.#holdings.drop(sessionId); // No runner holds a due session.
      if (nextAt !== undefined && nextAt - clock.now() < SCAN_MS) {
        this.#isScanWanted = true;
        this.#wakeAt(Math.max(1, nextAt - clock.now()));
      }
    } else if (this.#waiting.isBehind) {
      await this.#waiting.readMore(clock.now());
    }
  }

  // ---- claims ------------------------------------------------------------------------------------------------------

  async #claimAll(matches: readonly Match[]): Promise<ReadonlyMap<string, GivenClaim[]>> {
    const given = new Map<string, GivenClaim[]>();
    await Promise.all(
      matches.map(async (found) => {
        const claim = await this.#claimOrOwe(found);
        if (claim === undefined) return;
        const list = given.get(found.runnerId);
        if (list === undefined) given.set(found.runnerId, [claim]);
        else list.push(claim);
      }),
    );
    return given;
  }

  /** dispatcher-6. */
  async #claimOrOwe(found: Match): Promise<GivenClaim | undefined> {
    const asked: AskedClaim = {};
    try {
      return await this.#claim(found, asked);
    } catch (error) {
      const { sessionId, runnerId } = found;
      this.#host.warn(`session ${sessionId} could not be given to a runner`, error);
      this.#owe(sessionId, { runnerId, asked });
      return undefined;
    }
  }

  #owe(sessionId: string, owed: Omit<Owed, "at">): void {
    this.#holdings.drop(sessionId);
    this.#owed.set(sessionId, { ...owed, at: this.#host.clock.monotonic() + AGAIN_MS });
    this.#wakeAt(AGAIN_MS);
  }

  /** dispatcher-6. */
  async #giveBackOwed(): Promise<void> {
    const now = this.#host.clock.monotonic();
    const owed = [...this.#owed].filter(([, { at }]) => at <= now);
    await Promise.all(
      owed.map(async ([sessionId, { runnerId, asked }]) => {
        try {
          asked.token ??= await this.#tokenOf(sessionId, runnerId, asked);
          if (asked.token !== undefined)
            await this.#host.commit([{ type: "release_claim", sessionId, token: asked.token }]);
          this.#owed.delete(sessionId);
          this.#isScanWanted = true;
        } catch (error) {
          this.#host.warn(`a claim of session ${sessionId} could not be released`, error);
          this.#owe(sessionId, { runnerId, asked });
        }
      }),
    );
  }

  /** The token of the claim that was asked for, if it was made and is held. */
  async #tokenOf(sessionId: string, runnerId: string, { until }: AskedClaim): Promise<number | undefined> {
    const claim = await this.#holdings.ask(sessionId);
    return claim?.owner === runnerId && claim.until === until ? claim.token : undefined;
  }

  /** The claim of a match, or `undefined`. @param asked filled with what is known, also when this throws. */
  async #claim({ sessionId, runnerId, isAlone }: Match, asked: AskedClaim): Promise<GivenClaim | undefined> {
    const { storage, clock, registry, lossesMax, claimed } = this.#host;
    if (!isAlone) await this.#pardonHeldBy(runnerId);
    const { since, suspectSince } = this.#waiting.get(sessionId) ?? {};
    this.#waiting.remove(sessionId);
    // The runner may trust a longer lease with which it registered: no other may claim the session before.
    const leaseMs = Math.max(this.#host.leaseMs, (await registry.find(runnerId))?.leaseMs ?? 0);
    const now = clock.now();
    const askedAt = clock.monotonic();
    asked.until = now + leaseMs;
    const result = await storage.claim({ sessionId, owner: runnerId, now, leaseMs, unlessHeld: true });
    if (result.status === "busy" && registry.knows(result.owner)) {
      // Another coordinator gave the session to its runner: arrivals are for that runner (dispatcher-4).
      const claim = await this.#holdings.ask(sessionId);
      if (claim !== undefined) this.#found(claim);
    }
    if (result.status !== "claimed") return undefined;
    this.#holdings.drop(sessionId);
    const { token } = result;
    let { losses } = result;
    asked.token = token;
    let snapshot = await storage.load(sessionId);
    if (snapshot === undefined || !hasSomethingToDo(snapshot, now)) {
      await this.#host.commit([{ type: "release_claim", sessionId, token }]);
      return undefined;
    }
    if (isPoison(losses, lossesMax)) {
      await this.#host.commit(park(snapshot.session, token, lossesMax));
      return undefined;
    }
    if (isSuspect(losses) && suspectSince === undefined) {
      await this.#host.commit([{ type: "release_claim", sessionId, token }]);
      this.#waiting.suspected(snapshot.session, now); // dispatcher-7.
      return undefined;
    }
    if (isSuspect(losses) && !isAlone) {
      await this.#host.commit(pardon(snapshot.session, token));
      losses = 0;
      snapshot = (await storage.load(sessionId))!;
    }
    const { nextSeq, updatedAt, inbox } = snapshot.session;
    this.#holdings.hold(sessionId, { runnerId, token, inbox, losses, read: inbox, givenAt: now });
    claimed(Math.max(0, now - (since ?? now)));
    const asGiven = { nextSeq, updatedAt };
    return { sessionId, token, askedAt, leaseMs, asGiven, snapshot: JSON.stringify(snapshot) };
  }

  /** rules-6. If storage fences the batch, a commit of the holder has cleared the losses. */
  async #pardonHeldBy(runnerId: string): Promise<void> {
    for (const [sessionId, holding] of this.#holdings.suspectsOf(runnerId)) {
      const row = await this.#host.storage.reader.session(sessionId);
      if (row !== undefined) await this.#host.commit(pardon(row, holding.token));
      this.#holdings.hold(sessionId, { ...holding, losses: 0 });
    }
  }

  #answer(given: ReadonlyMap<string, readonly GivenClaim[]>): void {
    for (const [runnerId, claims] of given) {
      const poller = this.#pollers.get(runnerId);
      // dispatcher-2. After a slow claim, the lease may end before the runner reads the answer.
      const oldest = this.#host.clock.monotonic() - ACK_MS;
      const fresh = claims.filter(({ askedAt }) => askedAt > oldest);
      // The poll may have ended since, or ask for fewer sessions.
      const slots = Math.min(fresh.length, poller?.waiting?.free ?? 0);
      const sent = fresh.slice(0, slots);
      this.#giveBack(claims.filter((claim) => !sent.includes(claim)));
      if (slots > 0) poller?.waiting?.answer(sent);
    }
  }

  /** dispatcher-2. */
  #expectUse(poller: Poller, { pollId }: PollAnswer): void {
    this.#host.clock.setTimer(() => this.#giveBackUnused(poller.expire(pollId)), ACK_MS, true);
  }

  /** dispatcher-2. Storage checks whether the runner used the claim through another coordinator. */
  #giveBackUnused(claims: readonly GivenClaim[]): void {
    this.#giveBack(claims, ({ asGiven }) => ({ ifUnchanged: asGiven }));
  }

  #giveBack(
    claims: readonly GivenClaim[],
    only: (claim: GivenClaim) => Pick<ReleaseClaim, "ifUnchanged"> = () => ({}),
  ): void {
    if (claims.length === 0) return;
    const releases = claims.map((claim) => {
      const { sessionId, token } = claim;
      return { type: "release_claim", sessionId, token, ...only(claim) } as const;
    });
    this.#host.commit(releases).then(
      (results) => {
        claims.forEach(({ sessionId }, i) => {
          if (results[i]?.status === "released") this.#holdings.drop(sessionId);
        });
        this.#isScanWanted = true;
        this.#wake(JOIN_MS);
      },
      (error: unknown) => this.#host.warn("claims that reached no runner could not be released", error),
    );
  }

  #pollerOf(runnerId: string): Poller {
    const poller = this.#pollers.get(runnerId) ?? new Poller(runnerId, this.#host.clock.monotonic());
    this.#pollers.set(runnerId, poller);
    return poller;
  }
}

function countOf(given: ReadonlyMap<string, readonly GivenClaim[]>): number {
  return [...given.values()].flat().length;
}
