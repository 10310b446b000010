// `createCoordinator` composes a coordinator: an API, a dispatcher and request gates over any storage.
//
//   requests ─► api (gates, roles) ─► services (whose it is) ─► storage
//                                         │                       │ arrivals, commits
//                                         └─► dispatcher ◄────────┘
//
//   - A coordinator keeps nothing durable of its own. Claims, runners, tokens and audit rows are in storage.
//     Several coordinators may share a storage that allows it, and a coordinator that ends loses nothing.
//   - A coordinator decides nothing about a session's meaning. The rules of core do, in storage's
//     transactions.
//   - When it closes, a coordinator answers waiting requests and accepts no more. It leaves claims as they
//     are, and their runners continue.

import { setImmediate } from "node:timers";
import {
  type AgentStorage,
  type ChangeResult,
  type Clock,
  defined,
  HoldfastError,
  type Random,
  repeat,
  type Repetition,
  SteadyClock,
} from "@holdfast/core";
import * as contract from "@holdfast/proto";
import { serveApi, type Api, type Page } from "./api/api.ts";
import type { Authenticated, Caller } from "./call/caller.ts";
import { methodsOf, type Methods } from "./call/methods.ts";
import { createA2aEndpoint } from "./a2a/a2a-endpoint.ts";
import { API_LIMITS, type ApiLimits } from "./api/limits.ts";
import type { Listener, ListenOptions } from "./api/listener.ts";
import { ALONE_LOSSES_MAX } from "./dispatch/rules.ts";
import { SWEEP_MS } from "./dispatch/unmatched.ts";
import { counted } from "./counted.ts";
import { createMcpEndpoint } from "./mcp/mcp-endpoint.ts";
import { Metrics } from "./metrics.ts";
import { noticing } from "./store/notices.ts";
import { Retention, type RetentionTimes } from "./store/retention/retention.ts";
import { ScheduleFiring, type FiringHost } from "./store/schedule-firing.ts";
import { CatalogueService } from "./catalogue/catalogue-service.ts";
import { AuditService } from "./services/audit-service.ts";
import { EnvironmentService } from "./services/environments/environment-service.ts";
import { HealthService } from "./services/health-service.ts";
import { ScheduleService } from "./services/schedule-service.ts";
import { TokenService } from "./services/token-service.ts";
import { RunService } from "./services/run-service.ts";
import { RunnerService } from "./services/runner-service.ts";
import { createServiceHost, type ServiceHost } from "./services/service-host.ts";
import { mergeWork, workOf, type MergeAsked } from "./services/sessions/session-work.ts";
import { SessionService } from "./services/session-service.ts";
import { isClaimOf } from "./services/session-scope.ts";
import { refuseInactive, versionFor } from "./services/session-start.ts";
import { StorageService } from "./services/storage-service.ts";
import { deploymentId } from "./store/deployment.ts";
import { StoreTime } from "./store/store-time.ts";
import { WriteHealth } from "./store/write-health.ts";
import { tokenId, type StoredToken } from "./call/tokens.ts";

export interface CoordinatorConfig {
  /** How long a runner's claim lasts without renewal. */
  readonly leaseMs?: number;
  /** How often runners are told to renew; at most a third of `leaseMs`. */
  readonly renewMs?: number;
  /**
   * How often in a row a session may be lost with a runner that holds nothing else, before it is paused as
   * poison. Default: 5.
   */
  readonly poisonLosses?: number;
  readonly limits?: Partial<ApiLimits>;
  /** How long ended sessions and the rows of the audit are kept. Nothing is removed when it is absent. */
  readonly retention?: RetentionTimes;
  /** Host names by which requests may call it, besides its own address. */
  readonly hosts?: readonly string[];
  /** Origins whose pages may call it, beside its own. */
  readonly origins?: readonly string[];
  /** The tools of the orchestrator at `/mcp`. */
  readonly mcp?: {
    /** Whether callers may delete their own ended sessions. */
    readonly deleteSessions?: boolean;
    /** Whether each agent is a tool of its own, too. */
    readonly agentTools?: boolean;
  };
}

export interface CoordinatorOptions {
  /** Open. Only the coordinator's owner closes it, after the coordinator. */
  readonly storage: AgentStorage;
  /** The wall clock of all processes that share the storage. It may jump. */
  readonly clock: Clock;
  readonly random: Random;
  /** The runtime's functions that read cron lines, and that name what a schedule starts. */
  readonly schedules: Pick<FiringHost, "readCron" | "firingName">;
  readonly config?: CoordinatorConfig;
  /**
   * Texts of the keys that encrypt environments, of 32 characters at least. The first one encrypts, and all of
   * them decrypt. Without any, the coordinator stores no environments.
   */
  readonly environmentKeys?: readonly string[];
  /** The page that is served beside the API; none by default. */
  readonly page?: Page;
  /** Called with failures that concern no single request. Must not throw. */
  readonly log?: (message: string, error?: unknown) => void;
}

