// `Trials`: tries a session alone that was lost repeatedly with its process, and recognises poison (L4b).
//
// The death of a process loses all claims of its sessions, whichever of them caused it. Storage counts these
// losses since the session's last commit (ST39), and says the number with each claim.
//
//   trials-1. A session that was lost twice in a row is a suspect. Suspects are run before all other
//       sessions, one after the other. Nothing else begins here while a suspect is tried: until it has
//       committed, waits or has ended, for `TRIAL_MS` at most.
//   trials-2. A suspect that was lost too often on trial is poison.
//   trials-3. A suspect that gets company is pardoned first: an empty commit resets its losses. Each counted
//       loss after the second therefore happened on trial. Sessions that passed a trial here are no company.
//   - Arrivals wait for the first look at due sessions, which knows the suspects (due-sessions-2).
//   - A program may end its process outside the code of its sessions: by an exit, an exception, or a signal
//     that it does not handle. The claim is then released at that moment, so nothing is lost. A storage in
//     another process cannot be reached from an exit.

import {
  type AgentStorage,
  type ClaimResult,
  type Clock,
  type HoldfastError,
  isPoison,
  isSuspect,
  refuseNewerSession,
  type ReleaseClaim,
} from "@holdfast/core";
import type { GroupCommitter } from "../loop/group-committer.ts";
import { alarm, type Timers } from "../loop/timers.ts";
import { lostFault } from "../session/session-errors.ts";
import type { Claims } from "./claims.ts";

/** trials-1. How long other sessions wait for a suspect. */
const TRIAL_MS = 60_000;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface TrialsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly timers: Timers;
  /** trials-2. How often a suspect may be lost on trial. */
  readonly lossesMax: number;
  /** Whether a coordinator gives claims to this process, and counts their losses. */
  readonly isDispatched: boolean;
  /** The sessions that are driven here. */
  live(): readonly string[];
  /** Whether code of a session is running at this moment. */
  inSession(): boolean;
  /** Must not throw. */
  warn(sessionId: string, message: string): void;
}

interface Trial {
  readonly sessionId: string;
  readonly token: number;
  readonly since: number;
  readonly over: PromiseWithResolvers<void>;
  /** Stops watching for the end of the process. */
  readonly unwatch: () => void;
  /** Whether another session waits for its end. */
  isAwaited: boolean;
}

interface LostClaim {
  readonly token: number;
  /** ST39. */
  readonly losses: number;
}

export class Trials {
  readonly #host: TrialsHost;
  readonly #passed = new Set<string>();
  #trial: Trial | undefined;
  #hasOrdered = false;
  #held: Promise<unknown> | undefined;

  constructor(host: TrialsHost) {
    this.#host = host;
  }

