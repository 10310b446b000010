// A coordinator of a fleet: the real dispatch over a connection to the one storage, and a desk for those outside.
//
//   O1. It keeps nothing that its end could lose: the next life begins with what is stored.
//   O2. The time it tells storage is storage's: whoever asks through it has another.

import {
  Dispatcher,
  Registry,
  type PollAnswer,
  type PollRequest,
  type StoredRunner,
} from "@holdfast/coordinator/dispatch";
import {
  BEHAVIOUR_FLAGS,
  encodeJson,
  isEnded,
  JOURNAL_FORMAT,
  type AgentStorage,
  type Change,
  type ChangeResult,
  type Clock,
  type Random,
} from "@holdfast/core";
import { createRuntime } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import type { Desk } from "../clients.ts";
import { Connection, type ConnectionFaults } from "../connection.ts";
import type { Dice } from "../dice.ts";
import type { EventLog } from "../event-log.ts";
import { ProcessLife, type SimulatedTime } from "../process-life.ts";
import { agentOf } from "../program.ts";
import { storageWith } from "../../test-runtime.ts";
import type { Server } from "./calls.ts";

const RESTART_MS_MAX = 3_000;

/** What runners ask of a coordinator. */
export interface Coordinator {
  readonly desk: Desk;
  /** Epoch milliseconds. */
  now(): number;
  register(runner: StoredRunner): Promise<void>;
  deregister(runnerId: string): Promise<void>;
  poll(request: PollRequest): Promise<PollAnswer>;
  commit(runnerId: string, changes: readonly Change[]): Promise<readonly ChangeResult[]>;
  renew(runnerId: string, sessionIds: readonly string[]): Promise<{ readonly sessions: number }>;
  readonly storage: Pick<AgentStorage, "load" | "arrivals" | "conversation" | "reader">;
}

export interface CoordinatorHost {
  readonly time: SimulatedTime;
  readonly storage: AgentStorage;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly leaseMs: number;
  faults(): ConnectionFaults;
  /** Whether this notice does not come. */
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
  #living: Living | undefined;

  constructor(name: string, host: CoordinatorHost) {
    this.name = name;
    this.#host = host;
    this.#random = { u32: host.dice.u32 };
    this.#start();
  }

  get living(): Living | undefined {
    return this.#living;
  }

  kill(why: string): void {
    const living = this.#living;
    if (living === undefined) return;
    const { log, time, dice } = this.#host;
    log.add(living.life.name, why);
    this.#living = undefined;
    living.life.end();
    time.scheduler.after(0, undefined, () => living.vanish());
    time.scheduler.after(dice.between(1, RESTART_MS_MAX), undefined, () => this.#start());
  }

  pause(ms: number): void {
    const life = this.#living?.life;
    if (life === undefined || life.isPaused) return;
    const { log, time } = this.#host;
    log.add(life.name, `is paused for ${ms} ms`);
    life.pause();
    time.scheduler.after(ms, undefined, () => life.goOn());
  }

  heal(): void {
    this.#living?.life.goOn();
  }

  dismantle(): void {
    this.#living?.life.end();
    this.#living?.vanish();
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
    const storage = this.#withLostNotices(connection);
    const clock = life.clock;
    const registry = new Registry({ storage, clock });
    const dispatcher = new Dispatcher({
      storage,
      clock,
      random: this.#random,
      registry,
      leaseMs,
      warn: (message) => log.add(life.name, message),
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
    const desk = this.#deskOf(life.name, storage, dispatcher, runtime);
    const service = this.#serve({ storage, registry, dispatcher, desk, clock });
    const vanish = (): void => {
      vanishRuntime(runtime);
      connection.cut();
    };
    this.#living = { life, service, vanish };
  }

  #serve({
    storage,
    registry,
    dispatcher,
    desk,
    clock,
  }: {
    storage: AgentStorage;
    registry: Registry;
    dispatcher: Dispatcher;
    desk: Desk;
    clock: ProcessLife["clock"];
  }): Coordinator {
    const { leaseMs } = this.#host;
    return {
      desk,
      storage,
      now: () => clock.now(),
      register: async (runner) => void (await registry.change(runner.runnerId, undefined, () => runner)),
      async deregister(runnerId) {
        await registry.change(runnerId, undefined, () => undefined);
        dispatcher.forget(runnerId);
      },
      async poll(request) {
        const runner = await registry.find(request.runnerId);
        if (runner === undefined) throw new Error(`no runner ${request.runnerId}`);
        return dispatcher.poll(request, registry.seen(runner, request));
      },
      commit: (runnerId, changes) => commitFor(runnerId, changes, { storage, dispatcher, clock }),
      async renew(runnerId, sessionIds) {
        const renewed = await storage.renew({ owner: runnerId, sessionIds, now: clock.now(), leaseMs });
        for (const sessionId of sessionIds)
          if (await dispatcher.holds(runnerId, sessionId)) dispatcher.used(runnerId, sessionId);
        return renewed;
      },
    };
  }

  #withLostNotices(storage: AgentStorage): AgentStorage {
    const subscribe: AgentStorage["subscribe"] = (listener) =>
      storage.subscribe((arrival) => {
        if (!this.#host.isNoticeLost()) listener(arrival);
      });
    return storageWith(storage, { subscribe });
  }

  #deskOf(name: string, storage: AgentStorage, dispatcher: Dispatcher, runtime: Desk0): Desk {
    const random = this.#random;
    const clock = this.#host.time;
    return {
      name,
      async start(program, { sessionId = "", budget, persistence }) {
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
              ...(budget === undefined ? {} : { budget }),
              ...(persistence === undefined || persistence === "full" ? {} : { persistence }),
            },
          ],
          clock.wall(),
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
    };
  }
}

type Desk0 = Omit<Desk, "name" | "start">;

/** A runner commits and releases what it holds; the rest of its group is applied without what it does not. */
async function commitFor(
  runnerId: string,
  changes: readonly Change[],
  {
    storage,
    dispatcher,
    clock,
  }: { readonly storage: AgentStorage; readonly dispatcher: Dispatcher; readonly clock: Clock },
): Promise<readonly ChangeResult[]> {
  const held: Change[] = [];
  for (const change of changes) {
    if (await isHolders(runnerId, change, dispatcher)) held.push(change);
  }
  const results = held.length === 0 ? [] : await storage.commit(held, clock.now());
  held.forEach((change, i) => noteUse(dispatcher, runnerId, change, results[i]));
  return changes.map((change) => {
    const at = held.indexOf(change);
    return at === -1 ? { status: "fenced" } : results[at]!;
  });
}

/** Besides committing and releasing, a runner cancels what it holds: for a question that nobody answered, a budget, a deadline. */
async function isHolders(runnerId: string, change: Change, dispatcher: Dispatcher): Promise<boolean> {
  switch (change.type) {
    case "commit_batch":
    case "release_claim":
      return dispatcher.holds(runnerId, change.sessionId, change.token);
    case "request_cancel":
      return dispatcher.holds(runnerId, change.sessionId);
    default:
      return false;
  }
}

/** What a runner's change says of what it holds. */
function noteUse(
  dispatcher: Dispatcher,
  runnerId: string,
  change: Change,
  result: ChangeResult | undefined,
): void {
  if (change.type === "release_claim") {
    if (result?.status === "released") dispatcher.released(change.sessionId, false);
  } else if (change.type === "commit_batch" && result?.status === "committed") {
    const isOver = change.session !== undefined && isEnded(change.session.status);
    if (isOver) dispatcher.released(change.sessionId, true);
    else dispatcher.used(runnerId, change.sessionId);
  }
}
