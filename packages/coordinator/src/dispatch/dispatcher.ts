// `Dispatcher` matches waiting polls of runners with sessions that have something to do, and claims those.
//
//   poll ─► poller ─┐
//                   ├─► cycle: scan what is due ─► match (rules.ts) ─► claim ─► load ─► answer
//   arrival ────────┘
//
//   dispatcher-1. Only the claim in storage gives a session to a runner. Everything in this class may be
//       forgotten at any time: a coordinator's end loses no claim and gives none twice.
//   dispatcher-2. Losing every notice costs time and nothing more. While a poll waits, the dispatcher asks
//       storage every `SCAN_MS` which sessions are due, and what has arrived for sessions of waiting runners.
//   dispatcher-3. A runner that has been silent here for `FORGET_MS` is forgotten. Candidates for runners
//       that poll elsewhere are compared with storage (due-scans-2). Memory here therefore does not grow
//       with all the sessions and runners that ever existed.
//
// `cycles.ts` says when a cycle begins, and `due-scans.ts` when storage is asked for due sessions.
// `claiming.ts` claims and releases sessions. `arrival-router.ts` decides which runner is sent an arrival.
// The dispatcher knows no requests and no callers. The service decides which caller may poll as which runner.

import { defined, MINUTE_MS, type Session } from "@holdfast/core";
import { fitnessOf, type StoredRunner } from "../store/registry.ts";
import { ArrivalRouter } from "./arrival-router.ts";
import { Claiming, type ClaimingHost } from "./claiming.ts";
import { Cycles, JOIN_MS } from "./cycles.ts";
import { DueScans } from "./due-scans.ts";
import { EarlierCode } from "./earlier-code.ts";
import { Holdings } from "./holdings.ts";
import { DRAIN, Pollers, type PollAnswer, type PollRequest, type RunnerCommand } from "./poller.ts";
import { isKept, match, type Offer, type Suspect, type Trial } from "./rules.ts";
import { SCAN_MS, WaitingSessions } from "./waiting-sessions.ts";

export const FORGET_MS = 10 * MINUTE_MS;

export class Dispatcher {
  readonly #host: ClaimingHost;
  readonly #pollers: Pollers;
  readonly #holdings: Holdings;
  readonly #waiting: WaitingSessions;
  readonly #cycles: Cycles;
  readonly #scans: DueScans;
  readonly #router: ArrivalRouter;
  readonly #claiming: Claiming;
  readonly #earlier: EarlierCode;
  /** The waiting suspects that the last cycle kept runners for, by these runners. */
  #keptFor = new Map<string, string>();
  readonly #unsubscribe: () => void;

