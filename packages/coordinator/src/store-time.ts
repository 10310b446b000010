// Whose time counts at a coordinator, and what becomes of leases when it is set.
//
//   wall clock (the storage's, or this machine's) ─► SteadyClock ─► everything that is told or compared with the time
//
//   D3. A wall clock that was set back changes nothing at once. One that was set forward, or whose machine slept, is followed within
//       `LOOK_MS`: the time is written down, so that who comes after this coordinator is not before it; every lease that goes on is
//       renewed to last from then as long as it would have; then the time is the new one. What was claimed or renewed by the old one
//       meanwhile is renewed after that.
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
  readonly storage: AgentStorage;
  readonly clock: SteadyClock;
  readonly registry: Registry;
  /** Of runners. */
  readonly leaseMs: number;
  /** Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
}

export class StoreTime {
  readonly #host: StoreTimeHost;
  #toldAt = -Infinity;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(host: StoreTimeHost) {
    this.#host = host;
  }

  /**
   * To be awaited before anything is served.
   *
   * @returns whether time went on from what was written, or leases began anew (O7).
   * @throws HoldfastError when storage is away.
   */
  async begin(): Promise<"went_on" | "began_anew"> {
    const { clock, leaseMs } = this.#host;
    const writtenAt = await this.#writtenAt();
    clock.step(writtenAt - clock.now()); // S3.
    await this.#write(clock.now());
    const isNew = clock.now() - writtenAt > leaseMs;
    if (isNew) await this.#carry(writtenAt, clock.now(), new Set());
    this.#wait();
    return isNew ? "began_anew" : "went_on";
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
      if (clock.setForwardMs > 0) await this.#follow(clock.setForwardMs);
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

  /** D3. */
  async #follow(ms: number): Promise<void> {
    const { clock } = this.#host;
    const carried = new Set<string>();
    await this.#write(clock.now() + ms);
    await this.#carry(clock.now(), clock.now() + ms, carried);
    clock.step(ms);
    await this.#carry(clock.now() - ms, clock.now(), carried);
  }

  /** @param carried the claims that were seen before, and are seen here. */
  async #carry(from: number, to: number, carried: Set<string>): Promise<void> {
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
        const longestMs = registry.knows(claim.owner) ? leaseMs : LEASE_MS_MAX;
        const leftMs = claim.until - from;
        // More is left than a lease lasts of what was given after the time was written down, or by the new time at another coordinator.
        if (!carried.has(name)) await this.#renew(claim, to + Math.min(leftMs, longestMs));
        carried.add(name);
      }
      after = page.at(-1)?.sessionId;
      if (page.length < PAGE) return;
    }
  }

  async #renew({ owner, sessionId }: HeldClaim, until: number): Promise<void> {
    const leaseMs = LEASE_MS_MAX;
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

/** Renew; once more when the time was set meanwhile. */
export async function renewTimely(
  storage: AgentStorage,
  clock: SteadyClock,
  renewal: Parameters<AgentStorage["renew"]>[0],
): ReturnType<AgentStorage["renew"]> {
  const before = clock.steps;
  const renewed = await storage.renew(renewal);
  return clock.steps === before ? renewed : storage.renew({ ...renewal, now: clock.now() });
}
