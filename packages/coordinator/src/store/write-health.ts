// Whether storage can be written to, for who asks how the coordinator is.
//
//   write-health-1. What the last write came to is remembered, so asking costs nothing while there are writes.
//   write-health-2. When there was none for a while, or the last one failed, asking makes one: a document of its own,
//       at most every `AGAIN_MS` after a failure, however often it is asked. So a coordinator that can write again says
//       so by itself.
//
// It knows no requests. What a write fails for that is the change's own fault is none of its affair.

import {
  HoldfastError,
  toHoldfastError,
  type AgentStorage,
  type Clock,
  type ErrorCode,
} from "@holdfast/core";

/** What it is when storage itself is at fault, in words that tell nothing of where it is. */
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

  /** Why nothing can be written, if so. */
  async problem(): Promise<HoldfastError | undefined> {
    const isKnownFor = this.#problem === undefined ? QUIET_MS : AGAIN_MS;
    if (this.#clock.monotonic() - this.#knownAt >= isKnownFor)
      await (this.#probing ??= this.#probe().finally(() => (this.#probing = undefined)));
    return this.#problem;
  }

  /** write-health-2. */
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
