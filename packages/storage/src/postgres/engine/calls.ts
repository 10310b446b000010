// `Calls`: the calls of one storage that are under way. Their errors name the storage and the call.

import { UnavailableError } from "@holdfast/core";
import { toStorageError } from "../database/pg-errors.ts";

export class Calls {
  readonly #at: string;
  readonly #open = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** @param at the database, as errors name it. */
  constructor(at: string) {
    this.#at = at;
  }

  /** @param doing the call, as errors name it. */
  async guard<T>(doing: string, work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) {
      throw new UnavailableError("storage_unavailable", `the storage was closed: ${this.#at}`, {
        fix: "open it again",
      });
    }
    const call = work();
    this.#open.add(call);
    try {
      return await call;
    } catch (error) {
      throw toStorageError(error, this.#at, doing);
    } finally {
      this.#open.delete(call);
    }
  }

  /** Refuses further calls, and runs `work` once with the calls that are under way. */
  close(work: (open: readonly Promise<unknown>[]) => Promise<void>): Promise<void> {
    this.#closing ??= work([...this.#open]);
    return this.#closing;
  }
}