export interface Coordinator {
  /**
   * May be called again. @throws HoldfastError `config_invalid` when the address cannot be used, or storage's
   * error.
   */
  listen(where: ListenOptions): Promise<Listener>;
  /**
   * Makes a token without the API, for the process that starts the coordinator and for tests. Only this call
   * returns the text.
   */
  createToken(token: {
    readonly kind: "admin" | "user" | "registration" | "metrics";
    readonly name: string;
    readonly owner?: string;
  }): Promise<string>;
  /** Whether a text is a valid admin token. */
  isAdminToken(text: string): Promise<boolean>;
  /** Revokes a token by its text. @returns whether there is such a token. */
  revokeToken(text: string): Promise<boolean>;
  /** The work of a session in its folder. The runner that ran the session last is asked. */
  work(sessionId: string): Promise<object>;
  /** Merges that work into the project of the runner. */
  mergeWork(sessionId: string, asked: MergeAsked): Promise<object>;
  /** Answers waiting requests, and stops. The storage stays open. */
  close(): Promise<void>;
}

/** The default lease: 15 s, renewed every 4 s. */
const LEASE_MS = 15_000;
const RENEW_MS = 4_000;

/** @throws HoldfastError `config_invalid`. */
export function createCoordinator(options: CoordinatorOptions): Coordinator {
  return new FleetCoordinator(options);
}

type Log = (message: string, error?: unknown) => void;

class FleetCoordinator implements Coordinator {
  readonly #host: ServiceHost;
  readonly #time: StoreTime;
  readonly #firing: ScheduleFiring;
  readonly #sweeps: Repetition;
  readonly #api: Api;
  readonly #log: Log;
  readonly #listeners: Listener[] = [];
  #isClosed = false;
  #begun: Promise<string> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CoordinatorOptions) {
    const leases = leasesOf(options.config);
    const clock = new SteadyClock(options.clock);
    const log: Log = (message, error) => {
      if (!this.#isClosed) options.log?.(message, error);
    };
    this.#log = log;
    const metrics = new Metrics();
    const writes = new WriteHealth(options.storage, clock);
    const onCommit = (results: readonly ChangeResult[]): void => {
      metrics.changes(results);
      writes.done();
    };
    this.#time = new StoreTime({ storage: options.storage, clock, leaseMs: leases.leaseMs, warn: log });
    this.#host = createServiceHost({
      storage: noticing(options.storage, clock, onCommit, (error) => writes.failed(error)),
      clock,
      random: options.random,
      immediate: (callback) => void setImmediate(callback),
      ...leases,
      lossesMax: options.config?.poisonLosses ?? ALONE_LOSSES_MAX,
      ...defined({ environmentKeys: options.environmentKeys }),
      warn: log,
      claimed: (waitedMs) => metrics.claimed(waitedMs),
    });
    this.#firing = firingOf(this.#host, options.schedules, log);
    this.#sweeps = sweepsOf(this.#host, options.config?.retention, log);
    this.#api = apiOf(options, { host: this.#host, metrics, writes, log });
  }

  async listen(where: ListenOptions): Promise<Listener> {
    this.#begun ??= this.#begin();
    const deployment = await this.#begun.catch((error: unknown) => {
      this.#begun = undefined; // A later call may find storage back.
      throw error;
    });
    const listener = await this.#api.listen(where, deployment);
    this.#listeners.push(listener);
    return listener;
  }

  async #begin(): Promise<string> {
    await this.#time.begin();
    const unread = await this.#host.environments.checkKeys();
    if (unread > 0)
      this.#log(
        `the coordinator has ${unread} environments and no key for them: sessions that need one are refused`,
      );
    const { storage, random, clock } = this.#host;
    return deploymentId(storage, random, clock.now());
  }

  async createToken({ kind, name, owner }: Parameters<Coordinator["createToken"]>[0]): Promise<string> {
    const user = kind === "user" ? name : owner;
    const { text } = await this.#host.tokens.create(
      { kind, name, ...defined({ user }) },
      { actor: "coordinator", action: "token.create", object: "" },
    );
    return text;
  }

  async isAdminToken(text: string): Promise<boolean> {
    const found = await this.#host.tokens.check(text);
    return typeof found === "object" && found.kind === "admin";
  }

  revokeToken(text: string): Promise<boolean> {
    const audit = { actor: "coordinator", action: "token.revoke", object: "" };
    return this.#host.tokens.revokeText(text, audit);
  }

  work(sessionId: string): Promise<object> {
    return workOf(this.#host, sessionId);
  }

  mergeWork(sessionId: string, asked: MergeAsked): Promise<object> {
    return mergeWork(this.#host, sessionId, asked);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#end());
  }

  async #end(): Promise<void> {
    this.#time.close();
    this.#firing.close();
    this.#sweeps.close();
    // Both at once: runners whose polls end must not poll again over the same connections.
    const ended = this.#listeners.splice(0).map((listener) => listener.close());
    await this.#host.dispatcher.close();
    await Promise.all(ended);
    this.#isClosed = true; // Later failures come from closed storage and are not logged.
  }
}

