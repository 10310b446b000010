// Whose time counts at a coordinator, and what becomes of leases when it is set.
//
//   wall clock (the storage's, or this machine's) ─► SteadyClock ─► everything that is told or compared with the time
//
//   D3. A wall clock that was set back changes nothing at once. One that was set forward, or whose machine slept, is followed within
//       `LOOK_MS`: the time is written down, so that who comes after this coordinator is not before it; every lease that goes on is
//       renewed to last from then as long as it would have; then the time is the new one. What is renewed meanwhile is so as of then, and
//       what was claimed by the old one is renewed after that. What is begun is finished, however often storage fails between: no
//       lease is of a time that does not come, or carried over twice. Written with the time is from when leases are carried over, until
//       all of them are: who comes after a coordinator that died meanwhile does it.
//   S3. Time goes on after a restart where it was before, or later. While anybody holds a lease it is written down every `TELL_MS`,
//       and what others wrote is followed.
//   O12. Where nobody wrote it for longer than a lease, the clock may have been set meanwhile: the leases of then go on from now.
//
// Leaky: coordinators of one storage follow its clock within `LOOK_MS` of each other, not at once. What one of them gives meanwhile
// another one may take for passed; then the work is done twice, and committed once.
//
// It knows no polls: who holds what is storage's.

import type { AgentStorage, ClaimResult, HeldClaim } from "@holdfast/core";
import type { SteadyClock } from "@holdfast/core/internal";

/** A lease that is not renewed must end some day. */
export const LEASE_MS_MAX = 10 * 60_000;
const LOOK_MS = 1_000;
const TELL_MS = 2_000;
/** Whose `updatedAt` is the time that was written down last, and whose body is a `Carry`. */
const WRITTEN = { collection: "coordinator", id: "time" };
const PAGE = 1_000;

export interface StoreTimeHost {
  /** Where what is renewed is as of the time that is told (unlike `renewTimely`). */
  readonly storage: AgentStorage;
  readonly clock: SteadyClock;
  /** Of runners. */
  readonly leaseMs: number;
  /** Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
}

interface Carry {
  /** Leases of then go on from now, and this is yet to be seen to (D3). */
  readonly from?: number;
}

/** A step of the time that is under way. */
interface Step {
  readonly ms: number;
  /** When the lease of each claim ends by the new time; one that storage has not answered is carried again, to the same. */
  readonly ends: Map<string, { readonly until: number; isCarried: boolean }>;
  isMade: boolean;
}

export class StoreTime {
  readonly #host: StoreTimeHost;
  #step: Step | undefined;
  #toldAt = -Infinity;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(host: StoreTimeHost) {
    this.#host = host;
  }

  /**
   * To be awaited before anything is served. Time goes on from what was written, or leases begin anew (O12).
   *
   * @throws HoldfastError when storage is away.
   */
  async begin(): Promise<void> {
    const { clock, leaseMs } = this.#host;
    const { at, carry } = await this.#written();
    clock.step(at - clock.now()); // S3.
    const isLate = at > 0 && clock.now() - at > leaseMs; // Before it is written for the first time nobody goes by it.
    const from = carry.from ?? (isLate ? at : undefined);
    await this.#write(clock.now(), from);
    if (from !== undefined) {
      await this.#carry({ from, at, to: clock.now() }, new Map());
      await this.#write(clock.now());
    }
    this.#wait();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #wait(): void {
    if (this.#isClosed) return;
    const look = (): void => void this.#look().then(() => this.#wait());
    this.#cancel = this.#host.clock.setTimer(look, LOOK_MS, true);
  }

  async #look(): Promise<void> {
    const { clock, warn } = this.#host;
    try {
      if (this.#step !== undefined || clock.setForwardMs > 0) await this.#follow(clock.setForwardMs);
      if (clock.monotonic() - this.#toldAt >= TELL_MS) await this.#tell();
    } catch (error) {
      warn("could not synchronise the coordinator clock with storage", error);
    }
  }

  /** S3. */
  async #tell(): Promise<void> {
    const { clock, storage } = this.#host;
    this.#toldAt = clock.monotonic();
    const aheadMs = (await this.#written()).at - clock.now();
    if (aheadMs > 0) return this.#follow(aheadMs);
    const [held] = await storage.heldClaims({ now: clock.now(), limit: 1 });
    if (held !== undefined) await this.#write(clock.now());
  }

  /** D3. Goes on with the step that is under way, or else begins one. */
  async #follow(ms: number): Promise<void> {
    const { clock } = this.#host;
    const step = (this.#step ??= { ms, ends: new Map(), isMade: false });
    if (!step.isMade) {
      await this.#write(clock.now() + step.ms, clock.now());
      clock.prepare(step.ms); // Not before: what is not written down nobody comes to who begins after this coordinator.
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

  /** Give the leases of `from` as long from `to` on. @param at the time by which some may be already. */
  async #carry({ from, at, to }: Record<"from" | "at" | "to", number>, ends: Step["ends"]): Promise<void> {
    const { storage } = this.#host;
    for (let after: string | undefined; ;) {
      const page = await storage.heldClaims({
        now: from,
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      for (const claim of page) {
        const name = `${claim.sessionId} ${claim.token}`;
        const { leaseMs } = claim;
        // More is left than a lease lasts of what was given after the time was written down, by the new time at another coordinator, or
        // carried over by one that died meanwhile. Much more: it is by the new time; a little: time went back with a coordinator (S3).
        const since = claim.until - from > 2 * leaseMs && claim.until > at ? at : from;
        const until = to + Math.min(claim.until - since, leaseMs);
        const end = ends.get(name) ?? { until, isCarried: false };
        ends.set(name, end);
        if (!end.isCarried) await this.#renew(claim, end.until);
        end.isCarried = true;
      }
      after = page.at(-1)?.sessionId;
      if (page.length < PAGE) return;
    }
  }

  /** Storage keeps the length of the lease, and gives it once more after nobody was there (ST38). */
  async #renew({ owner, sessionId, leaseMs }: HeldClaim, until: number): Promise<void> {
    await this.#host.storage.renew({ owner, sessionIds: [sessionId], now: until - leaseMs, leaseMs });
  }

  /** At 0 when nobody wrote it. */
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

/** Claim, and renew it when the time was set while storage was asked: it is as of before (D3). */
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

/** Renew, as of the time that is coming when it is being set; once more when it was set meanwhile, or is going to be (D3). */
export async function renewTimely(
  storage: AgentStorage,
  clock: SteadyClock,
  renewal: Parameters<AgentStorage["renew"]>[0],
): ReturnType<AgentStorage["renew"]> {
  const { steps, comingMs } = clock;
  const renewed = await storage.renew({ ...renewal, now: renewal.now + comingMs });
  if (clock.steps === steps && clock.comingMs === comingMs) return renewed;
  return storage.renew({ ...renewal, now: clock.now() + clock.comingMs });
}
