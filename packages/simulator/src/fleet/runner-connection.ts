// `RunnerConnection`: a runner's clients for the services of the contract, over the simulated network to the
// coordinators.
//
// After a failed request the next one goes to another coordinator, if there are several.

import type { DescService } from "@bufbuild/protobuf";
import type { Caller } from "@holdfast/coordinator/internal";
import { toHoldfastError, type RenewInThread } from "@holdfast/core";
import { StorageService } from "@holdfast/proto";
import { CoordinatorTime } from "@holdfast/storage/remote";
import type { EventLog } from "../world/event-log.ts";
import type { ProcessLife } from "../world/process-life.ts";
import { unavailable, type Calls, type Server } from "./calls.ts";
import type { Coordinator } from "./coordinator-node.ts";

/** The time after which a connection that was cut silently is noticed. */
const TIMEOUT_MS = 15_000;

export interface RunnerConnectionHost {
  readonly runnerId: string;
  readonly life: ProcessLife;
  readonly calls: Calls;
  readonly coordinators: readonly [Server<Coordinator>, ...Server<Coordinator>[]];
  readonly log: EventLog;
  /** Milliseconds since the simulation began. */
  now(): number;
  /** A request got no answer, or got it late. */
  failed(): void;
}

/** A runner that stops waits no longer than that for its last commit. */
const LATE_MS = 700;

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export class RunnerConnection {
  readonly url = "http://simulated";
  readonly time: CoordinatorTime;
  readonly #host: RunnerConnectionHost;
  readonly #caller: Caller;
  #coordinator = 0;
  #isClosed = false;
  /** Requests without an answer, besides polls. */
  #open = 0;

  constructor(host: RunnerConnectionHost) {
    this.#host = host;
    this.time = new CoordinatorTime(host.life.clock);
    this.#caller = { kind: "runner", name: host.runnerId, tokenId: host.runnerId };
  }

  /** A client for any service; the caller assigns it the service's client type. */
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

  /** Whether a request is under way, besides a poll. */
  get isAsking(): boolean {
    return this.#open > 0;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Renews claims from a thread of the process, by a request of its own. */
  readonly renewInThread: RenewInThread = async (_data, { signal, leaseMs, ...renewal }) => {
    const { calls, coordinators, runnerId } = this.#host;
    const request = { ...renewal, leaseMs: BigInt(leaseMs) };
    const { sessions } = await calls.call<Coordinator, { readonly sessions: number }>({
      from: runnerId,
      life: undefined,
      to: coordinators[this.#coordinator % coordinators.length] ?? coordinators[0],
      what: "renew in a thread",
      timeoutMs: TIMEOUT_MS,
      signal,
      ask: (coordinator, asked) =>
        coordinator.handle(StorageService.typeName, "renew", request, {
          caller: this.#caller,
          signal: asked,
        }) as Promise<{ readonly sessions: number }>,
    });
    return sessions > 0;
  };

  async #call(service: string, method: string, request: object, options: CallOptions): Promise<unknown> {
    const { calls, coordinators, life, runnerId, log } = this.#host;
    if (this.#isClosed) throw unavailable("the connection is closed");
    const index = this.#coordinator;
    log.add(life.name, method);
    const askedAt = this.#host.now();
    const open = method === "poll" ? 0 : 1;
    this.#open += open;
    try {
      const answer = await calls.call<Coordinator, unknown>({
        from: runnerId,
        life,
        to: coordinators[index % coordinators.length] ?? coordinators[0],
        what: method,
        timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
        signal: options.signal,
        ask: (coordinator, signal) =>
          coordinator.handle(service, method, request, { caller: this.#caller, signal }),
      });
      if (method !== "poll" && this.#host.now() - askedAt > LATE_MS) this.#host.failed();
      return answer;
    } catch (error) {
      if (options.signal?.aborted !== true) this.#host.failed();
      if (index === this.#coordinator) this.#coordinator++;
      throw error;
    } finally {
      this.#open -= open;
    }
  }
}
