// What went wrong in a kernel's life, once and for all.
//
//   K4.  A fault is remembered: an agent that catches it cannot make it undone, and its kernel never seals again.

import { HoldfastError } from "../errors/errors.ts";

export class FaultMemory {
  #first: HoldfastError | undefined;

  /** The first fault: what came after it is its consequence. */
  get first(): HoldfastError | undefined {
    return this.#first;
  }

  remember(fault: HoldfastError): void {
    this.#first ??= fault;
  }

  /** Remember an error of ours, so that an agent that swallows it cannot commit (K4), and give it back to be thrown. */
  fail<E extends HoldfastError>(fault: E): E {
    this.remember(fault);
    return fault;
  }

  /** The same for whatever was thrown: what is not ours, as what an author's reducer throws, is the author's to catch. */
  failWith(thrown: unknown): unknown {
    return HoldfastError.is(thrown) ? this.fail(thrown) : thrown;
  }

  /** The result of a check, whose error is remembered. */
  check<Given, T>(check: (given: Given) => T, given: Given): T {
    try {
      return check(given);
    } catch (error) {
      throw this.failWith(error);
    }
  }
}
