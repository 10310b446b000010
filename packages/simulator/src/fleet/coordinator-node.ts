// `CoordinatorNode`: a coordinator of a fleet, with the real dispatch over a connection to the one storage,
// and a desk for clients.
//
//   - A coordinator keeps nothing that its end could lose: the next life begins with what is stored.
//   - A coordinator passes storage a steady time, made from a wall clock that jumps. The runners that ask
//     through it have clocks of their own.

import {
  contextOf,
  createServiceHost,
  noticing,
  RunnerService,
  StorageService,
  StoreTime,
  type Caller,
  type ServiceHost,
} from "@holdfast/coordinator/internal";
import {
  type AgentStorage,
  BEHAVIOUR_FLAGS,
  type Clock,
  defined,
  encodeJson,
  JOURNAL_FORMAT,
  type Random,
  type Session,
  SteadyClock,
  storageWith,
} from "@holdfast/core";
import * as contract from "@holdfast/proto";
import { createRuntime } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import type { Desk } from "../machine/clients.ts";
import { Connection, type ConnectionFaults } from "../world/connection.ts";
import type { Dice } from "../world/dice.ts";
import type { EventLog } from "../world/event-log.ts";
import { ProcessLife, type SimulatedTime } from "../world/process-life.ts";
import { agentOf } from "../programs/program.ts";
import type { Server } from "./calls.ts";
import type { History } from "./history.ts";

const RESTART_MS_MAX = 3_000;
const AGAIN_MS = 500;

/** The requests that a coordinator answers. */
export interface Coordinator {
  readonly desk: Desk;
  /** A session's row. */
  read(sessionId: string): Promise<Session | undefined>;
  /** Call a method of a service of the contract with its request, for a caller. */
  handle(
    service: string,
    method: string,
    request: object,
    call: { readonly caller: Caller; readonly signal: AbortSignal },
  ): Promise<unknown>;
}

export interface CoordinatorHost {
  readonly time: SimulatedTime;
  readonly storage: AgentStorage;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly leaseMs: number;
  readonly history: History;
  faults(): ConnectionFaults;
  /** The coordinator answers from now on. */
  begins(): void;
  /** A runner's claims were renewed, as of `at` in simulated milliseconds. */
  renewed(owner: string, sessionIds: ReadonlySet<string>, at: number): void;
  /** A lease is carried over to another time. */
  carriesOver(): void;
  /** Whether this notice is lost. */
  isNoticeLost(): boolean;
}

interface Living {
  readonly life: ProcessLife;
  readonly service: Coordinator;
  vanish(): void;
}

export class CoordinatorNode implements Server<Coordinator> {
  readonly name: string;
  readonly #host: CoordinatorHost;
  readonly #random: Random;
  #lives = 0;
  #born: Living | undefined;
  /** Cancels its start after an outage. */
  #cancelReturn: (() => void) | undefined;
  /** Whether it has begun to answer. */
  #isServing = false;
  /** The clock of each life; the clock of a dead life still advances. */
  readonly #clocks: Clock[] = [];

  constructor(name: string, host: CoordinatorHost) {
    this.name = name;
    this.#host = host;
    this.#random = { u32: host.dice.u32 };
    this.#start();
  }

  get living(): Living | undefined {
    return this.#isServing ? this.#born : undefined;
  }

