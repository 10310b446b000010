// A runner's connection to the coordinators: the services of the contract as clients, over the simulated network.
//
//   R1. Who gave no answer is not asked next, where there is another.
//   R2. What time it is is what a coordinator said last, and how long that is ago: never later than by storage's clock, however far
//       this machine's is from it. So what is planned here is due there at that time.

import type { DescService } from "@bufbuild/protobuf";
import type { Caller } from "@holdfast/coordinator/internal";
import { toHoldfastError } from "@holdfast/core";
import type { EventLog } from "../event-log.ts";
import type { ProcessLife } from "../process-life.ts";
import { unavailable, type Calls, type Server } from "./calls.ts";
import type { Coordinator } from "./coordinator-node.ts";

/** A connection that is cut without a word is noticed after so long. */
const TIMEOUT_MS = 15_000;
/** What was heard longer ago is worth less than what is heard now, as clocks go at different rates. */
const HEARD_MS_MAX = 10_000;

export interface RunnerConnectionHost {
  readonly runnerId: string;
  readonly life: ProcessLife;
  readonly calls: Calls;
  readonly coordinators: readonly [Server<Coordinator>, ...Server<Coordinator>[]];
  readonly log: EventLog;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** An answer, and what time it was where it was given. */
interface Timed {
  readonly value: unknown;
  readonly now: number;
}

export class RunnerConnection {
  readonly url = "http://simulated";
  readonly #host: RunnerConnectionHost;
  readonly #caller: Caller;
  #coordinator = 0;
  #isClosed = false;
  #heard: { readonly time: number; readonly monotonic: number } | undefined;
  #answeredAt = 0;

  constructor(host: RunnerConnectionHost) {
    this.#host = host;
    this.#caller = { kind: "runner", name: host.runnerId, tokenId: host.runnerId };
  }

  /** Of any service: who asks knows its methods. */
  client(service: DescService): never {
    const call =
      (method: string) =>
      (request: object, options: CallOptions = {}): Promise<unknown> =>
        this.#call(service.typeName, method, request, options);
    const names = Object.keys(service.method);
    return Object.fromEntries(names.map((name) => [name, call(name)])) as never;
  }

  /** @throws HoldfastError whatever goes wrong. */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (thrown) {
      throw toHoldfastError(thrown);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** R2. Epoch milliseconds. */
  now(): number {
    const { clock } = this.#host.life;
    if (this.#heard === undefined) return clock.now();
    return this.#heard.time + Math.floor(clock.monotonic() - this.#heard.monotonic);
  }

  /** How long the last answer was under way, at least. */
  get ageOfLastMs(): number {
    return this.now() - this.#answeredAt;
  }

  async #call(service: string, method: string, request: object, options: CallOptions): Promise<unknown> {
    const { calls, coordinators, life, runnerId, log } = this.#host;
    if (this.#isClosed) throw unavailable("the connection is closed");
    const index = this.#coordinator;
    log.add(life.name, method);
    try {
      const { value, now } = await calls.call<Coordinator, Timed>({
        from: runnerId,
        life,
        to: coordinators[index % coordinators.length] ?? coordinators[0],
        what: method,
        timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
        signal: options.signal,
        ask: async (coordinator, signal) => ({
          value: await coordinator.handle(service, method, request, { caller: this.#caller, signal }),
          now: coordinator.now(),
        }),
      });
      this.#noteTime(now);
      return value;
    } catch (error) {
      if (index === this.#coordinator) this.#coordinator++; // R1.
      throw error;
    }
  }

  /** R2. */
  #noteTime(time: number): void {
    const monotonic = this.#host.life.clock.monotonic();
    const isOld = this.#heard === undefined || monotonic - this.#heard.monotonic > HEARD_MS_MAX;
    if (isOld || time > this.now()) this.#heard = { time, monotonic };
    this.#answeredAt = time;
  }
}