  constructor(host: ClaimingHost) {
    const { storage, clock, leaseMs } = host;
    this.#host = host;
    this.#pollers = new Pollers(clock);
    this.#holdings = new Holdings(storage, clock);
    this.#earlier = new EarlierCode(host, this.#pollers);
    this.#waiting = new WaitingSessions(storage);
    this.#cycles = new Cycles(clock, () => this.#runCycle(), host.warn);
    const known = { holdings: this.#holdings, waiting: this.#waiting, cycles: this.#cycles };
    this.#scans = new DueScans({ clock, ...known });
    this.#router = new ArrivalRouter({ clock, leaseMs, pollers: this.#pollers, ...known });
    const parts = { pollers: this.#pollers, router: this.#router, scans: this.#scans, ...known };
    this.#claiming = new Claiming(host, parts);
    this.#unsubscribe = storage.subscribe((arrival) => this.#router.route(arrival));
  }

  /** Answers as soon as there is something to send, or with nothing after `waitMs` (poller-1, poller-4). */
  async poll(request: PollRequest, runner: StoredRunner, signal?: AbortSignal): Promise<PollAnswer> {
    const { pollId, free, waitMs } = request;
    const poller = this.#pollers.of(runner.runnerId);
    this.seen(runner.runnerId);
    const known = poller.answerOf(pollId);
    // mutant: repeated-poll-answered-anew
    if (known !== undefined) return known;
    if (poller.isOvertaken(request)) return { pollId, claims: [], arrivals: [], commands: [] };
    this.#claiming.releaseUnused(poller.acknowledge(request));
    poller.drains(runner.draining === true);
    poller.startsTrials = request.startsTrials === true;
    poller.kept = request.kept && new Set(request.kept.map(({ sessionId }) => sessionId));
    const slots = runner.draining === true ? 0 : Math.min(free, runner.maxRuns);
    const answer = poller.wait(pollId, slots, this.#host.clock.monotonic());
    const { waiting } = poller;
    if (this.#cycles.isClosed || signal?.aborted === true) waiting?.answer([]);
    const end = (): void => waiting?.answer([]);
    const cancel = waitMs > 0 ? this.#host.clock.setTimer(end, waitMs) : () => {};
    signal?.addEventListener("abort", end, { once: true });
    this.#cycles.wake(0);
    if (waitMs <= 0) void this.#cycles.quiet().then(end);
    try {
      const sent = await answer;
      if (signal?.aborted !== true) poller.lastSeenAt = this.#host.clock.monotonic(); // The runner has waited until now.
      if (sent.claims.length > 0) this.#claiming.expectUse(poller, sent);
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
    // mutant: foreign-runner-writes
    if (claim?.owner !== runnerId) return false;
    this.#pollers.of(runnerId);
    this.#router.found(claim);
    return true;
  }

  /** Which runners with earlier code keep which sessions. */
  get earlierCode(): EarlierCode {
    return this.#earlier;
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
    return this.#pollers.quietFor(runnerId);
  }

  /** How often in a row a waiting session was lost, if this coordinator knows it as a suspect (rules-6). */
  lossesOf(sessionId: string): number | undefined {
    return this.#waiting.get(sessionId)?.losses;
  }

  /** rules-6. The suspect that a runner holds alone, or is kept for. */
  keptFor(runnerId: string): Suspect | undefined {
    const held = this.#holdings.countOf(runnerId);
    const suspectSince = this.#holdings.suspectSince(runnerId);
    const now = this.#host.clock.now();
    if (suspectSince !== undefined && isKept({ held, suspectSince }, now))
      for (const [sessionId, { losses }] of this.#holdings.suspectsOf(runnerId))
        return { sessionId, losses, isTried: true };
    const sessionId = this.#keptFor.get(runnerId);
    const losses = sessionId === undefined ? undefined : this.lossesOf(sessionId);
    return sessionId === undefined || losses === undefined
      ? undefined
      : { sessionId, losses, isTried: false };
  }

  /** For metrics: the waiting polls, the known waiting sessions, and the start of the longest wait. */
  get load(): { readonly polls: number; readonly waiting: number; readonly oldestSince: number | undefined } {
    const sinces = this.#waiting.all.map(({ since }) => since);
    return {
      polls: this.#pollers.waiting.length,
      waiting: sinces.length,
      oldestSince: sinces.length === 0 ? undefined : sinces.reduce((a, b) => Math.min(a, b)),
    };
  }

  /** Adds a new session that has something to do. */
  created(session: Session): void {
    this.#waiting.add(session, this.#host.clock.now());
    this.#cycles.wake(0);
  }

  /** A runner uses or renews a claim, so the claim has arrived. @param inbox its place in the inbox. */
  used(runnerId: string, sessionId: string, inbox = 0): void {
    this.#pollers.find(runnerId)?.used(sessionId);
    this.#holdings.knows(sessionId, inbox);
  }

  /** A runner has polled, or renewed its claims. @param blockedBy the step that blocks its event loop. */
  seen(runnerId: string, blockedBy?: string): void {
    const poller = this.#pollers.of(runnerId);
    poller.lastSeenAt = this.#host.clock.monotonic();
    poller.blockedBy = blockedBy;
  }

  /** The step that blocks the event loop of a runner, as its watchdog said when it renewed last. */
  blockedBy(runnerId: string): string | undefined {
    return this.#pollers.find(runnerId)?.blockedBy;
  }

  /** A runner no longer holds the session, which may have something to do. */
  released(sessionId: string, isEnded: boolean): void {
    const runnerId = this.#holdings.drop(sessionId);
    if (isEnded) return;
    if (runnerId !== undefined) this.#waiting.ran(sessionId, runnerId);
    this.#scans.want();
    this.#cycles.wake(JOIN_MS);
  }

  /** Makes a runner drain. The command is sent until the runner acknowledges it (poller-3). */
  drain(runnerId: string): void {
    this.#pollers.of(runnerId).command(DRAIN);
    this.#cycles.wake(0);
  }

  /** Makes a runner stop a session. The command is sent until the runner acknowledges it (poller-3). */
  stop(runnerId: string, sessionId: string): void {
    this.#pollers.of(runnerId).command({ commandId: `stop:${sessionId}`, type: "stop", sessionId });
    this.#cycles.wake(0);
  }

  /** Sends a command whose answer is awaited. @returns whether the runner polls this coordinator. */
  ask(runnerId: string, command: RunnerCommand): boolean {
    if (this.quietFor(runnerId) >= this.#host.leaseMs) return false;
    this.#pollers.of(runnerId).command(command);
    this.#cycles.wake(0);
    return true;
  }

  /** Sends a command no longer, because nobody waits for its answer. @returns whether the runner has not got it. */
  withdraw(runnerId: string, commandId: string): boolean {
    return this.#pollers.find(runnerId)?.withdraw(commandId) === true;
  }

  /** Forgets a runner that is gone. Its claims end with their leases. */
  forget(runnerId: string): void {
    this.#pollers.forget(runnerId);
    this.#holdings.forget(runnerId);
  }

  /** dispatcher-3. */
  sweep(): void {
    const before = this.#host.clock.monotonic() - FORGET_MS;
    for (const { runnerId, waiting, lastSeenAt, madeAt } of this.#pollers.all)
      if (waiting === undefined && Math.max(lastSeenAt, madeAt) <= before) this.forget(runnerId);
  }

  /** Answers waiting polls with nothing, and releases the claims that are being made. */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#cycles.close();
    for (const { waiting } of this.#pollers.all) waiting?.answer([]);
    await this.#cycles.quiet();
  }

  async #runCycle(): Promise<void> {
    await this.#claiming.releaseOwed();
    await this.#router.routeRest();
    await this.#router.look();
    const offers = await this.#offers();
    const kept = new Map<string, string>();
    if (offers.length > 0) {
      await this.#scans.scan(offers);
      const free = this.#waiting.all.filter(({ sessionId }) => !this.#claiming.owes(sessionId));
      const placed = await this.#earlier.place(free);
      const matches = match(offers, placed, this.#host.clock.now(), ({ type, runnerId, suspect }: Trial) => {
        if (type === "kept") kept.set(runnerId, suspect.sessionId);
        else this.#pollers.find(runnerId)?.wantTrial(suspect, this.#host.clock.monotonic());
      });
      if (matches.length === 0) this.#waiting.widen();
      const given = await this.#claiming.give(matches);
      // A session could not be claimed, so that its runner is matched again, until nothing is left to match.
      if (this.#waiting.isBehind || given < matches.length) this.#cycles.repeat();
      this.#cycles.wakeAfter(SCAN_MS); // dispatcher-2.
    } else await this.#scans.prune();
    this.#keptFor = kept;
    for (const { waiting, hasNews } of this.#pollers.all) if (hasNews) waiting?.answer([]);
  }

  async #offers(): Promise<readonly Offer[]> {
    const offers: Offer[] = [];
    for (const poller of this.#pollers.waiting) {
      const { runnerId } = poller;
      const runner = await this.#host.registry.find(runnerId);
      const { waiting } = poller; // Its poll may have ended while the registry was read.
      if (waiting === undefined || runner === undefined) continue;
      if (poller.drains(runner.draining === true) || waiting.free === 0) continue;
      const held = this.#holdings.countOf(runnerId);
      const suspectSince = this.#holdings.suspectSince(runnerId);
      offers.push({
        runnerId,
        free: waiting.free,
        since: waiting.since,
        held,
        isSuperseded: this.#earlier.isSuperseded(runner),
        ...(runner.trialsOf === undefined ? {} : { trials: "only" as const }),
        ...(poller.startsTrials ? { trials: "starts" as const } : {}),
        // mutant: suspects-not-stored
        ...defined({ suspectSince }),
        ...fitnessOf(runner),
      });
    }
    return offers;
  }
}
