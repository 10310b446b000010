// `LiveSessions`: the sessions this process drives, from their creation or claim to their release.
//
// A session here is *activating* (being created or claimed), *loading*, then *live* (it has a driver), then
// gone: ended, parked, abandoned, or released (`session-entries.ts`). Its waiters are notified when nothing
// more happens to it here.
//
//   live-sessions-2. A session is driven by at most one driver of this process, under one claim.
//   - One session's end, fault or abandonment touches no other.
//
// It does not know when sessions are due: `DueSessions` and callers say which sessions to run, and which have
// an arrival.

import {
  type ChangeResult,
  ConflictError,
  type CreateSession,
  createSession,
  type Entry,
  HoldfastError,
  isEnded,
  isLost,
  openAccount,
  refuseNewerSession,
  remainingOf,
  resumesAt,
  type Session,
  toHoldfastError,
} from "@holdfast/core";
import type { Agent } from "../agents/define.ts";
import type { HeldSession } from "../api/runtime-api.ts";
import { KnownAgents } from "../agents/agent-registry.ts";
import { findSession } from "../claims/find-session.ts";
import { driverWorld } from "./driver-world.ts";
import { DueSessions } from "./due-sessions.ts";
import { LastErrors } from "./last-errors.ts";
import type { LiveSessionsHost } from "./live-sessions-host.ts";
import type { Creator } from "../session/session-claim.ts";
import type { Departure } from "../session/session-outcome.ts";
import type { Driven, DriverOptions, DriverWorld } from "../session/driver-environment.ts";
import { SessionDriver } from "../session/session-driver.ts";
import { isOtherVersion, isStorageAway, sessionMoved, sessionNotFound } from "../session/session-errors.ts";
import { reasonOf, settledAs, settledBy, type Settled } from "../session/session-outcome.ts";
import { alarm } from "../loop/timers.ts";
import { Waiters } from "./outcome-waiters.ts";
import { OrderlyStop, type EndTasks } from "./orderly-stop.ts";
import { OwnChildren } from "./own-children.ts";
import type { Live, SessionEntries } from "./session-entries.ts";
import { SettlementQueue } from "./settlement-queue.ts";
import { UndrivenSessions } from "../claims/undriven-sessions.ts";

/** The delay before a session is tried again after storage was unavailable. */
const RETRY_MS = 500;
/** The same after an unforeseen error, which each try may meet again. */
const UNFORESEEN_RETRY_MS = 10_000;
const RELOADS_MAX = 3;
const EXISTS: ChangeResult = { status: "exists" };

