// Requests and their replies over the network.
//
//   fleet-calls-1. Whoever asks hears once: the answer, or that nobody knows whether it was done.
//   fleet-calls-2. What reached a node that then dies is done or not; its caller hears that the connection is gone, if
//       anything can still reach it.
//   fleet-calls-3. A node hears that whoever asked has gone, or does not want to know any more.

import { UnavailableError } from "@holdfast/core";
import type { ProcessLife } from "../world/process-life.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Network } from "./network.ts";

/** Something that can be asked. */
export interface Server<S> {
  readonly name: string;
  /** The one that lives now, if one does. */
  readonly living: { readonly life: ProcessLife; readonly service: S } | undefined;
}

export interface Request<S, T> {
  readonly from: string;
  /** Nobody hears the answer after its end. */
  readonly life: ProcessLife | undefined;
  readonly to: Server<S>;
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** @param signal fleet-calls-3. */
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
    const leave = (): void => this.#network.send(from, to.name, `${what}: gone`, () => gone.abort()); // fleet-calls-3.
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
    const reply = (tell: () => void): void => {
      this.#network.send(to.name, from, `the answer to ${what}`, () => {
        this.#scheduler.after(0, life, () => {
          done();
          tell();
        });
      });
    };
    this.#network.send(from, to.name, what, () => {
      const { living } = to;
      if (living === undefined) return reply(() => giveUp("nobody is there"));
      const server = living.life;
      const stopWatching = server.onEnd(() => reply(() => giveUp("the connection is gone"))); // fleet-calls-2.
      const answer = (tell: () => void): void => {
        stopWatching();
        if (server.isAlive) server.after(0, () => reply(tell));
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
