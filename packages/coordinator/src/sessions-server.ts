// `serveSessions`: the API of the sessions of a storage that other processes drive, for the page of
// `holdfast ui`.
//
//   - It dispatches nothing, fires no schedule, claims nothing and ends no session. It answers reads, and
//     commits the changes that a person asks for.
//   - It starts no session, because no process here would run it. It stores a fork, as `holdfast fork` does,
//     and the fork runs when a person resumes it.

import { setImmediate } from "node:timers";
import { type AgentStorage, type Clock, type Random, SteadyClock } from "@holdfast/core";
import * as contract from "@holdfast/proto";
import { serveApi, type Page } from "./api/api.ts";
import type { Listener, ListenOptions } from "./api/listener.ts";
import type { Authenticate } from "./call/caller.ts";
import { methodsOf } from "./call/methods.ts";
import { ALONE_LOSSES_MAX } from "./dispatch/rules.ts";
import { AuditService } from "./services/audit-service.ts";
import type { CronTimes } from "./store/schedule-firing.ts";
import { ScheduleService } from "./services/schedule-service.ts";
import { createServiceHost } from "./services/service-host.ts";
import { SessionService } from "./services/session-service.ts";
import { followSharedDrafts } from "./services/sessions/shared-drafts.ts";
import { noticing } from "./store/notices.ts";

interface SessionsServerOptions {
  /** Open. Only the caller closes it, after the server. */
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly random: Random;
  readonly authenticate: Authenticate;
  readonly page: Page;
  /** The times of a cron line in a zone, for schedules whose pause ends. @throws UsageError */
  readonly readCron: (line: string, timeZone: string) => CronTimes;
  /** Called with failures. Must not throw. */
  readonly log: (message: string, error?: unknown) => void;
}

interface SessionsServer {
  /** @throws HoldfastError `config_invalid` when the address cannot be used. */
  listen(where: ListenOptions): Promise<Listener>;
  /** Answers waiting requests, and stops. */
  close(): Promise<void>;
}

/** Nobody claims here. */
const LEASE_MS = 15_000;

export function serveSessions(options: SessionsServerOptions): SessionsServer {
  const { random, authenticate, page, log } = options;
  const clock = new SteadyClock(options.clock);
  const storage = noticing(options.storage, clock, () => {});
  const host = createServiceHost({
    storage,
    clock,
    random,
    immediate: (callback) => void setImmediate(callback),
    leaseMs: LEASE_MS,
    renewMs: LEASE_MS,
    lossesMax: ALONE_LOSSES_MAX,
    warn: log,
    claimed: () => {},
  });
  const { drafts } = storage;
  const unfollow =
    drafts?.watch && followSharedDrafts(host.drafts, (...asked) => drafts.watch!(...asked), clock);
  const api = serveApi({
    services: [
      // It starts no session, because no process here would run it.
      methodsOf(contract.SessionService, new SessionService(host), ["start", "import"]),
      methodsOf(contract.ScheduleService, new ScheduleService(host, options.readCron), ["put"]),
      methodsOf(contract.AuditService, new AuditService(host)),
    ],
    authenticate,
    page,
    onError: (error, requestId) => log(`request ${requestId} failed`, error),
    monotonic: () => clock.monotonic(),
  });
  const listeners: Listener[] = [];
  return {
    async listen(where) {
      const listener = await api.listen(where);
      listeners.push(listener);
      return listener;
    },
    async close() {
      unfollow?.();
      await host.dispatcher.close();
      await Promise.all(listeners.splice(0).map((listener) => listener.close()));
    },
  };
}