export class LiveSessions {
  readonly #host: LiveSessionsHost;
  readonly #world: DriverWorld;
  readonly agents = new KnownAgents();
  readonly due: DueSessions;
  readonly children: OwnChildren;
  /** Sessions that a person resumed with other code: they accept drift whenever they are driven here. */
  readonly #drifting = new Set<string>();
  /** Drivers with tasks that wait until others have settled. */
  readonly settlements = new SettlementQueue(() => this.#host.timers);
  readonly #entries: SessionEntries;
  readonly #waiters: Waiters;
  readonly #undriven: UndrivenSessions;
  /** Why sessions were last abandoned here; removed when the session is driven here again. */
  readonly #abandoned = new LastErrors();
  #closed = false;
  readonly #stop = new OrderlyStop();

  constructor(host: LiveSessionsHost) {
    this.#host = host;
    this.#entries = host.entries;
    this.due = new DueSessions(host, this);
    this.children = new OwnChildren(host, this);
    this.#undriven = new UndrivenSessions({
      committer: host.committer,
      watchdog: host.watchdog,
      find: (sessionId) => this.find(sessionId),
      claims: host.claims,
      settle: (sessionId, settled) => this.#settle(sessionId, settled),
    });
    this.#waiters = new Waiters({
      storage: host.storage,
      isHere: (sessionId) => this.#entries.has(sessionId),
      isClosed: () => this.#closed,
      whyAbandoned: (sessionId) => this.#abandoned.get(sessionId),
      found: (sessionId, settled) => this.#settle(sessionId, settled),
      resumes: (at) => this.due.lookAt(at),
      failed: (sessionId, error) => this.failedToRun(sessionId, error),
    });
    this.#world = driverWorld(host, this);
  }

  get drivers(): readonly SessionDriver[] {
    return this.#entries.drivers;
  }

  get closed(): boolean {
    return this.#closed;
  }

  isLive(sessionId: string): boolean {
    return this.#entries.live(sessionId) !== undefined;
  }

  /** The entries of a session driven here that are not stored (K11). */
  unstored(sessionId: string, leaf: number): readonly Entry[] | undefined {
    return this.#entries.live(sessionId)?.driver.unstored(leaf);
  }

  /** Take sessions of these agents, and of the agents that they name, from now on. @throws ConflictError */
  know(agents: readonly Agent[]): void {
    const { replaceAgents, local } = this.#host;
    const isNew = this.agents.addAll(agents, replaceAgents, (agent) =>
      local?.registerAgent(agent, replaceAgents),
    );
    if (isNew && replaceAgents) for (const { sessionId } of this.drivers) this.renew(sessionId);
  }

  /** Load a session again that waits with a definition which was replaced (agent-registry-2). */
  renew(sessionId: string): void {
    if (this.agents.isReplaced(this.#entries.live(sessionId)?.agent))
      this.releaseWaiting(sessionId, () => void this.#wakeUp(sessionId));
  }

  /** The session as it is stored. @throws NotFoundError */
  find(sessionId: string): Promise<Session> {
    return findSession(this.#host.storage.reader, sessionId);
  }

  /**
   * Claim and drive it, unless it is driven already (live-sessions-2).
   *
   * @param read the session, if the caller has just read it: before the claim, only its constant members
   *   count.
   */
  activate(sessionId: string, read?: Session): Promise<void> {
    if (this.isLive(sessionId)) return Promise.resolve();
    const known = this.#entries.activation(sessionId);
    return known ?? this.#entries.activate(sessionId, () => this.#claimAndDrive(sessionId, read));
  }

  /** Set before the session is resumed, as an arrival may drive it before the call that resumes it does. */
  acceptDrift(sessionId: string, isAccepted: boolean): void {
    if (isAccepted) this.#drifting.add(sessionId);
    else this.#drifting.delete(sessionId);
  }

  async #claimAndDrive(sessionId: string, read: Session | undefined): Promise<void> {
    const session = read ?? (await this.find(sessionId));
    // mutant: newer-session-claimed
    refuseNewerSession(session); // Before the claim, so that a newer process may claim it at once.
    const agent = await this.#agentOf(session);
    const claim = await this.#host.trials.claim(sessionId);
    switch (claim.status) {
      case "claimed":
        if (this.#undriven.isPoison(sessionId)) return this.#undriven.parkPoison(sessionId, claim.token);
        return this.#host.trials.run(sessionId, claim, {
          drive: () => this.#drive(sessionId, agent, claim.token),
          park: (fault) => this.#undriven.park(sessionId, claim.token, "poison", fault),
        });
      case "busy":
        throw new ConflictError("session_claimed", `session ${sessionId} is being run by ${claim.owner}`, {
          fix: "wait for it, or signal or cancel it from here",
        });
      case "ended":
        this.children.delete(sessionId);
        if (this.#waiters.has(sessionId)) this.#settle(sessionId, settledAs(await this.find(sessionId)));
        return;
      case "moved":
        throw sessionMoved(sessionId, claim.to);
      case "not_found":
        throw sessionNotFound(sessionId);
    }
  }

  /**
   * Drive a session under a claim that the caller has, from this snapshot. A newer claim ends the driver of
   * an older one. The driver exists when this call returns, so that it receives every later arrival (S2).
   *
   * @throws HoldfastError when the session cannot run here: the caller releases the claim.
   */
  async drive(given: HeldSession): Promise<void> {
    const { sessionId, status, move } = given.snapshot.session;
    const driver = this.#entries.live(sessionId)?.driver;
    if (driver?.token === given.token) return;
    driver?.abandon(); // live-sessions-2.
    if (this.#entries.has(sessionId) || isEnded(status) || status === "paused" || move !== undefined)
      throw new ConflictError(
        "session_claimed",
        `session ${sessionId} cannot be driven now: it is ${status}`,
      );
    // mutant: given-claim-driven-late
    return this.#entries.activate(sessionId, () => this.#driveGiven(given));
  }

  async #driveGiven(given: HeldSession): Promise<void> {
    const { session } = given.snapshot;
    refuseNewerSession(session);
    if (this.#undriven.isPoison(session.sessionId))
      return this.#undriven.parkPoison(session.sessionId, given.token);
    let agent: Agent;
    try {
      agent = this.agents.of(session.sessionId, session.agent, this.#drifting.has(session.sessionId));
    } catch (error) {
      if (isOtherVersion(error))
        await this.#undriven.park(session.sessionId, given.token, "no_matching_runner", error);
      throw error;
    }
    return this.#driveLoaded(agent, given);
  }

  /** Run the agent to its first standstill and store the session with what it asked for, in one transaction. */
  create(agent: Agent, creation: CreateSession): Promise<ChangeResult> {
    const { sessionId } = creation;
    if (this.#entries.has(sessionId))
      return Promise.resolve(this.#entries.activation(sessionId)).then(() => EXISTS);
    const snapshot = {
      session: createSession(creation, this.#host.clock.now()),
      records: [],
      signals: [],
      states: [],
      holds: [],
      ...(creation.budget === undefined ? {} : { remaining: remainingOf([openAccount(creation.budget)], 0) }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<ChangeResult>();
    const claim: Creator = (first, onCreated, onError) =>
      this.#host.committer.submit({
        change: { ...creation, agent: this.#tracedAgent(creation), first },
        onResult: (result) => {
          const { driver } = this.#entries.live(sessionId) ?? {};
          if (result.status === "created" && result.token !== undefined) onCreated(result.token, result);
          else this.#entries.leave(sessionId); // Another session of this id is stored, so this one never existed.
          if (result.status !== "created") driver?.abandon();
          else if (result.token === undefined) this.due.lookAt(this.#host.clock.now()); // `withdrawn`.
          resolve(result);
        },
        onError: (error) => {
          onError(error);
          reject(error);
        },
      });
    const creating = this.#entries.activate(sessionId, async () => {
      this.#launch({ agent, snapshot, claim, acceptDrift: false }, 0, reject);
      await promise;
    });
    creating.catch(() => {}); // The caller gets the error from `promise`.
    return promise;
  }

  /** The agent with its current trace context, so that later processes continue the same trace. */
  #tracedAgent({ sessionId, agent }: CreateSession): CreateSession["agent"] {
    const traceparent = this.#host.traceparent(sessionId);
    return traceparent === undefined ? agent : { ...agent, traceparent };
  }

  arrived(sessionId: string, awaited: boolean): void {
    const state = this.#entries.state(sessionId);
    const payers = state?.type === "live" ? state.payers : [];
    this.settlements.settled([sessionId, ...payers]); // The arrival may be a raised budget, or the end of a child.
    if (state?.type === "live") state.driver.poke();
    else if (state?.type === "loading") state.arrived = true;
    else if (awaited && this.#isOurs(sessionId)) this.#host.trials.whenLooked(() => this.#wakeUp(sessionId));
  }

  #isOurs(sessionId: string): boolean {
    const isAdopted = this.#host.adopt && !this.#host.dispatched;
    return isAdopted || this.#waiters.has(sessionId) || this.children.has(sessionId);
  }

  async #wakeUp(sessionId: string): Promise<void> {
    if (this.#closed) return;
    try {
      const session = await this.#waiters.look(sessionId);
      if (session === undefined || isEnded(session.status) || session.move !== undefined) return;
      if (session.status !== "paused" && this.agents.latest(session.agent.name) !== undefined)
        await this.activate(sessionId, session);
      // It does not run here: if it is being cancelled, its deadline ends it.
      else if (session.cancel !== undefined) this.due.lookAt(session.cancel.deadlineAt);
    } catch (error) {
      this.failedToRun(sessionId, toHoldfastError(error));
    }
  }

  /** Warn that a session could not run, and try again if the error may pass (S2, D1). */
  failedToRun(sessionId: string, error: HoldfastError): void {
    const isElsewhere = error.code === "session_claimed"; // Another process got the same arrival and runs it.
    if (!isElsewhere) this.#host.warn(sessionId, error.message);
    const isAway = isStorageAway(error);
    const mustNotify = isAway || (isElsewhere && this.#waiters.areNotified) || this.#entries.has(sessionId);
    if (!mustNotify) this.#settle(sessionId, { status: "released", error });
    const { clock, timers } = this.#host;
    // mutant: unforeseen-error-not-retried
    if (error.code === "internal") this.due.lookAt(clock.now() + UNFORESEEN_RETRY_MS);
    // mutant: claim-not-retried
    if (!isAway || this.#closed) return;
    timers.after(
      alarm(() => void this.#wakeUp(sessionId)),
      RETRY_MS,
    );
  }

  /** Release a session that only waits; `onReleased` follows its commit. Answers whether it is still driven. */
  releaseWaiting(sessionId: string, onReleased: () => void): boolean {
    const driver = this.#entries.live(sessionId)?.driver;
    if (driver === undefined) return false;
    if (!driver.parked) return true;
    const { token } = driver;
    if (token === undefined) return false;
    this.#entries.leave(sessionId);
    this.#waiters.follow(sessionId);
    this.#host.watchdog?.clear(sessionId); // session-handle-1: it waits.
    driver.abandon();
    this.#host.local?.sessionLeft(sessionId, { isWaiting: true, hasEnded: false });
    this.#host.committer.submit({
      change: { type: "release_claim", sessionId, token },
      onResult: onReleased,
      onError: (error) => this.failedToRun(sessionId, error), // It is still claimed, so no other process would run it.
    });
    return false;
  }

  departed(driver: Driven, departure: Departure): void {
    this.#stop.left(driver);
    const { sessionId, token } = driver;
    const live = this.#entries.live(sessionId);
    if (live?.driver !== driver) return;
    this.#entries.leave(sessionId);
    this.settlements.delete(driver);
    this.due.forget(sessionId);
    this.#host.trials.over(sessionId);
    this.#host.local?.sessionLeft(sessionId, { isWaiting: false, hasEnded: departure.type === "ended" });
    if (departure.type !== "abandoned") this.#host.watchdog?.clear(sessionId);
    if (isRefusedByEnd(departure) && live.reloads < RELOADS_MAX && !this.#closed)
      return void this.#entries.activate(sessionId, () => this.#reload(live)); // live-sessions-2.
    if (token === undefined) live.onFailedCreation?.(whyNotStored(sessionId, departure));
    const isReleased = token !== undefined && departure.type !== "ended" && !this.#closed;
    if (isReleased && departure.type === "paused") {
      const onDone = (): void => void this.#afterPause(sessionId, settledBy(departure));
      return this.#host.claims.release(sessionId, token, onDone);
    }
    if (isReleased) this.#host.claims.release(sessionId, token, undefined, reasonOf(departure));
    if (departure.type === "abandoned" && departure.error !== undefined) {
      this.#abandoned.set(sessionId, departure.error);
      // mutant: created-not-resumed
      this.failedToRun(sessionId, departure.error); // Also for a session that may have been created: then we hold its claim.
    }
    this.#settle(sessionId, settledBy(departure));
  }

  /** Run a session that was resumed before its driver noticed the pause, as no other process would. */
  async #afterPause(sessionId: string, paused: Settled): Promise<void> {
    let session: Session | undefined;
    try {
      session = await this.#host.storage.reader.session(sessionId);
    } catch (error) {
      this.failedToRun(sessionId, toHoldfastError(error));
    }
    const at = session && resumesAt(session);
    if (at !== undefined) {
      const until = new Date(at).toISOString();
      const why = session?.error?.message ?? "its budget is used up";
      this.#host.warn(sessionId, `paused until ${until}: ${why}. It then continues by itself`);
      this.due.lookAt(at);
      this.#waiters.follow(sessionId);
    } else if (session === undefined || session.status === "paused") this.#settle(sessionId, paused);
    else await this.#wakeUp(sessionId);
  }

  /** How it ends here, or that nothing more happens to it here. */
  async settledOf(sessionId: string): Promise<Settled> {
    // An activation may fail, as when the session has ended meanwhile: then no departure follows.
    for (;;) {
      const activation = this.#entries.activation(sessionId);
      if (activation === undefined || this.#waiters.has(sessionId)) break;
      await activation.catch(() => {});
    }
    return this.#host.slotWaits.during(sessionId, this.#waiters.wait(sessionId));
  }

  /** Stop driving a session that a hard cancel has ended. */
  abandon(sessionId: string): void {
    this.#entries.live(sessionId)?.driver.abandon(undefined, true);
  }

  /** Storage is lost for good: abandon every session, and notify every waiter of the reason. */
  storageLost(error: HoldfastError): void {
    for (const driver of this.drivers) driver.abandon(error);
    this.#waiters.release(error);
  }

  /**
   * Stop driving: running tasks may end within the grace, and others are handed over. A session with a
   * handler that still runs is released only afterwards, as its next process starts that task again. Until
   * then its claim lasts like that of a dead process.
   */
  async close(graceOver: Promise<void>, endTasks: EndTasks): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#entries.activations());
    const held = this.drivers;
    this.#entries.keepClaimed(held.map(({ sessionId }) => sessionId));
    await this.#stop.drain(held, graceOver, this.#host.clock);
    this.#waiters.close();
    // mutant: release-before-tasks-end
    const unsettled = Map.groupBy((await endTasks()) ?? [], ({ sessionId }) => sessionId);
    for (const { sessionId, kind } of [...unsettled.values()].flat())
      this.#host.warn(
        sessionId,
        `task "${kind}" was aborted and did not settle in time: it is abandoned, and may still act`,
      );
    this.#entries.keepClaimed([]);
    for (const { sessionId, token } of held) {
      if (token === undefined) continue;
      const running = unsettled.get(sessionId);
      if (running === undefined) this.#host.claims.release(sessionId, token);
      else
        void Promise.all(running.map(({ settled }) => settled)).then(() =>
          this.#host.claims.release(sessionId, token),
        );
    }
  }

  /** @internal As `close`, but nothing is released or awaited. */
  vanish(): void {
    this.#closed = true;
    for (const driver of this.drivers) driver.abandon();
    this.#waiters.vanish();
  }

  // ---- inside ------------------------------------------------------------------------------------------------------

  async #drive(sessionId: string, agent: Agent, token: number, reloads = 0): Promise<void> {
    this.#entries.set(sessionId, { type: "loading", arrived: false });
    const snapshot = await this.#host.claims.load(sessionId, token);
    return this.#driveLoaded(agent, { snapshot, token }, reloads);
  }

  async #driveLoaded(agent: Agent, { snapshot, token, mayReturn }: HeldSession, reloads = 0): Promise<void> {
    const { sessionId } = snapshot.session;
    if (this.#closed) return this.#host.claims.release(sessionId, token);
    if (isLost(snapshot.session)) return this.#undriven.lose(snapshot.session, token);
    const state = this.#entries.state(sessionId);
    let driver: SessionDriver;
    try {
      const acceptDrift = this.#drifting.has(sessionId);
      driver = this.#launch({ agent, snapshot, claim: token, acceptDrift, mayReturn }, reloads);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "state_version") throw error;
      await this.#undriven.diverged(sessionId, token, error, mayReturn);
      throw error;
    }
    if (state?.type === "loading" && state.arrived) driver.poke();
    if (snapshot.session.children > 0) await this.children.ownAll(sessionId);
  }

  #launch(
    options: DriverOptions,
    reloads: number,
    onFailedCreation?: (error: HoldfastError) => void,
  ): SessionDriver {
    const driver = new SessionDriver(this.#world, options);
    this.#abandoned.delete(driver.sessionId);
    const { payers } = options.snapshot.session;
    const { agent } = options;
    this.#entries.set(driver.sessionId, { type: "live", driver, agent, payers, reloads, onFailedCreation });
    driver.start();
    return driver;
  }

  async #reload({ agent, driver, reloads }: Live): Promise<void> {
    const { sessionId, token } = driver;
    try {
      const session = await this.find(sessionId);
      if (isEnded(session.status)) this.#settle(sessionId, settledAs(session));
      else if (token !== undefined) await this.#drive(sessionId, agent, token, reloads + 1);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      this.failedToRun(sessionId, error);
      this.#settle(sessionId, { status: "released", error });
    }
  }

  #settle(sessionId: string, settled: Settled): void {
    if (settled.status !== "paused" && settled.status !== "released") {
      this.children.delete(sessionId);
      this.#drifting.delete(sessionId);
    }
    this.#waiters.settle(sessionId, settled);
  }

  /** V1. If the session's version is not here, the session is parked with that reason. */
  async #agentOf(session: Session): Promise<Agent> {
    const { sessionId, agent } = session;
    try {
      return this.agents.of(sessionId, agent, this.#drifting.has(sessionId));
    } catch (error) {
      if (!isOtherVersion(error) || session.status === "paused") throw error;
      const claim = await this.#host.claims.ask(sessionId);
      if (claim.status === "claimed")
        await this.#undriven.park(sessionId, claim.token, "no_matching_runner", error);
      throw error;
    }
  }
}

/** A commit was refused because the session was ended or cancelled meanwhile. It is loaded again. */
function isRefusedByEnd(departure: Departure): boolean {
  return departure.type === "abandoned" && departure.error?.code === "session_ended";
}

function whyNotStored(sessionId: string, departure: Departure): HoldfastError {
  const error = departure.type === "abandoned" ? departure.error : undefined;
  return (
    error ?? new HoldfastError("session_paused", `session ${sessionId} was not stored: the runtime closed`)
  );
}
