// `WriteHealth` tells health checks whether storage can be written.
//
//   - The result of the last write is remembered, so that a check costs nothing while there are writes.
//   - If there was no write for a while, or the last one failed, a check writes a document of its own. After
//     a failure it does so at most every `AGAIN_MS`, however many checks there are. The health therefore
//     recovers without other writes.
//
// This class knows no requests. Failures that are the fault of the change itself are ignored.

import {
  HoldfastError,
  toHoldfastError,
  type AgentStorage,
  type Clock,
  type ErrorCode,
} from "@holdfast/core";

/** The reasons shown when storage itself is at fault. They reveal nothing about its location. */
const REASONS: { readonly [code in ErrorCode]?: string } = {
  storage_unavailable: "storage does not answer",
  storage_full: "nothing can be written: the disk of the storage is full",
  storage_lost: "nothing can be written: the database of the storage was removed or replaced",
  storage_readonly: "nothing can be written: the storage is read-only",
};

const QUIET_MS = 30_000;
const AGAIN_MS = 2_000;

export class WriteHealth {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  #problem: HoldfastError | undefined;
  #knownAt = -Infinity;
  #probing: Promise<void> | undefined;

  constructor(storage: AgentStorage, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
  }

  done(): void {
    this.#problem = undefined;
    this.#knownAt = this.#clock.monotonic();
  }

  failed(thrown: unknown): void {
    const error = toHoldfastError(thrown);
    const reason = REASONS[error.code];
    if (reason === undefined) return;
    this.#problem = new HoldfastError(error.code, reason, { cause: error });
    this.#knownAt = this.#clock.monotonic();
  }

  /** The reason why nothing can be written, if there is one. */
  async problem(): Promise<HoldfastError | undefined> {
    const isKnownFor = this.#problem === undefined ? QUIET_MS : AGAIN_MS;
    if (this.#clock.monotonic() - this.#knownAt >= isKnownFor)
      await (this.#probing ??= this.#probe().finally(() => (this.#probing = undefined)));
    return this.#problem;
  }

  async #probe(): Promise<void> {
    const body = JSON.stringify({ at: this.#clock.now() });
    try {
      await this.#storage.commit(
        [{ type: "put_document", collection: "health", id: "probe", body }],
        this.#clock.now(),
      );
      this.done();
    } catch (error) {
      this.failed(error);
    }
  }
}