  /** trials-1. The due sessions that this process finds first, with the suspects in front. */
  async inOrder(sessionIds: readonly string[]): Promise<readonly string[]> {
    const { claims, live, isDispatched } = this.#host;
    if (sessionIds.length < 2 || isDispatched || this.#hasOrdered || live().length > 0) return sessionIds;
    this.#hasOrdered = true;
    const suspects = new Set<string>();
    for (const sessionId of sessionIds) {
      if (!(await this.#isReadable(sessionId))) continue;
      const losses = await claims.askEarly(sessionId);
      if (isSuspect(losses)) suspects.add(sessionId);
    }
    if (suspects.size === 0) return sessionIds;
    claims.releaseEarly(); // A session that waits for the trial of another must not be lost with it.
    return [...suspects, ...sessionIds.filter((sessionId) => !suspects.has(sessionId))];
  }

  /** Whether this version of Holdfast may claim the session. */
  async #isReadable(sessionId: string): Promise<boolean> {
    try {
      const session = await this.#host.storage.reader.session(sessionId);
      if (session !== undefined) refuseNewerSession(session);
      return session !== undefined;
    } catch {
      return false; // The attempt to run it reports why.
    }
  }

  holdArrivals(until: Promise<unknown>): void {
    this.#held = until.finally(() => (this.#held = undefined));
  }

  /** Calls back after this turn, and after the first look. @param callback must not throw or reject. */
  whenLooked(callback: () => unknown): void {
    if (this.#held === undefined) void Promise.resolve().then(() => void callback());
    else void this.#held.then(callback);
  }

  /** Whether a session is on trial. */
  get isTrying(): boolean {
    return this.#trial !== undefined;
  }

  /** trials-1. Resolves when no other session is on trial. */
  async turn(sessionId: string): Promise<void> {
    const { clock, timers, warn } = this.#host;
    for (let trial = this.#trial; trial !== undefined; trial = this.#trial) {
      const { since, over } = trial;
      if (trial.sessionId === sessionId) return;
      warn(sessionId, `it waits for session ${trial.sessionId}, which runs alone after repeated losses`);
      if (!trial.isAwaited) {
        trial.isAwaited = true;
        const leftMs = Math.max(0, since + TRIAL_MS - clock.monotonic());
        timers.after(
          alarm(() => void this.#endPardoned(trial)),
          leftMs,
        );
      }
      await over.promise;
    }
  }

  /**
   * Claim a session when no other one is on trial. The trial of a suspect begins with its claim, so that no
   * other claim comes between (trials-1).
   *
   * @throws as `Claims.ask`
   */
  async claim(sessionId: string): Promise<ClaimResult> {
    const { claims, isDispatched } = this.#host;
    for (;;) {
      if (this.isTrying) await this.turn(sessionId);
      const claim = await claims.ask(sessionId);
      if (claim.status !== "claimed" || isDispatched) return claim;
      if (this.#trial !== undefined && this.#trial.sessionId !== sessionId) {
        // mutant: claim-beside-trial
        claims.release(sessionId, claim.token); // It must not be lost with the one on trial.
        continue;
      }
      // mutant: suspect-not-tried
      if (isSuspect(claim.losses)) this.#begin(sessionId, claim.token);
      return claim;
    }
  }

  #begin(sessionId: string, token: number): void {
    this.#trial?.unwatch();
    this.#trial = {
      sessionId,
      token,
      since: this.#host.clock.monotonic(),
      over: this.#trial?.over ?? Promise.withResolvers(),
      unwatch: this.#watchEnd({ type: "release_claim", sessionId, token }),
      isAwaited: false,
    };
  }

  /** Drive a session that was just claimed, or park it (trials-2). */
  async run(
    sessionId: string,
    { token, losses }: LostClaim,
    { drive, park }: { drive(): Promise<void>; park(fault: HoldfastError): Promise<void> },
  ): Promise<void> {
    const { lossesMax, live } = this.#host;
    const trial = this.#trial?.token === token ? this.#trial : undefined;
    try {
      if (trial !== undefined && isPoison(losses, lossesMax))
        return await park(lostFault(sessionId, lossesMax));
      const isCompany = (liveId: string): boolean => liveId !== sessionId && !this.#passed.has(liveId);
      if (trial !== undefined && live().some(isCompany)) await this.#refuse(trial);
      await drive();
    } finally {
      if (this.#trial?.sessionId === sessionId && !live().includes(sessionId)) this.over(sessionId);
    }
  }

  /** trials-3. There is company. @throws HoldfastError when storage fails; then the claim is released. */
  async #refuse(trial: Trial): Promise<void> {
    const { sessionId, token } = trial;
    try {
      // mutant: company-not-pardoned
      await this.#pardon(sessionId, token);
    } catch (error) {
      this.#host.claims.release(sessionId, token);
      throw error;
    } finally {
      this.#end(trial);
    }
  }

  /** The session has committed, waits, or is no longer driven here. */
  over(sessionId: string): void {
    const trial = this.#trial;
    if (trial?.sessionId !== sessionId) return;
    this.#passed.add(sessionId);
    this.#end(trial);
  }

  close(): void {
    if (this.#trial !== undefined) this.#end(this.#trial);
  }

  #end(trial: Trial): void {
    if (this.#trial === trial) this.#trial = undefined;
    trial.unwatch();
    trial.over.resolve();
  }

  /** trials-3. If storage refuses the batch, a commit of the session has reset the losses. */
  async #endPardoned(trial: Trial): Promise<void> {
    if (this.#trial !== trial) return;
    await this.#pardon(trial.sessionId, trial.token).catch(() => {});
    this.over(trial.sessionId);
  }

  async #pardon(sessionId: string, token: number): Promise<void> {
    const { storage, committer } = this.#host;
    const firstSeq = (await storage.reader.session(sessionId))?.nextSeq ?? 0;
    const batch = { sessionId, token, firstSeq, records: [], entries: [], consumed: [] };
    await committer.commit({ type: "commit_batch", ...batch });
  }

  /** @returns a function that stops watching. */
  #watchEnd(change: ReleaseClaim): () => void {
    const { storage, clock, inSession } = this.#host;
    // The change is stored before the call returns where this process owns the storage.
    const release = (): Promise<unknown> => storage.commit([change], clock.now()).catch(() => {});
    const onExit = (): void => {
      if (!inSession()) void release();
    };
    const unlisten = (): void => {
      for (const signal of STOP_SIGNALS) process.removeListener(signal, onSignal);
    };
    const onSignal = (signal: NodeJS.Signals): void => {
      unlisten();
      if (process.listenerCount(signal) > 0) return; // The program decides what the signal does.
      void release().finally(() => process.kill(process.pid, signal));
    };
    process.once("exit", onExit);
    for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
    return () => {
      process.removeListener("exit", onExit);
      unlisten();
    };
  }
}