/** @throws HoldfastError `config_invalid`. */
function leasesOf(config: CoordinatorConfig = {}): Pick<ServiceHost, "leaseMs" | "renewMs"> {
  const leaseMs = config.leaseMs ?? LEASE_MS;
  const renewMs = config.renewMs ?? Math.min(RENEW_MS, Math.floor(leaseMs / 3));
  if (renewMs <= leaseMs / 3) return { leaseMs, renewMs };
  throw new HoldfastError(
    "config_invalid",
    `a claim of ${leaseMs} ms cannot be renewed every ${renewMs} ms`,
    {
      at: "renewMs",
      expected: "at most a third of leaseMs, because one renewal may be lost",
    },
  );
}

function firingOf(host: ServiceHost, schedules: CoordinatorOptions["schedules"], warn: Log): ScheduleFiring {
  const { storage, clock, random } = host;
  return new ScheduleFiring({
    storage,
    clock,
    random,
    ...schedules,
    versionOf: async (agent, agentVersion) => {
      await refuseInactive(host, agent);
      return versionFor(host, { agent, agentVersion });
    },
    warn,
  });
}

function sweepsOf(host: ServiceHost, times: RetentionTimes | undefined, log: Log): Repetition {
  const { storage, clock, dispatcher, registry, unmatched, tokens } = host;
  const retention = new Retention({ storage, clock, warn: log }, times);
  return repeat({
    clock,
    isIdle: true,
    pauseMs: () => SWEEP_MS,
    async look() {
      dispatcher.sweep();
      for (const runnerId of await registry.sweep()) dispatcher.forget(runnerId);
      await unmatched.sweep();
      await tokens.sweepJobs(async (token) => !(await isClaimOf(host, token)));
      await retention.sweep();
    },
    failed: (error) => log("the coordinator could not check for sessions without a runner", error),
  });
}

interface ApiParts {
  readonly host: ServiceHost;
  readonly metrics: Metrics;
  readonly writes: WriteHealth;
  readonly log: Log;
}

function apiOf(options: CoordinatorOptions, { host, metrics, writes, log }: ApiParts): Api {
  const { config = {}, page, schedules } = options;
  const services = servicesOf(host, schedules).map((methods) => counted(methods, metrics));
  return serveApi({
    services: [...services, methodsOf(contract.HealthService, new HealthService(host, writes))],
    authenticate: (text) => authenticate(host, text),
    metrics: () => metrics.text(host),
    onError: (error, requestId) => log(`request ${requestId} failed`, error),
    monotonic: () => host.clock.monotonic(),
    endpoints: [
      createMcpEndpoint({
        mayDelete: config.mcp?.deleteSessions === true,
        offersAgents: config.mcp?.agentTools === true,
      }),
      createA2aEndpoint({ ...API_LIMITS, ...config.limits }),
    ],
    ...defined({ page, limits: config.limits, hosts: config.hosts, origins: config.origins }),
  });
}

/** The services whose calls are counted. */
function servicesOf(host: ServiceHost, { readCron }: CoordinatorOptions["schedules"]): readonly Methods[] {
  return [
    methodsOf(contract.SessionService, new SessionService(host)),
    methodsOf(contract.RunnerService, new RunnerService(host)),
    methodsOf(contract.RunService, new RunService(host)),
    methodsOf(contract.StorageService, new StorageService(host)),
    methodsOf(contract.ScheduleService, new ScheduleService(host, readCron)),
    methodsOf(contract.TokenService, new TokenService(host)),
    methodsOf(contract.AuditService, new AuditService(host)),
    methodsOf(contract.CatalogueService, new CatalogueService(host)),
    methodsOf(contract.EnvironmentService, new EnvironmentService(host)),
  ];
}

/** The bearer of a token. */
async function authenticate(host: ServiceHost, text: string): Promise<Authenticated> {
  const found = await host.tokens.check(text);
  if (typeof found === "string") return { status: found === "unknown" ? "unknown" : "revoked" };
  // X4: a job's token dies with its claim.
  if (found.kind === "job" && !(await isClaimOf(host, found))) return { status: "revoked" };
  return { status: "known", caller: callerWith(found) };
}

function callerWith(token: StoredToken): Caller {
  const { kind, name, user, projects, runnerId, sessionId } = token;
  return {
    kind,
    name: user !== undefined && kind === "user" ? user : (sessionId ?? runnerId ?? name),
    tokenId: tokenId(token),
    ...defined({ owner: user, projects }),
  };
}
