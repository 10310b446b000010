// `CoordinatorCalls`: the requests of a client over one connection, sent again while the connection is lost
// (client-1), until the client is closed (client-4).

import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@connectrpc/connect";
import { defined, HoldfastError } from "@holdfast/core";
import { SessionService } from "@holdfast/proto";
import type { CoordinatorConnection } from "@holdfast/storage/remote";

const RETRY_MS = 60_000;
const FIRST_WAIT_MS = 100;
const WAIT_MAX_MS = 5_000;

export class CoordinatorCalls {
  readonly connection: CoordinatorConnection;
  readonly service: Client<typeof SessionService>;
  readonly #retryMs: number;
  readonly #closing = new AbortController();

  constructor(connection: CoordinatorConnection, retryMs = RETRY_MS) {
    this.connection = connection;
    this.service = connection.client(SessionService);
    this.#retryMs = retryMs;
  }

  /** @param leftMs how long the answer is of use. */
  ask<T>(call: () => Promise<T>, signal?: AbortSignal, leftMs = Infinity): Promise<T> {
    return retried(() => this.connection.ask(call), this.retry(signal, leftMs));
  }

  /** The tries of one request, which end when the caller aborts or the client is closed. */
  retry(signal: AbortSignal | undefined, leftMs = Infinity): Retry {
    const closed = this.#closing.signal;
    return new Retry(
      Math.min(this.#retryMs, leftMs),
      signal === undefined ? closed : AbortSignal.any([closed, signal]),
    );
  }

  close(reason: HoldfastError): void {
    this.#closing.abort(reason);
    this.connection.close();
  }
}

/** client-1. */
async function retried<T>(call: () => Promise<T>, retry: Retry): Promise<T> {
  for (;;) {
    retry.signal.throwIfAborted(); // client-4.
    try {
      return await call();
    } catch (thrown) {
      await retry.after(thrown);
    }
  }
}

/** Waits between tries, longer each time and not all at once; only for what waiting can mend. */
class Retry {
  /** Nobody wants another try. */
  readonly signal: AbortSignal;
  readonly #forMs: number;
  #until: number;
  #waitMs = FIRST_WAIT_MS;

  constructor(forMs: number, signal: AbortSignal) {
    this.signal = signal;
    this.#forMs = forMs;
    this.#until = performance.now() + forMs;
  }

  reset(): void {
    this.#until = performance.now() + this.#forMs;
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Returns at once when nobody wants another try. @throws what was thrown, when it is not worth one. */
  async after(thrown: unknown): Promise<void> {
    if (this.signal.aborted) return;
    if (!HoldfastError.is(thrown) || !PASSES.has(thrown.code)) throw thrown;
    if (performance.now() + this.#waitMs > this.#until) throw unreachable(thrown);
    const waitMs = this.#waitMs * (0.5 + Math.random() / 2);
    await sleep(waitMs, undefined, { signal: this.signal }).catch(() => undefined);
    this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MAX_MS);
  }
}

const PASSES: ReadonlySet<string> = new Set(["storage_unavailable", "unavailable", "rate_limited"]);

function unreachable(error: HoldfastError): HoldfastError {
  if (error.code !== "storage_unavailable") return error;
  const { message, at, got, fix } = error;
  return new HoldfastError("unavailable", message, {
    ...defined({ at, got, fix }),
    cause: error,
  });
}
