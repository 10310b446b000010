// `Calls`: requests and their replies over the simulated network.
//
//   - Each request gets one outcome: the answer, or an error that leaves open whether it was performed.
//   - When a node dies with a request, the request was performed or not. The caller receives the loss of the
//     connection, if messages still reach it.
//   - A node is notified when its caller has ended, aborted the request or timed out.

import { UnavailableError } from "@holdfast/core";
import type { ProcessLife } from "../world/process-life.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Network } from "./network.ts";

/** A node that answers requests. */
export interface Server<S> {
  readonly name: string;
  /** The current process of the node, if it has one. */
  readonly living: { readonly life: ProcessLife; readonly service: S } | undefined;
}

export interface Request<S, T> {
  readonly from: string;
  /** The process that asks; after its end the answer is dropped. */
  readonly life: ProcessLife | undefined;
  readonly to: Server<S>;
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** @param signal fires when the caller has ended, aborted the request or timed out. */
  readonly ask: (service: S, signal: AbortSignal) => Promise<T>;
}

export class Calls {
  readonly #network: Network;
  readonly #scheduler: Scheduler;

  constructor(network: Network, scheduler: Scheduler) {
    this.#network = network;
    this.#scheduler = scheduler;
  }

  /** @throws UnavailableError when there is no answer. */
  call<S, T>({ from, life, to, what, timeoutMs, signal, ask }: Request<S, T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const gone = new AbortController();
    const leave = (): void => this.#network.send(from, to.name, `${what}: gone`, () => gone.abort());
    const unwatch = life?.onEnd(leave);
    const giveUp = (why: string): void => {
      done();
      reject(unavailable(`${what}: ${why}`));
    };
    const stopWaiting = (why: string): void => {
      leave();
      giveUp(why);
    };
    const abort = (): void => stopWaiting("left");
    const forget = this.#scheduler.after(timeoutMs, life, () => stopWaiting("no answer"));
    const done = (): void => {
      forget();
      unwatch?.();
      signal?.removeEventListener("abort", abort);
    };
    signal?.addEventListener("abort", abort, { once: true });
    const reply = (deliver: () => void): void => {
      this.#network.send(to.name, from, `the answer to ${what}`, () => {
        this.#scheduler.after(0, life, () => {
          done();
          deliver();
        });
      });
    };
    this.#network.send(from, to.name, what, () => {
      const { living } = to;
      if (living === undefined) return reply(() => giveUp("nobody is there"));
      const server = living.life;
      const stopWatching = server.onEnd(() => reply(() => giveUp("the connection is gone")));
      const answer = (deliver: () => void): void => {
        stopWatching();
        if (server.isAlive) server.after(0, () => reply(deliver));
      };
      this.#scheduler.after(0, server, () => {
        ask(living.service, gone.signal).then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        );
      });
    });
    return promise;
  }
}

export function unavailable(what: string): UnavailableError {
  return new UnavailableError("storage_unavailable", `simulated: ${what}`);
}
