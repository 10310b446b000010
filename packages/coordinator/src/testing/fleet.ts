// `openFleet` starts a coordinator that listens, for tests that talk to it as people and runners over real
// HTTP.

import {
  BEHAVIOUR_FLAGS,
  defined,
  toError,
  type AgentStorage,
  type Change,
  type ChangeResult,
  type Clock,
  type SessionPatch,
  type SessionSnapshot,
} from "@holdfast/core";
import { countingRandom, MemoryStorage, systemClock, until } from "@holdfast/testkit/test-runtime";
import { createCoordinator, type Coordinator, type CoordinatorConfig } from "../coordinator.ts";

export interface FleetOptions {
  readonly storage?: AgentStorage;
  readonly clock?: Clock;
  readonly config?: CoordinatorConfig;
  readonly environmentKeys?: readonly string[];
  /** Set for a second coordinator of the same storage. */
  readonly seed?: number;
}

export interface Fleet {
  readonly coordinator: Coordinator;
  readonly storage: AgentStorage;
  readonly url: string;
  /** The log messages that concern no single request. */
  readonly log: readonly string[];
  readonly admin: Person;
  user(name: string): Promise<Person>;
  runner(options?: RunnerOptions): Promise<FakeRunner>;
  close(): Promise<void>;
}

/** An answer, its body read. */
export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
  readonly body: any;
}

