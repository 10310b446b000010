// Whose time counts at a coordinator, and what becomes of leases when it is set.
//
//   wall clock (the storage's, or this machine's) ─► SteadyClock ─► everything that is told or compared with the time
//
//   D3. A wall clock that was set back changes nothing at once. One that was set forward, or whose machine slept, is followed within
//       `LOOK_MS`; before that every lease is renewed as of then for whoever was heard of within its length, so that none passes by it.
//       That is done twice, as what was asked for by the old time may be stored meanwhile; and the time is written down first, as
//       who comes after this coordinator must not be before the leases that were carried.
//   S3. Time goes on after a restart where it was before, or later. While anybody holds a lease it is written down every `TELL_MS`;
//       what others wrote is followed, too.
//   O7. Where nobody wrote it for long, the clock may have been set meanwhile: then whoever is registered has a lease's time from now.
//
// It knows no polls: who holds what is storage's.

import type { AgentStorage } from "@holdfast/core";
import type { SteadyClock } from "@holdfast/core/internal";
import type { Registry } from "./dispatch/registry.ts";

const LOOK_MS = 1_000;
const TELL_MS = 2_000;
/** Whose `updatedAt` is the time that was written down last. */
const WRITTEN = { collection: "coordinator", id: "time" };

export interface StoreTimeHost {
  readonly clock: SteadyClock;
  /** Of runners. */
  readonly leaseMs: number;
  /** Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
}

interface Kept {
  readonly storage: AgentStorage;
  readonly registry: Registry;
}

/** When a holder was last heard of, by a clock that does not jump, and how long what it holds lasts from then. */
interface Heard {
  readonly at: number;
  readonly leaseMs: number;
}

export class StoreTime {
  readonly #host: StoreTimeHost;
  readonly #heard = new Map<string, Heard>();
  #toldAt = -Infinity;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(host: StoreTimeHost) {
    this.#host = host;
  }

  /** Somebody claims or renews. */
  heard(owner: string, leaseMs: number): void {
    if (leaseMs === Infinity) return;
    const at = this.#host.clock.monotonic();
    const known = this.#heard.get(owner);
    if (known === undefined || known.at + known.leaseMs < at + leaseMs)
      this.#heard.set(owner, { at, leaseMs });
  }

  /**
   * To be awaited before anything is served.
   *
   * @returns whether time went on from what was written, or leases began anew (O7).
   * @throws HoldfastError when storage is away.
   */
  async begin(kept: Kept): Promise<"went_on" | "began_anew"> {
    const { clock, leaseMs } = this.#host;
    const storedAt = await storedTime(kept.storage);
    clock.step(storedAt - clock.now()); // S3.
    await this.#write(kept, clock.now());
    const isNew = clock.now() - storedAt > leaseMs;
    if (isNew) await this.#carry(kept, clock.now());
    this.#wait(kept);
    return isNew ? "began_anew" : "went_on";
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #wait(kept: Kept): void {
    if (this.#isClosed) return;
    const look = (): void => void this.#look(kept).then(() => this.#wait(kept));
    this.#cancel = this.#host.clock.setTimer(look, LOOK_MS, true);
  }

  async #look(kept: Kept): Promise<void> {
    const { clock, warn } = this.#host;
    try {
      if (clock.setForwardMs > 0) await this.#follow(kept, clock.setForwardMs);
      const isToBeTold = clock.monotonic() - this.#toldAt >= TELL_MS;
      if (isToBeTold && this.#holders().length > 0) await this.#tell(kept);
    } catch (error) {
      warn("what time it is could not be agreed upon", error);
    }
  }

  /** S3. */
  async #tell(kept: Kept): Promise<void> {
    const { clock } = this.#host;
    this.#toldAt = clock.monotonic();
    const aheadMs = (await storedTime(kept.storage)) - clock.now();
    if (aheadMs > 0) await this.#follow(kept, aheadMs);
    else await this.#write(kept, clock.now());
  }

  /** D3. */
  async #follow(kept: Kept, ms: number): Promise<void> {
    const { clock } = this.#host;
    await this.#write(kept, clock.now() + ms);
    await this.#carry(kept, clock.now() + ms);
    clock.step(ms);
    await this.#carry(kept, clock.now());
  }

  async #write({ storage }: Kept, now: number): Promise<void> {
    await storage.commit([{ type: "put_document", ...WRITTEN, body: "{}" }], now);
  }

  async #carry({ storage, registry }: Kept, to: number): Promise<void> {
    const { clock, leaseMs: usualMs } = this.#host;
    const now = clock.monotonic();
    const holders = new Map(this.#holders());
    // Of another coordinator, or from before this one began: nobody here knows how long ago they were heard of.
    for (const { runnerId } of await registry.all())
      if (!holders.has(runnerId)) holders.set(runnerId, { at: now, leaseMs: usualMs });
    for (const [owner, { at, leaseMs }] of holders)
      await storage.renew({ owner, now: Math.floor(to - (now - at)), leaseMs });
  }

  /** Who was heard of, and may hold something still; others are forgotten. */
  #holders(): readonly (readonly [string, Heard])[] {
    const now = this.#host.clock.monotonic();
    for (const [owner, { at, leaseMs }] of this.#heard) if (now - at >= leaseMs) this.#heard.delete(owner);
    return [...this.#heard];
  }
}

/** 0 when nobody wrote it. */
async function storedTime(storage: AgentStorage): Promise<number> {
  return (await storage.reader.document(WRITTEN.collection, WRITTEN.id))?.updatedAt ?? 0;
}
