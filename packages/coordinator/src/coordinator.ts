// `createCoordinator` composes a coordinator: an API, a dispatcher and request gates over any storage.
//
//   requests ─► api (gates, roles) ─► services (whose it is) ─► storage
//                                         │                       │ arrivals, commits
//                                         └─► dispatcher ◄────────┘
//
//   coordinator-1. A coordinator keeps nothing durable of its own. Claims, runners, tokens and audit rows are
//       in storage. Several coordinators may share a storage that allows it, and a coordinator that ends
//       loses nothing.
//   coordinator-2. A coordinator decides nothing about a session's meaning. The rules of core do, in
//       storage's transactions.
//   coordinator-3. When it closes, a coordinator answers waiting requests and accepts no more. It leaves
//       claims as they are, and their runners continue.

import { HoldfastError, type AgentStorage, type ChangeResult, type Clock, type Random } from "@holdfast/core";
import { repeat, SteadyClock } from "@holdfast/core/internal";
import * as contract from "@holdfast/proto";
import { serveApi, type Page } from "./api/api.ts";
import type { Authenticated, Caller } from "./call/caller.ts";
import { methodsOf } from "./call/methods.ts";
import type { ApiLimits } from "./api/limits.ts";
import type { Listener, ListenOptions } from "./api/listener.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { Registry } from "./store/registry.ts";
import { ALONE_LOSSES_MAX } from "./dispatch/rules.ts";
import { SWEEP_MS, Unmatched } from "./dispatch/unmatched.ts";
import { counted } from "./counted.ts";
import { createMcpEndpoint } from "./mcp/mcp-endpoint.ts";
import { Metrics } from "./metrics.ts";
import { joinCommits } from "./store/joined-commits.ts";
import { noticing } from "./store/notices.ts";
import { ScheduleFiring, type FiringHost } from "./store/schedule-firing.ts";
import { Catalogue } from "./catalogue/catalogue.ts";
import { CatalogueService } from "./catalogue/catalogue-service.ts";
import { AuditService } from "./services/audit-service.ts";
import { HealthService } from "./services/health-service.ts";
import { ScheduleService } from "./services/schedule-service.ts";
import { TokenService } from "./services/token-service.ts";
import { RunService } from "./services/run-service.ts";
import { RunnerService } from "./services/runner-service.ts";
import type { ServiceHost } from "./services/service-host.ts";
import { SessionService } from "./services/session-service.ts";
import { isClaimOf } from "./services/session-scope.ts";
import { refuseInactive, versionFor } from "./services/session-start.ts";
import { StorageService } from "./services/storage-service.ts";
import { StoreTime } from "./store/store-time.ts";
import { WriteHealth } from "./store/write-health.ts";
import { tokenId, Tokens, type StoredToken } from "./call/tokens.ts";

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
    readonly kind: "admin" | "user" | "registration";
    readonly name: string;
    readonly owner?: string;
  }): Promise<string>;
  /** Whether a text is a valid admin token. */
  isAdminToken(text: string): Promise<boolean>;
  /** Revokes a token by its text. @returns whether there is such a token. */
  revokeToken(text: string): Promise<boolean>;
  /** Answers waiting requests, and stops. The storage stays open. */
  close(): Promise<void>;
}

/** The default lease: 15 s, renewed every 4 s. */
const LEASE_MS = 15_000;
const RENEW_MS = 4_000;

