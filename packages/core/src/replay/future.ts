// `DurableFuture`: the answer that an agent awaits. It settles only inside a slice, by a delivery; until then
// it hangs (K4).

import { CancelledError, type HoldfastError, UsageError } from "../errors/errors.ts";

/**
 * The type of the awaited answer. Any race may include `task` and `timer`; only `ctx.race` may include the
 * consuming types (K2a).
 */
export type FutureType = "task" | "timer" | "signal" | "signal_ready" | "input";

/** As the type of `Promise` has it, so that `catch((error: Error) => …)` compiles here too. */
// oxlint-disable-next-line typescript/no-explicit-any
type Reason = any;

/** The functions of a kernel that its futures use. */
export interface FutureOwner {
  /** Whether the segment of this future is over (a checkpoint, the end). */
  readonly closed: boolean;
  /** Withdraw asks and record one `withdraw`. Open futures reject with `CancelledError`. */
  withdraw(targets: readonly DurableFuture<unknown>[]): void;
  /** Remember a fault, so that code that swallows it cannot commit (K4). */
  fail<E extends HoldfastError>(fault: E): E;
}

/**
 * The answer of a task, timer or wait. Implements `Promise`; nothing starts before the segment is committed
 * (K3). A rejection that no code awaits yet never ends the process.
 */
export class DurableFuture<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = "DurableFuture";
  /** The number of its command. */
  readonly id: number;
  readonly type: FutureType;
  /** The name for errors: `task "read-file"`. */
  readonly label: string;
  readonly #owner: FutureOwner;
  readonly #resolvers = Promise.withResolvers<unknown>();
  #observed = false;
  #settled = false;
  /** @internal The question that holds the outcome back (K14). */
  heldBy: DurableFuture<unknown> | undefined;
  #fulfilled = false;
  #map: ((value: unknown) => Promise<unknown>) | undefined;
  #recover: ((error: Error) => Promise<unknown>) | undefined;

  constructor(owner: FutureOwner, type: FutureType, id: number, label: string) {
    this.#owner = owner;
    this.type = type;
    this.id = id;
    this.label = label;
  }

  /** Whether any code ever asked for the answer (K13). */
  get observed(): boolean {
    return this.#observed;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Whether it has an answer that is no error. */
  get fulfilled(): boolean {
    return this.#fulfilled;
  }

  /** Whether waiting on it takes a signal away from others (K2a). */
  get consuming(): boolean {
    return this.type === "signal" || this.type === "input";
  }

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: Reason) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#observed = true;
    if (this.#owner.closed) return Promise.reject(this.#foreign()).then(onFulfilled, onRejected);
    return (this.#resolvers.promise as Promise<T>).then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: Reason) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    this.#observed = true;
    if (this.#owner.closed) return Promise.reject(this.#foreign()).finally(onFinally);
    return (this.#resolvers.promise as Promise<T>).finally(onFinally);
  }

  /**
   * Withdraw the ask. A running task is aborted once this is committed, and code that awaits the future gets
   * a `CancelledError`. Does nothing when the future is already answered.
   */
  cancel(): void {
    if (!this.#settled) this.#owner.withdraw([this]);
  }

  /**
   * @internal The same future, with `map` applied to its value. It can still be withdrawn, and races still
   * know it.
   */
  mapped<U>(map: (value: T) => Promise<U>): DurableFuture<U> {
    this.#map = map as (value: unknown) => Promise<unknown>;
    return this as unknown as DurableFuture<U>;
  }

  /** @internal The same future, with `recover` applied to its error. It throws an error that it leaves as it is. */
  recovered<U>(recover: (error: Error) => Promise<U>): DurableFuture<T | U> {
    this.#recover = recover;
    return this;
  }

  /** @internal It was used in a way that pauses the session. */
  refuse(fault: HoldfastError): Promise<never> {
    return Promise.reject(this.#owner.fail(fault));
  }

  /** @internal Settled by the kernel only. */
  fulfil(value: T): void {
    this.#settled = true;
    this.#fulfilled = true;
    if (this.#map === undefined) return this.#resolvers.resolve(value);
    this.#resolvers.promise.catch(ignore);
    this.#resolvers.resolve(this.#map(value).catch(rethrowFixed));
  }

  /** @internal */
  reject(error: Error): void {
    this.#settled = true;
    this.#resolvers.promise.catch(ignore);
    fixStack(error);
    if (this.#recover === undefined) this.#resolvers.reject(error);
    else this.#resolvers.resolve(this.#recover(error).catch(rethrowFixed));
  }

  /** @internal */
  rejectWithdrawn(): void {
    this.reject(new CancelledError(this.label, "it was withdrawn"));
  }

  #foreign(): UsageError {
    return new UsageError(`${this.label} was asked for before the last checkpoint and is used after it`, {
      expected: "futures are used in the segment that asked for them",
      fix: "await it before ctx.checkpoint(), or ask again after it",
    });
  }
}

const ignore = (): void => {};

/**
 * Errors of ours have a fixed stack, which must not differ between the process that saw the error and the
 * process that replays it.
 */
function fixStack(error: Error): Error {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

function rethrowFixed(error: unknown): never {
  throw error instanceof Error ? fixStack(error) : error;
}