  /**
   * Epoch milliseconds: the latest time that any of its lives would give now, because its callers still rely
   * on that time.
   */
  now(): number {
    return Math.max(...this.#clocks.map((clock) => clock.now()));
  }

  /** @param awayMs the time until it is started again, or until all faults end. */
  kill(why: string, awayMs?: number): void {
    const living = this.#born;
    if (living === undefined) return;
    const { log, time, dice } = this.#host;
    log.add(living.life.name, why);
    this.#born = undefined;
    living.life.end();
    time.scheduler.after(0, undefined, () => living.vanish());
    const restartMs = awayMs ?? dice.between(1, RESTART_MS_MAX);
    const cancel = time.scheduler.after(restartMs, undefined, () => this.#start());
    this.#cancelReturn = awayMs === undefined ? undefined : cancel;
  }

  pause(ms: number): void {
    const life = this.#born?.life;
    if (life === undefined || life.isPaused) return;
    const { log, time } = this.#host;
    log.add(life.name, `is paused for ${ms} ms`);
    life.pause();
    time.scheduler.after(ms, undefined, () => life.unpause());
  }

  heal(): void {
    this.#born?.life.unpause();
    if (this.#born !== undefined || this.#cancelReturn === undefined) return;
    this.#cancelReturn();
    this.#start();
  }

  dismantle(): void {
    this.#born?.life.end();
    this.#born?.vanish();
  }

  #start(): void {
    const { time, dice, log, leaseMs } = this.#host;
    const life = new ProcessLife(`${this.name}.${++this.#lives}`, time);
    log.add(life.name, "starts");
    const connection = new Connection(life, {
      storage: this.#host.storage,
      dice,
      log,
      scheduler: time.scheduler,
      faults: this.#host.faults,
      crash: () => this.kill("crashes at a commit"),
    });
    const clock = new SteadyClock(life.clock);
    const warn = (message: string): void => log.add(life.name, message);
    const lossy = this.#withLostNotices(connection);
    const storage = noticing(this.#notingRenewals(lossy), clock, () => {});
    const storeTime = new StoreTime({ storage: this.#notingCarries(lossy), clock, leaseMs, warn });
    const host = createServiceHost({
      storage,
      clock,
      random: this.#random,
      immediate: life.immediate,
      leaseMs,
      renewMs: Math.floor(leaseMs / 4),
      lossesMax: 1,
      warn,
      claimed: () => {},
    });
    const runtime = createRuntime({
      storage,
      clock,
      random: this.#random,
      immediate: life.immediate,
      owner: life.name,
      adopt: false,
      development: false,
    });
    const services = {
      [contract.RunnerService.typeName]: new RunnerService(host) as object as Service,
      [contract.StorageService.typeName]: new StorageService(host) as object as Service,
    };
    const service: Coordinator = {
      desk: this.#deskOf(life.name, host, runtime),
      read: (sessionId) => storage.reader.session(sessionId),
      handle: async (name, method, request, { caller, signal }) => {
        const answer = await services[name]![method]!(request, contextOf(caller, signal));
        if (name === contract.RunnerService.typeName && method === "poll")
          this.#host.history.pollAnswered(life.name, caller.name, answer as contract.PollResponse);
        return answer;
      },
    };
    const vanish = (): void => {
      storeTime.close();
      vanishRuntime(runtime);
      connection.cut();
    };
    this.#born = { life, service, vanish };
    this.#clocks.push(clock);
    const begin = (): void =>
      void storeTime.begin().then(
        () => {
          this.#isServing = true;
          this.#host.begins();
        },
        () => life.after(AGAIN_MS, begin),
      );
    this.#isServing = false;
    begin();
  }

  #notingRenewals(storage: AgentStorage): AgentStorage {
    return storageWith(storage, {
      renew: async (renewal) => {
        const askedAt = this.#host.time.scheduler.now; // A coordinator may be paused before the answer arrives.
        const renewed = await storage.renew(renewal);
        this.#host.renewed(renewal.owner, new Set(renewal.sessionIds), askedAt);
        return renewed;
      },
    });
  }

  #notingCarries(storage: AgentStorage): AgentStorage {
    return storageWith(storage, {
      renew: (renewal) => {
        this.#host.carriesOver();
        return storage.renew(renewal);
      },
    });
  }

  #withLostNotices(storage: AgentStorage): AgentStorage {
    const subscribe: AgentStorage["subscribe"] = (listener) =>
      storage.subscribe((arrival) => {
        if (!this.#host.isNoticeLost()) listener(arrival);
      });
    return storageWith(storage, { subscribe });
  }

  #deskOf(
    name: string,
    { storage, clock, dispatcher }: ServiceHost,
    runtime: Omit<Desk, "name" | "start">,
  ): Desk {
    const random = this.#random;
    return {
      name,
      async start(program, { sessionId = "", budget, persistence = "full" }) {
        const [result] = await storage.commit(
          [
            {
              type: "create_session",
              sessionId,
              agent: { name: agentOf(program), version: "1" },
              input: encodeJson(program, "a program"),
              seed: random.u32(),
              flags: BEHAVIOUR_FLAGS,
              format: JOURNAL_FORMAT,
              ...defined({ budget }),
              ...(persistence === "full" ? {} : { persistence }),
            },
          ],
          clock.now(),
        );
        const session = await storage.reader.session(sessionId);
        if (result?.status === "created" && session !== undefined) dispatcher.created(session);
      },
      signal: (...asked) => runtime.signal(...asked),
      answer: (...asked) => runtime.answer(...asked),
      cancel: (...asked) => runtime.cancel(...asked),
      pause: (...asked) => runtime.pause(...asked),
      unpause: (...asked) => runtime.unpause(...asked),
      setBudget: (...asked) => runtime.setBudget(...asked),
      grantWindow: (...asked) => runtime.grantWindow(...asked),
      releaseLost: (...asked) => runtime.releaseLost(...asked),
    };
  }
}

type Service = Readonly<Record<string, (request: object, context: unknown) => unknown>>;
