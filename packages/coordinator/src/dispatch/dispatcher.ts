// Dispatch: polls of runners that wait on one side, sessions with something to do on the other, and the rules between them.
//
//   poll ─► seat ─┐
//                 ├─► round: scan what is due ─► match (rules.ts) ─► claim ─► load ─► answer
//   arrival ──────┘
//
//   dispatcher-1. The claim in storage is what gives a session to a runner; everything here may be forgotten at any
//       time. So a coordinator's end loses no claim and gives none twice.
//   dispatcher-2. A claim that no poll acknowledges and nobody uses is given back after `ACK_MS`.
//   dispatcher-3. One round at a time. A poll and what is known to be there begin one at once, and what comes meanwhile
//       is for the next; only what has to be asked of storage waits for others, for `JOIN_MS`.
//   dispatcher-4. What arrives for a session that a runner holds is told to that runner, to nobody else.
//   dispatcher-5. Losing every notice costs time and nothing more: while somebody waits, what is due, and what has
//       arrived for what those hold who wait, is asked every `SCAN_MS`.
//   dispatcher-6. What storage could not do for one session leaves the others of its round as they are. Whether that
//       one is claimed is found out, and the claim given back, `AGAIN_MS` later: until then it is nobody's candidate.
//       Where storage did not say which claim was made, one that another coordinator has given since is told by its
//       lease, and left alone.
//   dispatcher-7. Only the claim of a session says how often it was lost. Who learns so that it is a suspect gives the
//       claim back, which counts as nothing, and matches it anew as what it is. A suspect that gets company is pardoned
//       first, in storage.
//   dispatcher-8. What is known of a runner that was not heard of here for `FORGET_MS` is forgotten, and what waits for
//       runners that poll elsewhere is compared with what is due every `PRUNE_MS`: so nothing here grows with all the
//       sessions and runners there ever were.
//
// It knows no requests and no callers: who may poll as whom is decided before.

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
import { DRAIN, Seat, type GivenClaim, type PollAnswer, type PollRequest } from "./seat.ts";
import { SCAN_MS, WaitingSessions } from "./waiting-sessions.ts";

export const ACK_MS = 2_000;
export const FORGET_MS = 10 * 60_000;
export const PRUNE_MS = 60_000;
const JOIN_MS = 50;
/** A round that storage could not answer is tried again after so long. */
const AGAIN_MS = 500;

export interface DispatcherHost {
  readonly storage: AgentStorage;
  readonly commit: Commit;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly leaseMs: number;
  /** rules-4. How often a session may be lost with a runner that holds nothing else. */
  readonly lossesMax: number;
  /** Told of what storage did not do. Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
  /** Told of each claim that was given, and how long the session had waited for it. Must not throw. */
  readonly claimed: (waitedMs: number) => void;
}

/** A claim that may have been made, and that nobody was told of (dispatcher-6). */
interface Owed {
  readonly runnerId: string;
  readonly asked: AskedClaim;
  readonly at: number;
}

interface AskedClaim {
  /** When its lease ends, unless it was renewed. */
  until?: number;
  /** `undefined` as long as storage has not said that it was made. */
  token?: number | undefined;
}

export class Dispatcher {
  readonly #host: DispatcherHost;
  readonly #seats = new Map<string, Seat>();
  readonly #holdings: Holdings;
  readonly #waiting: WaitingSessions;
  readonly #owed = new Map<string, Owed>();
  readonly #unsubscribe: () => void;
  /** Runners of which storage was asked what they hold. */
  readonly #looked = new WeakSet<Seat>();
  /** Sessions something arrived for since the last round. */
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

