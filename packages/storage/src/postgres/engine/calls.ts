// `Calls`: the calls of one storage that are under way. Their errors name the storage and the call.

import { ChurnMap, UnavailableError } from "@holdfast/core";
import { toStorageError } from "../database/pg-errors.ts";

export class Calls {
  readonly #at: string;
  /** By number. */
  readonly #open = new ChurnMap<number, Promise<unknown>>();
  #begun = 0;
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
    const number = this.#begun++;
    this.#open.set(number, call);
    try {
      return await call;
    } catch (error) {
      throw toStorageError(error, this.#at, doing);
    } finally {
      this.#open.delete(number);
    }
  }

  /** Refuses further calls, and runs `work` once with the calls that are under way. */
  close(work: (open: readonly Promise<unknown>[]) => Promise<void>): Promise<void> {
    this.#closing ??= work([...this.#open].map(([, call]) => call));
    return this.#closing;
  }
}
