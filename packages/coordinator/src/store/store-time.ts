// `StoreTime` keeps the clock of a coordinator in step with storage, and carries leases over when the clock
// is set.
//
//   wall clock (the storage's, or this machine's) ─► SteadyClock ─► everything that is told or compared with the time
//
//   D3. A wall clock that is set back changes nothing at once. A clock that is set forward, or whose machine
//       slept, is followed within `LOOK_MS`, in these steps. First the new time is written, so that no later
//       coordinator begins before it. Then every current lease is carried over to the new time, and finally
//       the new time applies. A renewal meanwhile is made as of the new time, and a claim by the old time is
//       renewed afterwards. A step that has begun is finished, even if storage fails in between. No lease has
//       a time that never comes, and none is carried over twice. The written time includes the start of the
//       carry until all leases are carried over. A new coordinator therefore finishes the step of one that
//       died.
//   S3. After a restart, time continues from the last written one, or from the latest claim or renewal if that
//       is later. A full disk may have taken a claim and refused the time. While there are claims, the time is
//       written every `SAVE_MS`, and later times of other coordinators are followed.
//   O12. If no time was written for longer than a lease, the clock may have been set meanwhile. The leases of
//       that time continue from now.
//
// Leaky: coordinators of one storage follow its clock within `LOOK_MS` of each other, not at once. A claim
// that one of them gives meanwhile may seem expired to another one. The work is then done twice, and
// committed once.
//
// This class knows no polls. Storage knows the holders of claims.

import {
  type AgentStorage,
  type ClaimResult,
  defined,
  type HeldClaim,
  MINUTE_MS,
  repeat,
  type Repetition,
  type SteadyClock,
} from "@holdfast/core";

/** The longest lease, because a lease that is not renewed must end some day. */
export const LEASE_MS_MAX = 10 * MINUTE_MS;
const LOOK_MS = 1_000;
const SAVE_MS = 2_000;
/** The document whose `updatedAt` is the last written time, and whose body is a `Carry`. */
const WRITTEN = { collection: "coordinator", id: "time" };
const PAGE = 1_000;

export interface StoreTimeHost {
  /** Renewals here apply as of the time that they are told (unlike `renewTimely`). */
  readonly storage: AgentStorage;
  readonly clock: SteadyClock;
  /** The lease of runners. */
  readonly leaseMs: number;
  /** Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
}

interface Carry {
  /** The time whose leases must still be carried over (D3). */
  readonly from?: number;
}

/** A step of the time that is under way. */
interface Step {
  readonly ms: number;
  /**
   * The end of each claim's lease by the new time. If storage did not answer, the lease is carried over again
   * to the same end.
   */
  readonly ends: Map<string, { readonly until: number; isCarried: boolean }>;
  isMade: boolean;
}

export class StoreTime {
  readonly #host: StoreTimeHost;
  #step: Step | undefined;
  #savedAt = -Infinity;
  #looks: Repetition | undefined;
  #isClosed = false;

  constructor(host: StoreTimeHost) {
    this.#host = host;
  }

