// Whose time counts at a coordinator, and what becomes of leases when it is set.
//
//   wall clock (the storage's, or this machine's) ─► SteadyClock ─► everything that is told or compared with the time
//
//   D3. A wall clock that was set back changes nothing at once. One that was set forward, or whose machine slept, is followed within
//       `LOOK_MS`: the time is written down, so that who comes after this coordinator is not before it; every lease that goes on is
//       renewed to last from then as long as it would have; then the time is the new one. What is renewed meanwhile is so as of then, and
//       what was claimed by the old one is renewed after that. What is begun is finished, however often storage fails between: no
//       lease is of a time that does not come, or carried over twice.
//   S3. Time goes on after a restart where it was before, or later. While anybody holds a lease it is written down every `TELL_MS`,
//       and what others wrote is followed.
//   O7. Where nobody wrote it for longer than a lease, the clock may have been set meanwhile: the leases of then go on from now.
//
// Leaky: coordinators of one storage follow its clock within `LOOK_MS` of each other, not at once. What one of them gives meanwhile
// another one may take for passed; then the work is done twice, and committed once.
//
// It knows no polls: who holds what is storage's.

import type { AgentStorage, ClaimResult, HeldClaim } from "@holdfast/core";
import type { SteadyClock } from "@holdfast/core/internal";
import type { Registry } from "./dispatch/registry.ts";

/** A lease that is not renewed must end some day. */
export const LEASE_MS_MAX = 10 * 60_000;
const LOOK_MS = 1_000;
const TELL_MS = 2_000;
/** Whose `updatedAt` is the time that was written down last. */
const WRITTEN = { collection: "coordinator", id: "time" };
const PAGE = 1_000;

export interface StoreTimeHost {
  /** Where what is renewed is as of the time that is told (unlike `renewTimely`). */
  readonly storage: AgentStorage;
  readonly clock: SteadyClock;
  readonly registry: Registry;
  /** Of runners. */
  readonly leaseMs: number;
  /** Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
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
   * To be awaited before anything is served. Time goes on from what was written, or leases begin anew (O7).
   *
   * @throws HoldfastError when storage is away.
   */
  async begin(): Promise<void> {
    const { clock, leaseMs } = this.#host;
    const writtenAt = await this.#writtenAt();
    clock.step(writtenAt - clock.now()); // S3.
    await this.#write(clock.now());
    const isNew = clock.now() - writtenAt > leaseMs;
    if (isNew) await this.#carry(writtenAt, clock.now(), new Map());
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
      warn("what time it is could not be agreed upon", error);
    }
  }

  /** S3. */
  async #tell(): Promise<void> {
    const { clock, storage } = this.#host;
    this.#toldAt = clock.monotonic();
    const aheadMs = (await this.#writtenAt()) - clock.now();
    if (aheadMs > 0) return this.#follow(aheadMs);
    const [held] = await storage.heldClaims({ now: clock.now(), limit: 1 });
    if (held !== undefined) await this.#write(clock.now());
  }

  /** D3. Goes on with the step that is under way, or else begins one. */
  async #follow(ms: number): Promise<void> {
    const { clock } = this.#host;
    const step = (this.#step ??= { ms, ends: new Map(), isMade: false });
    if (!step.isMade) {
      await this.#write(clock.now() + step.ms);
      clock.prepare(step.ms); // Not before: what is not written down nobody comes to who begins after this coordinator.
      await this.#carry(clock.now(), clock.now() + step.ms, step.ends);
      clock.step(step.ms);
      step.isMade = true;
    }
    await this.#carry(clock.now() - step.ms, clock.now(), step.ends);
    this.#step = undefined;
  }

  async #carry(from: number, to: number, ends: Step["ends"]): Promise<void> {
    const { storage, registry, leaseMs } = this.#host;
    await registry.all();
    for (let after: string | undefined; ;) {
      const page = await storage.heldClaims({
        now: from,
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      for (const claim of page) {
        const name = `${claim.sessionId} ${claim.token}`;
        // More is left than a lease lasts of what was given after the time was written down, or by the new time at another coordinator.
        const longestMs = registry.knows(claim.owner) ? leaseMs : LEASE_MS_MAX;
        const until = to + Math.min(claim.until - from, longestMs);
        const end = ends.get(name) ?? { until, isCarried: false };
        ends.set(name, end);
        if (!end.isCarried) await this.#renew(claim, end.until, longestMs);
        end.isCarried = true;
      }
      after = page.at(-1)?.sessionId;
      if (page.length < PAGE) return;
    }
  }

  /** @param leaseMs how long its leases are: what storage gives once more when nobody was there (ST38). */
  async #renew({ owner, sessionId }: HeldClaim, until: number, leaseMs: number): Promise<void> {
    await this.#host.storage.renew({ owner, sessionIds: [sessionId], now: until - leaseMs, leaseMs });
  }

  /** 0 when nobody wrote it. */
  async #writtenAt(): Promise<number> {
    const { collection, id } = WRITTEN;
    return (await this.#host.storage.reader.document(collection, id))?.updatedAt ?? 0;
  }

  async #write(now: number): Promise<void> {
    await this.#host.storage.commit([{ type: "put_document", ...WRITTEN, body: "{}" }], now);
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