/** @throws HoldfastError `config_invalid`. */
export function createCoordinator(options: CoordinatorOptions): Coordinator {
  const { random, schedules, config = {} } = options;
  const clock = new SteadyClock(options.clock);
  let isClosed = false;
  const log = (message: string, error?: unknown): void => {
    if (!isClosed) options.log?.(message, error);
  };
  const leaseMs = config.leaseMs ?? LEASE_MS;
  const renewMs = config.renewMs ?? Math.min(RENEW_MS, Math.floor(leaseMs / 3));
  if (renewMs > leaseMs / 3)
    throw new HoldfastError(
      "config_invalid",
      `a claim of ${leaseMs} ms cannot be renewed every ${renewMs} ms`,
      {
        at: "renewMs",
        expected: "at most a third of leaseMs, because one renewal may be lost",
      },
    );

  const metrics = new Metrics();
  const writes = new WriteHealth(options.storage, clock);
  const onCommit = (results: readonly ChangeResult[]): void => {
    metrics.changes(results);
    writes.done();
  };
  const storage = noticing(options.storage, clock, onCommit, (error) => writes.failed(error));
  const commit = joinCommits({ storage, clock, immediate: (callback) => void setImmediate(callback) });
  const registry = new Registry({ storage, clock });
  const catalogue = new Catalogue({ storage, clock });
  const time = new StoreTime({ storage: options.storage, clock, leaseMs, warn: log });
  const tokens = new Tokens({ storage, clock, random });
  const unmatched = new Unmatched({
    storage,
    clock,
    registry,
    isKept: (sessionId) => dispatcher.earlierCode.isKept(sessionId),
  });
  const dispatcher = new Dispatcher({
    storage,
    commit,
    clock,
    registry,
    leaseMs,
    lossesMax: config.poisonLosses ?? ALONE_LOSSES_MAX,
    warn: log,
    claimed: (waitedMs) => metrics.claimed(waitedMs),
  });
  const host: ServiceHost = {
    storage,
    commit,
    clock,
    random,
    tokens,
    registry,
    catalogue,
    dispatcher,
    unmatched,
    leaseMs,
    renewMs,
  };
  const firing = new ScheduleFiring({
    storage,
    clock,
    random,
    ...schedules,
    versionOf: async (agent, agentVersion) => {
      await refuseInactive(host, agent);
      return versionFor(host, { agent, agentVersion });
    },
    warn: log,
  });
  const sweeps = repeat({
    clock,
    isIdle: true,
    pauseMs: () => SWEEP_MS,
    async look() {
      dispatcher.sweep();
      for (const runnerId of await registry.sweep()) dispatcher.forget(runnerId);
      await unmatched.sweep();
      await tokens.sweepJobs(async (token) => !(await isClaimOf({ storage, clock }, token)));
    },
    failed: (error) => log("the coordinator could not check for sessions without a runner", error),
  });

  const api = serveApi({
    services: [
      counted(methodsOf(contract.SessionService, new SessionService(host)), metrics),
      counted(methodsOf(contract.RunnerService, new RunnerService(host)), metrics),
      counted(methodsOf(contract.RunService, new RunService(host)), metrics),
      counted(methodsOf(contract.StorageService, new StorageService(host)), metrics),
      counted(methodsOf(contract.ScheduleService, new ScheduleService(host, schedules.readCron)), metrics),
      counted(methodsOf(contract.TokenService, new TokenService(host)), metrics),
      counted(methodsOf(contract.AuditService, new AuditService(host)), metrics),
      counted(methodsOf(contract.CatalogueService, new CatalogueService(host)), metrics),
      methodsOf(contract.HealthService, new HealthService(host, writes)),
    ],
    authenticate: (text) => authenticate(host, text),
    metrics: () => metrics.text(host),
    onError: (error, requestId) => log(`request ${requestId} failed`, error),
    monotonic: () => clock.monotonic(),
    mcp: createMcpEndpoint({
      mayDelete: config.mcp?.deleteSessions === true,
      offersAgents: config.mcp?.agentTools === true,
    }),
    ...(options.page === undefined ? {} : { page: options.page }),
    ...(config.limits === undefined ? {} : { limits: config.limits }),
    ...(config.hosts === undefined ? {} : { hosts: config.hosts }),
    ...(config.origins === undefined ? {} : { origins: config.origins }),
  });

  const listeners: Listener[] = [];
  let begun: Promise<unknown> | undefined;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    time.close();
    firing.close();
    sweeps.close();
    // Both at once: runners whose polls end must not poll again over the same connections (coordinator-3).
    const ended = listeners.splice(0).map((listener) => listener.close());
    await dispatcher.close();
    await Promise.all(ended);
    isClosed = true; // Later failures come from closed storage and are not logged.
  };
  return {
    async listen(where) {
      begun ??= time.begin();
      await begun.catch((error: unknown) => {
        begun = undefined; // A later call may find storage back.
        throw error;
      });
      const listener = await api.listen(where);
      listeners.push(listener);
      return listener;
    },
    async createToken({ kind, name, owner }) {
      const user = kind === "user" ? name : owner;
      const { text } = await tokens.create(
        { kind, name, ...(user === undefined ? {} : { user }) },
        { actor: "coordinator", action: "token.create", object: "" },
      );
      return text;
    },
    async isAdminToken(text) {
      const found = await tokens.check(text);
      return typeof found === "object" && found.kind === "admin";
    },
    revokeToken: (text) =>
      tokens.revokeText(text, { actor: "coordinator", action: "token.revoke", object: "" }),
    close: () => (closing ??= close()),
  };
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
  const { kind, name, user, runnerId, sessionId } = token;
  return {
    kind,
    name: user !== undefined && kind === "user" ? user : (sessionId ?? runnerId ?? name),
    tokenId: tokenId(token),
    ...(user === undefined ? {} : { owner: user }),
  };
}
