// `FaultMemory`: remembers the first fault of a kernel.
//
//   K4. A fault is remembered: an agent that catches it cannot undo it, and its kernel never seals again.

import { HoldfastError } from "../errors/errors.ts";

export class FaultMemory {
  #first: HoldfastError | undefined;

  /** The first fault; later ones are its consequences. */
  get first(): HoldfastError | undefined {
    return this.#first;
  }

  remember(fault: HoldfastError): void {
    this.#first ??= fault;
  }

  /** Remember an error of ours, and return it to be thrown. An agent that swallows it cannot commit (K4). */
  fail<E extends HoldfastError>(fault: E): E {
    // mutant: fault-forgotten
    this.remember(fault);
    return fault;
  }

  /**
   * The same for any thrown value. An error that is not ours, such as an error of an author's reducer, is the
   * author's to catch.
   */
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