  /** Answers claims, arrivals and commands as soon as there are any, or nothing after `waitMs` (seat-1 and seat-4). */
  async poll(request: PollRequest, runner: StoredRunner, signal?: AbortSignal): Promise<PollAnswer> {
    const { pollId, free, waitMs } = request;
    const seat = this.#seatOf(runner.runnerId);
    this.heard(runner.runnerId);
    const known = seat.answerOf(pollId);
    if (known !== undefined) return known;
    if (seat.isOvertaken(request)) return { pollId, claims: [], arrivals: [], commands: [] };
    this.#giveBackUnused(seat.acknowledge(request));
    seat.drains(runner.draining === true);
    const slots = runner.draining === true ? 0 : Math.min(free, runner.maxRuns);
    const answer = seat.wait(pollId, slots, this.#host.clock.monotonic());
    const { waiting } = seat;
    if (this.#isClosed || signal?.aborted === true) waiting?.answer([]);
    const end = (): void => waiting?.answer([]);
    const cancel = waitMs > 0 ? this.#host.clock.setTimer(end, waitMs) : () => {};
    signal?.addEventListener("abort", end, { once: true });
    this.#wake(0);
    if (waitMs <= 0) void this.#quiet().then(end);
    try {
      const told = await answer;
      if (signal?.aborted !== true) seat.heardAt = this.#host.clock.monotonic(); // It has waited until now.
      if (told.claims.length > 0) this.#expectUse(seat, told);
      return told;
    } finally {
      cancel();
      signal?.removeEventListener("abort", end);
    }
  }

  /**
   * Whether a runner holds a session. What is not known here, or contradicts what is, storage is asked, and of a runner that was not
   * heard of here for a lease: it may have lost it elsewhere.
   *
   * @param token under which it wants to write, if it does: storage looks at that itself.
   */
  async holds(runnerId: string, sessionId: string, token?: number): Promise<boolean> {
    const known = this.#holdings.find(sessionId);
    const isSure =
      token === undefined ? this.quietFor(runnerId) < this.#host.leaseMs : token === known?.token;
    if (known?.runnerId === runnerId && isSure) return true;
    const claim = await this.#holdings.ask(sessionId);
    if (claim?.owner !== runnerId) return false;
    this.#seatOf(runnerId);
    this.#found(claim);
    return true;
  }

  /** What runners hold, as far as is known here. */
  get holdings(): Holdings {
    return this.#holdings;
  }

  /** When a claim was given, if it was here. */
  givenAt(sessionId: string, token: number): number | undefined {
    const held = this.#holdings.find(sessionId);
    return held?.token === token ? held.givenAt : undefined;
  }

  /** For how long a runner was not heard of here: not at all while it polls, for ever when it never did. */
  quietFor(runnerId: string): number {
    const seat = this.#seats.get(runnerId);
    if (seat?.waiting !== undefined) return 0;
    return this.#host.clock.monotonic() - (seat?.heardAt ?? -Infinity);
  }

  /** Whether a session that waits is known here to be a suspect (rules-6). */
  isSuspect(sessionId: string): boolean {
    return this.#waiting.get(sessionId)?.suspectSince !== undefined;
  }

  /** Waiting polls, sessions that wait as far as is known, and the age of the oldest: for metrics. */
  get load(): { readonly polls: number; readonly waiting: number; readonly oldestSince: number | undefined } {
    const sinces = this.#waiting.all.map(({ since }) => since);
    return {
      polls: [...this.#seats.values()].filter(({ waiting }) => waiting !== undefined).length,
      waiting: sinces.length,
      oldestSince: sinces.length === 0 ? undefined : sinces.reduce((a, b) => Math.min(a, b)),
    };
  }

  /** A session was made that has something to do. */
  created(session: Session): void {
    this.#waiting.add(session, this.#host.clock.now());
    this.#wake(0);
  }

  /** A runner uses a claim, or says that it holds it: it has arrived. @param inbox how much it knows to have arrived. */
  used(runnerId: string, sessionId: string, inbox = 0): void {
    this.#seats.get(runnerId)?.used(sessionId);
    this.#holdings.knows(sessionId, inbox);
  }

  /** A runner says that it lives. */
  heard(runnerId: string): void {
    this.#seatOf(runnerId).heardAt = this.#host.clock.monotonic();
  }

  /** A runner holds it no longer; there may be something to do for it. */
  released(sessionId: string, isEnded: boolean): void {
    const runnerId = this.#holdings.drop(sessionId);
    if (isEnded) return;
    if (runnerId !== undefined) this.#waiting.ran(sessionId, runnerId);
    this.#isScanWanted = true;
    this.#wake(JOIN_MS);
  }

  /** Have a runner drain; told until it has heard it (seat-3). */
  drain(runnerId: string): void {
    this.#seatOf(runnerId).command(DRAIN);
    this.#wake(0);
  }

  /** Have a runner stop what it does with a session; told until it has heard it (seat-3). */
  stop(runnerId: string, sessionId: string): void {
    this.#seatOf(runnerId).command({ commandId: `stop:${sessionId}`, type: "stop", sessionId });
    this.#wake(0);
  }

  /** It is gone: what it holds runs out by its lease. */
  forget(runnerId: string): void {
    const seat = this.#seats.get(runnerId);
    seat?.waiting?.answer([]);
    this.#seats.delete(runnerId);
    this.#holdings.forget(runnerId);
  }

  /** dispatcher-8. */
  sweep(): void {
    const before = this.#host.clock.monotonic() - FORGET_MS;
    for (const { runnerId, waiting, heardAt, madeAt } of this.#seats.values())
      if (waiting === undefined && Math.max(heardAt, madeAt) <= before) this.forget(runnerId);
  }

  /** Polls that wait are answered with nothing; claims under way are made and given back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#cancelTimer?.();
    for (const { waiting } of this.#seats.values()) waiting?.answer([]);
    await this.#quiet();
  }

  // ---- rounds ------------------------------------------------------------------------------------------------------

  #onArrival({ sessionId, awaited }: Arrival): void {
    const holder = this.#seats.get(this.#holdings.find(sessionId)?.runnerId ?? "");
    // Otherwise what it held may be its own no longer.
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
    if (this.#isClosed) return; // The round that was under way then leaves nothing behind.
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

  /** Until no round is under way. */
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
      // Who was matched with what is not to be had is matched again, until nothing is left to match.
      if (this.#waiting.isBehind || countOf(given) < matches.length) this.#isAgain = true;
      this.#wakeAt(SCAN_MS); // dispatcher-5.
    } else if (this.#host.clock.monotonic() - Math.max(this.#prunedAt, this.#scannedAt) >= PRUNE_MS)
      await this.#prune();
    for (const { waiting, hasNews } of this.#seats.values()) if (hasNews) waiting?.answer([]);
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

  /**
   * Storage says who holds a session. What came before that was known here was told to nobody (dispatcher-4); where its runner is not known
   * either, it is found when that is.
   */
  #found({ owner, sessionId, token, inbox, losses }: HeldClaim): void {
    const seat = this.#seats.get(owner);
    if (seat === undefined) return;
    const known = this.#holdings.find(sessionId);
    this.#holdings.hold(sessionId, { runnerId: owner, token, inbox, losses });
    if (known?.runnerId !== owner || known.inbox < inbox) seat.arrived(sessionId, true);
  }

  /** dispatcher-5. */
  async #lookAtHeld(): Promise<void> {
    const seats = [...this.#seats.values()].filter(({ waiting }) => waiting !== undefined);
    if (seats.length > 0) this.#wakeAt(SCAN_MS);
    const isDue = this.#host.clock.monotonic() - this.#lookedAt >= SCAN_MS;
    if (isDue) this.#lookedAt = this.#host.clock.monotonic();
    await Promise.all(
      seats.map(async (seat) => {
        if (!isDue && this.#looked.has(seat)) return;
        this.#looked.add(seat);
        for (const sessionId of await this.#holdings.look(seat.runnerId)) seat.arrived(sessionId, true);
      }),
    );
  }

  async #offers(): Promise<readonly Offer[]> {
    const offers: Offer[] = [];
    for (const [runnerId, seat] of this.#seats) {
      const { waiting } = seat;
      const runner = waiting && (await this.#host.registry.find(runnerId));
      if (waiting === undefined || runner === undefined) continue;
      if (seat.drains(runner.draining === true) || waiting.free === 0) continue;
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

  /** waiting-sessions-1. */
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
      for (const { sessionId } of this.#waiting.all) this.#holdings.drop(sessionId); // What is due, nobody holds.
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

  /** Of the claim that was asked for, if it was made and is held. */
  async #tokenOf(sessionId: string, runnerId: string, { until }: AskedClaim): Promise<number | undefined> {
    const claim = await this.#holdings.ask(sessionId);
    return claim?.owner === runnerId && claim.until === until ? claim.token : undefined;
  }

  /**
   * The claim of a match, or nothing when the session is not to be had.
   *
   * @param asked is filled with what is known of it.
   */
  async #claim({ sessionId, runnerId, isAlone }: Match, asked: AskedClaim): Promise<GivenClaim | undefined> {
    const { storage, clock, registry, lossesMax, claimed } = this.#host;
    if (!isAlone) await this.#pardonHeldBy(runnerId);
    const { since, suspectSince } = this.#waiting.get(sessionId) ?? {};
    this.#waiting.remove(sessionId);
    // What it registered with may have been configured otherwise: nobody else may have it while its runner believes to.
    const leaseMs = Math.max(this.#host.leaseMs, (await registry.find(runnerId))?.leaseMs ?? 0);
    const now = clock.now();
    const askedAt = clock.monotonic();
    asked.until = now + leaseMs;
    const result = await storage.claim({ sessionId, owner: runnerId, now, leaseMs, unlessHeld: true });
    if (result.status === "busy" && registry.knows(result.owner)) {
      // Its runner was given it elsewhere: what arrived is for that one (dispatcher-4).
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

  /** rules-6. A batch that storage refuses comes after one of its holder, which proves as much. */
  async #pardonHeldBy(runnerId: string): Promise<void> {
    for (const [sessionId, holding] of this.#holdings.suspectsOf(runnerId)) {
      const row = await this.#host.storage.reader.session(sessionId);
      if (row !== undefined) await this.#host.commit(pardon(row, holding.token));
      this.#holdings.hold(sessionId, { ...holding, losses: 0 });
    }
  }

  #answer(given: ReadonlyMap<string, readonly GivenClaim[]>): void {
    for (const [runnerId, claims] of given) {
      const seat = this.#seats.get(runnerId);
      // dispatcher-2. Storage was slow, or this process stood still: its lease may be over before its runner hears of it.
      const oldest = this.#host.clock.monotonic() - ACK_MS;
      const fresh = claims.filter(({ askedAt }) => askedAt > oldest);
      // It may have stopped waiting meanwhile, or wait for less.
      const slots = Math.min(fresh.length, seat?.waiting?.free ?? 0);
      const told = fresh.slice(0, slots);
      this.#giveBack(claims.filter((claim) => !told.includes(claim)));
      if (slots > 0) seat?.waiting?.answer(told);
    }
  }

  /** dispatcher-2. */
  #expectUse(seat: Seat, { pollId }: PollAnswer): void {
    this.#host.clock.setTimer(() => this.#giveBackUnused(seat.expire(pollId)), ACK_MS, true);
  }

  /** dispatcher-2. Its runner may use it through another coordinator: storage knows, in the transaction that would take it back. */
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

  #seatOf(runnerId: string): Seat {
    const seat = this.#seats.get(runnerId) ?? new Seat(runnerId, this.#host.clock.monotonic());
    this.#seats.set(runnerId, seat);
    return seat;
  }
}

function countOf(given: ReadonlyMap<string, readonly GivenClaim[]>): number {
  return [...given.values()].flat().length;
}
