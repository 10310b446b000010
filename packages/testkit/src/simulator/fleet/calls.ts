// Requests and their replies over the network.
//
//   Q1. Whoever asks hears once: the answer, or that nobody knows whether it was done.
//   Q2. What reached a node that then dies is done or not; its caller hears that the connection is gone, if anything can still reach it.

import { UnavailableError } from "@holdfast/core";
import type { ProcessLife } from "../process-life.ts";
import type { Scheduler } from "../scheduler.ts";
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
  readonly ask: (service: S) => Promise<T>;
}

export class Calls {
  readonly #network: Network;
  readonly #scheduler: Scheduler;

  constructor(network: Network, scheduler: Scheduler) {
    this.#network = network;
    this.#scheduler = scheduler;
  }

  /** @throws UnavailableError when there is no answer. */
  call<S, T>({ from, life, to, what, timeoutMs, ask }: Request<S, T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUp = (why: string): void => reject(unavailable(`${what}: ${why}`));
    const forget = this.#scheduler.after(timeoutMs, life, () => giveUp("no answer"));
    const reply = (tell: () => void): void => {
      this.#network.send(to.name, from, `the answer to ${what}`, () => {
        this.#scheduler.after(0, life, () => {
          forget();
          tell();
        });
      });
    };
    this.#network.send(from, to.name, what, () => {
      const { living } = to;
      if (living === undefined) return reply(() => giveUp("nobody is there"));
      const stopWatching = living.life.onEnd(() => reply(() => giveUp("the connection is gone"))); // Q2.
      this.#scheduler.after(0, living.life, () => {
        ask(living.service).then(
          (value) => {
            stopWatching();
            if (living.life.isAlive) living.life.after(0, () => reply(() => resolve(value)));
          },
          (error: unknown) => {
            stopWatching();
            if (living.life.isAlive) living.life.after(0, () => reply(() => reject(error)));
          },
        );
      });
    });
    return promise;
  }
}

export function unavailable(what: string): UnavailableError {
  return new UnavailableError("storage_unavailable", `simulated: ${what}`);
}