export async function openFleet(options: FleetOptions = {}): Promise<Fleet> {
  const { storage = new MemoryStorage(), clock = systemClock, seed = 1 } = options;
  const log: string[] = [];
  const coordinator = createCoordinator({
    storage,
    clock,
    random: countingRandom(seed),
    schedules: {
      readCron: () => ({ after: (moment) => moment + 1_000 }),
      firingName: (scheduleId, dueAt) => `${scheduleId}-${dueAt}`,
    },
    log: (message, error) =>
      void log.push(error === undefined ? message : `${message}: ${toError(error).message}`),
    ...defined({ config: options.config, environmentKeys: options.environmentKeys }),
  });
  const { port } = await coordinator.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${port}`;
  const admin = new Person(url, await coordinator.createToken({ kind: "admin", name: "root" }));
  return {
    coordinator,
    storage,
    url,
    log,
    admin,
    user: async (name) => new Person(url, await coordinator.createToken({ kind: "user", name })),
    async runner(of = {}) {
      const { owner } = of;
      const text = await coordinator.createToken({
        kind: "registration",
        name: "runner",
        ...defined({ owner }),
      });
      const runner = new FakeRunner(url, of);
      await runner.register(text);
      return runner;
    },
    close: () => coordinator.close(),
  };
}

/**
 * Waits until a poll waits at the coordinator: a poll that was only sent may arrive after the next request.
 */
export async function pollWaits({ url, admin }: Fleet): Promise<void> {
  const headers = { authorization: `Bearer ${admin.token}` };
  const isWaiting = async (): Promise<boolean> =>
    /^holdfast_polls_waiting 1$/m.test(await (await fetch(`${url}/metrics`, { headers })).text());
  await until(isWaiting, "a poll waits");
}

/** A user or admin with a token. */
export class Person {
  readonly url: string;
  readonly token: string;

  constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
  }

  async call(
    verb: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      method: verb,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  get = (path: string): Promise<Answer> => this.call("GET", path);
  post = (path: string, body: unknown = {}): Promise<Answer> => this.call("POST", path, body);

  /** Starts a session. @returns its id. */
  async start(body: object = {}): Promise<string> {
    const { status, body: session } = await this.post("/v1/sessions", { agent: "greeter", ...body });
    if (status !== 201) throw new Error(`starting answered ${status}: ${JSON.stringify(session)}`);
    return session.sessionId as string;
  }

  /** Commits changes over the storage API. */
  async commit(...changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    const { status, body } = await this.post("/v1/storage/commit", { changes });
    if (status !== 200) throw new Error(`a commit answered ${status}: ${JSON.stringify(body)}`);
    return body.results as ChangeResult[];
  }
}

export interface RunnerOptions {
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The agents whose sessions this runner runs. */
  readonly agents?: readonly string[];
  /** The schemas of the agents' inputs, by name. */
  readonly schemas?: Readonly<Record<string, object>>;
  /** The budgets that the agents announce, by name. */
  readonly budgets?: Readonly<Record<string, object>>;
  /** The further fields that an agent is announced with, by its name. */
  readonly announced?: Readonly<Record<string, object>>;
  readonly taskKinds?: readonly string[];
  readonly maxRuns?: number;
  readonly name?: string;
  readonly version?: string;
  readonly refusedAgents?: readonly object[];
  readonly hostname?: string;
  /** The secret name of the runner's process. */
  readonly process?: string;
  /** The runner takes suspects alone. */
  readonly forTrials?: boolean;
}

export interface FakeClaim {
  readonly sessionId: string;
  readonly token: number;
  readonly leaseMs: number;
  readonly snapshot: SessionSnapshot;
}

export interface FakePoll {
  readonly pollId: string;
  readonly claims: readonly FakeClaim[];
  readonly arrivals: readonly {
    readonly sessionId: string;
    readonly awaited?: boolean;
    readonly arrivals?: { readonly inbox: number; readonly signals: readonly { readonly name: string }[] };
    readonly after?: number;
  }[];
  readonly commands: readonly {
    readonly commandId: string;
    readonly type: string;
    readonly sessionId?: string;
  }[];
}

/** A runner that polls, commits and goes silent only when a test says so. */
export class FakeRunner {
  readonly #url: string;
  readonly #options: RunnerOptions;
  #person: Person | undefined;
  #polls = 0;
  #acked: string | undefined;
  runnerId = "";

  constructor(url: string, options: RunnerOptions) {
    this.#url = url;
    this.#options = options;
  }

  get person(): Person {
    if (this.#person === undefined) throw new Error("the runner is not registered");
    return this.#person;
  }

  async register(token: string): Promise<Answer> {
    const { labels = {}, taskKinds = [], maxRuns = 10, hostname = "box" } = this.#options;
    const { name, version, refusedAgents, forTrials = false } = this.#options;
    const answer = await new Person(this.#url, token).post("/v1/runners/register", {
      protocol: 1,
      ...defined({ name }),
      hostname,
      labels,
      agents: this.#agents.map((agent) => {
        const { schemas, budgets, announced } = this.#options;
        return {
          ...agent,
          ...announced?.[agent.name],
          ...defined({ inputSchema: schemas?.[agent.name], budget: budgets?.[agent.name] }),
        };
      }),
      taskKinds,
      maxRuns,
      forTrials,
      behaviourFlags: BEHAVIOUR_FLAGS,
      ...defined({ version, refusedAgents }),
      ...this.#process,
    });
    if (answer.status === 200) {
      this.runnerId = answer.body.runnerId as string;
      if (answer.body.token !== undefined) this.#person = new Person(this.#url, answer.body.token as string);
    }
    return answer;
  }

  /** The same runner at another coordinator, or as another process. */
  at(url: string, process = this.#options.process): FakeRunner {
    const other = new FakeRunner(url, { ...this.#options, ...defined({ process }) });
    other.runnerId = this.runnerId;
    other.#person = new Person(url, this.person.token);
    return other;
  }

  async poll(
    body: {
      pollId?: string;
      ackPollId?: string | null;
      free?: number;
      waitMs?: number;
      withArrivals?: boolean;
      ackCommandIds?: string[];
      startsTrials?: boolean;
    } = {},
  ): Promise<FakePoll> {
    const {
      pollId = `p${++this.#polls}`,
      free = 10,
      waitMs = 30_000,
      ackPollId = this.#acked,
      ackCommandIds = [],
      withArrivals = false,
      startsTrials = false,
    } = body;
    const { status, body: answer } = await this.person.post(`/v1/runners/${this.runnerId}/poll`, {
      pollId,
      free,
      waitMs,
      ackCommandIds,
      withArrivals,
      startsTrials,
      agents: this.#agents,
      taskKinds: this.#options.taskKinds ?? [],
      ...this.#process,
      ...(ackPollId === undefined || ackPollId === null ? {} : { ackPollId }),
    });
    if (status !== 200) throw new Error(`a poll answered ${status}: ${JSON.stringify(answer)}`);
    this.#acked = pollId;
    return {
      pollId,
      claims: (answer.claims ?? []).map(
        (claim: { sessionId: string; token: string | number; snapshot: SessionSnapshot }) => ({
          ...claim,
          token: Number(claim.token),
        }),
      ),
      arrivals: answer.arrivals ?? [],
      commands: answer.commands ?? [],
    };
  }

  /** Commits one batch without records, with this state of the session. */
  async say(
    claim: Pick<FakeClaim, "sessionId" | "token">,
    session: SessionPatch,
    more: object = {},
  ): Promise<ChangeResult> {
    const [result] = await this.person.commit({
      type: "commit_batch",
      sessionId: claim.sessionId,
      token: claim.token,
      firstSeq: 0,
      records: [],
      entries: [],
      consumed: [],
      session,
      ...more,
    });
    return result!;
  }

  complete(claim: FakeClaim, output: unknown = null): Promise<ChangeResult> {
    return this.say(claim, { status: "completed", waits: [], output: JSON.stringify(output) });
  }

  async release({ sessionId, token }: FakeClaim): Promise<ChangeResult> {
    const [result] = await this.person.commit({ type: "release_claim", sessionId, token });
    return result!;
  }

  get #process(): { readonly process?: string } {
    const { process } = this.#options;
    return process === undefined ? {} : { process };
  }

  get #agents(): readonly { readonly name: string }[] {
    return (this.#options.agents ?? ["greeter"]).map((name) => ({ name }));
  }
}