  /**
   * Must be awaited before requests are served. Time continues from the written one, or leases start over
   * (O12).
   *
   * @throws HoldfastError when storage is away.
   */
  async begin(): Promise<void> {
    const { clock, leaseMs } = this.#host;
    const { at, carry } = await this.#written();
    // mutant: time-not-restored
    clock.step(at - clock.now()); // S3.
    // mutant: time-of-claims-not-restored
    clock.step((await this.#claimedAt(clock.now())) - clock.now());
    const isLate = at > 0 && clock.now() - at > leaseMs; // There is no lease before the first write.
    // mutant: dead-step-dropped
    const from = carry.from ?? (isLate ? at : undefined);
    await this.#write(clock.now(), from);
    if (from !== undefined) {
      await this.#carry({ from, at, to: clock.now() }, new Map());
      await this.#write(clock.now());
    }
    if (this.#isClosed) return;
    this.#looks = repeat({
      clock,
      isIdle: true,
      pauseMs: () => LOOK_MS,
      look: () => this.#look(),
      failed: (error) => this.#host.warn("could not synchronise the coordinator clock with storage", error),
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#looks?.close();
  }

  async #look(): Promise<void> {
    const { clock } = this.#host;
    if (this.#step !== undefined || clock.setForwardMs > 0) await this.#follow(clock.setForwardMs);
    if (clock.monotonic() - this.#savedAt >= SAVE_MS) await this.#save();
  }

  /** S3. */
  async #save(): Promise<void> {
    const { clock, storage } = this.#host;
    this.#savedAt = clock.monotonic();
    const aheadMs = (await this.#written()).at - clock.now();
    if (aheadMs > 0) return this.#follow(aheadMs);
    const [held] = await storage.heldClaims({ now: clock.now(), limit: 1 });
    if (held !== undefined) await this.#write(clock.now());
  }

  /** D3. Continues the step that is under way, or begins one. */
  async #follow(ms: number): Promise<void> {
    const { clock } = this.#host;
    // mutant: time-step-restarted
    const step = (this.#step ??= { ms, ends: new Map(), isMade: false });
    if (!step.isMade) {
      await this.#write(clock.now() + step.ms, clock.now());
      clock.prepare(step.ms); // A time that is not written is unknown to a new coordinator.
      const to = clock.now() + step.ms;
      await this.#carry({ from: clock.now(), at: to, to }, step.ends);
      clock.step(step.ms);
      step.isMade = true;
    }
    const to = clock.now();
    await this.#carry({ from: to - step.ms, at: to, to }, step.ends);
    await this.#write(clock.now());
    this.#step = undefined;
  }

  /**
   * Carries the leases of `from` over to `to`. @param at the time that some leases may already count from.
   */
  async #carry({ from, at, to }: Record<"from" | "at" | "to", number>, ends: Step["ends"]): Promise<void> {
    for await (const claim of this.#held(from)) {
      const name = `${claim.sessionId} ${claim.token}`;
      // mutant: carried-lease-longest
      const { leaseMs } = claim;
      // More than a whole lease may be left. The claim may have been given by the new time at another
      // coordinator, or carried over by one that died; then far more is left. A little more is left if time
      // went back with a coordinator (S3).
      const since = claim.until - from > 2 * leaseMs && claim.until > at ? at : from;
      const until = to + Math.min(claim.until - since, leaseMs);
      // mutant: lease-carried-twice
      const end = ends.get(name) ?? { until, isCarried: false };
      ends.set(name, end);
      // mutant: late-claim-not-carried
      // mutant: live-lease-not-carried
      if (!end.isCarried) await this.#renew(claim, end.until);
      end.isCarried = true;
    }
  }

  /** The latest time at which a claim that is held at `now` was given or renewed, or `now`. */
  async #claimedAt(now: number): Promise<number> {
    let latest = now;
    for await (const { until, leaseMs } of this.#held(now)) latest = Math.max(latest, until - leaseMs);
    return latest;
  }

  async *#held(now: number): AsyncGenerator<HeldClaim> {
    for (let after: string | undefined; ;) {
      const page = await this.#host.storage.heldClaims({ now, limit: PAGE, ...defined({ after }) });
      yield* page;
      after = page.at(-1)?.sessionId;
      if (page.length < PAGE) return;
    }
  }

  /**
   * Storage keeps the length of the lease, and extends it once more after a time without any process (ST38).
   */
  async #renew({ owner, sessionId, leaseMs }: HeldClaim, until: number): Promise<void> {
    await this.#host.storage.renew({ owner, sessionIds: [sessionId], now: until - leaseMs, leaseMs });
  }

  /** The written time, or 0 if there is none. */
  async #written(): Promise<{ readonly at: number; readonly carry: Carry }> {
    const { collection, id } = WRITTEN;
    const written = await this.#host.storage.reader.document(collection, id);
    return { at: written?.updatedAt ?? 0, carry: JSON.parse(written?.body ?? "{}") as Carry };
  }

  async #write(now: number, from?: number): Promise<void> {
    const carry: Carry = { ...(from !== undefined && { from }) };
    await this.#host.storage.commit([{ type: "put_document", ...WRITTEN, body: JSON.stringify(carry) }], now);
  }
}

/**
 * Claims a session, and renews the claim if the time was set during the request, because the claim was made
 * by the old time (D3).
 */
export async function claimTimely(
  storage: AgentStorage,
  clock: SteadyClock,
  claim: Parameters<AgentStorage["claim"]>[0],
): Promise<ClaimResult> {
  const before = clock.steps;
  const result = await storage.claim(claim);
  const { owner, sessionId, leaseMs } = claim;
  if (clock.steps !== before && result.status === "claimed" && leaseMs !== Infinity)
    await storage.renew({ owner, sessionIds: [sessionId], now: clock.now(), leaseMs });
  return result;
}

/**
 * Renews claims as of the coming time if the clock is being set, and once more if it was set during the
 * request (D3).
 */
export async function renewTimely(
  storage: AgentStorage,
  clock: SteadyClock,
  renewal: Parameters<AgentStorage["renew"]>[0],
): ReturnType<AgentStorage["renew"]> {
  const { steps, comingMs } = clock;
  // mutant: renewal-in-step-lost
  const renewed = await storage.renew({ ...renewal, now: renewal.now + comingMs });
  if (clock.steps === steps && clock.comingMs === comingMs) return renewed;
  return storage.renew({ ...renewal, now: clock.now() + clock.comingMs });
}
