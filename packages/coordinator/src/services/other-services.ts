// The small services: schedules, tokens, the audit, and whether somebody is there.

import type { ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  checkBudget,
  HoldfastError,
  NotFoundError,
  UsageError,
  type Schedule,
  type ScheduledAction,
} from "@holdfast/core";
import { refuseIfLarge, refuseSignalName } from "@holdfast/core/internal";
import { LIMITS } from "@holdfast/core";
import type {
  AuditService,
  HealthService,
  PutScheduleRequest,
  ScheduleSchema,
  ScheduleService,
  TokenSchema,
  TokenService,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import { invalid, Refusal } from "../call/refusal.ts";
import { bytesOf, bytesOfValue, textOf } from "../call/json-field.ts";
import { REGISTRATION_MS_MAX, tokenId, type StoredToken } from "../call/tokens.ts";
import type { CronTimes } from "../store/schedule-firing.ts";
import type { WriteHealth } from "../store/write-health.ts";
import { auditOf, callOf } from "../call/call.ts";
import { audited, unexpected, unknownCursor, type ServiceHost } from "./service-host.ts";
import { taskAgent } from "../store/registry.ts";
import { budgetMessage, budgetOf, time } from "./session-message.ts";
import { ownSession } from "./session-scope.ts";
import { noTaskAgent, placementOf, refuseTooLate } from "./session-start.ts";

const PAGE = 100;

export function scheduleService(
  host: ServiceHost,
  readCron: (line: string, timeZone: string) => CronTimes,
): ServiceImpl<typeof ScheduleService> {
  const { storage, clock } = host;
  const find = async (caller: Caller, scheduleId: string): Promise<Schedule | undefined> =>
    (await storage.reader.schedules()).find(
      (schedule) => schedule.scheduleId === scheduleId && isOwn(caller, schedule),
    );
  return {
    async put(request, context) {
      const call = callOf(context);
      const { scheduleId, cron, timeZone = "UTC" } = request;
      const known = await find(call.caller, scheduleId);
      if (
        known === undefined &&
        (await storage.reader.schedules()).some((other) => other.scheduleId === scheduleId)
      )
        throw new UsageError(`"${scheduleId}" cannot be the id of your schedule`, {
          at: "schedule_id",
          fix: "choose another id",
        });
      const now = clock.now();
      const action = await actionOf(host, request, call.caller);
      const owner = call.caller.kind === "user" ? call.caller.name : known?.owner;
      const schedule: Schedule = {
        scheduleId,
        ...(owner === undefined ? {} : { owner }),
        cron,
        timeZone,
        action,
        // Who puts the same again, at each start say, misses nothing that was due meanwhile (ST34).
        nextAt: readCron(cron, timeZone).after(now),
        createdAt: now,
      };
      const result = await audited(
        host,
        { type: "put_schedule", schedule },
        auditOf(call, "schedule.put", `schedule:${scheduleId}`),
      );
      if (result.status === "invalid") throw new UsageError(result.reason);
      if (result.status !== "done") throw unexpected("storing a schedule", result);
      return scheduleMessage(result.schedule ?? schedule);
    },

    async list(_, context) {
      const { caller } = callOf(context);
      const schedules = await storage.reader.schedules();
      return { schedules: schedules.filter((schedule) => isOwn(caller, schedule)).map(scheduleMessage) };
    },

    async remove({ scheduleId }, context) {
      const call = callOf(context);
      if ((await find(call.caller, scheduleId)) === undefined) throw scheduleNotFound(scheduleId);
      const result = await audited(
        host,
        { type: "remove_schedule", scheduleId },
        auditOf(call, "schedule.remove", `schedule:${scheduleId}`),
      );
      if (result.status === "not_found") throw scheduleNotFound(scheduleId);
      return {};
    },
  };
}

async function actionOf(
  host: ServiceHost,
  request: PutScheduleRequest,
  caller: Caller,
): Promise<ScheduledAction> {
  const { start, signal } = request;
  if ((start === undefined) === (signal === undefined))
    throw new UsageError("a schedule does one thing", { expected: 'either "start" or "signal"' });
  if (start !== undefined) {
    if (start.agent.startsWith(taskAgent(""))) throw noTaskAgent(start.agent, "start.agent");
    const input = textOf(start.input, "start.input");
    refuseIfLarge(input, "start.input", LIMITS.payloadChars);
    const budget = start.budget === undefined ? undefined : checkBudget(budgetOf(start.budget));
    refuseTooLate(host, budget?.ttlMs ?? Infinity, "/start/budget/ttlMs");
    const placement = placementOf(start, undefined);
    return {
      type: "start",
      agent: { name: start.agent, version: start.agentVersion ?? "1" },
      input,
      ...(budget === undefined ? {} : { budget }),
      ...(placement === undefined ? {} : { placement }),
    };
  }
  const { sessionId, name, payload: bytes } = signal!;
  refuseSignalName(name);
  await ownSession(host, caller, sessionId);
  const payload = textOf(bytes, "signal.payload");
  refuseIfLarge(payload, "signal.payload", LIMITS.payloadChars);
  return { type: "signal", sessionId, name, payload };
}

function isOwn(caller: Caller, { owner }: Schedule): boolean {
  return caller.kind === "admin" || (caller.kind === "user" && caller.name === owner);
}

function scheduleMessage(schedule: Schedule): MessageInitShape<typeof ScheduleSchema> {
  const { scheduleId, cron, timeZone, action, nextAt, lastAt, createdAt, owner } = schedule;
  return {
    scheduleId,
    cron,
    timeZone,
    ...(action.type === "start"
      ? {
          start: {
            agent: action.agent.name,
            agentVersion: action.agent.version,
            ...(action.input === undefined ? {} : { input: bytesOf(action.input) }),
            ...(action.budget === undefined ? {} : { budget: budgetMessage(action.budget) }),
            demands: { ...action.placement?.demands },
            ...(action.placement?.priority === undefined ? {} : { priority: action.placement.priority }),
          },
        }
      : {
          signal: {
            sessionId: action.sessionId,
            name: action.name,
            ...(action.payload === undefined ? {} : { payload: bytesOf(action.payload) }),
          },
        }),
    nextAt: time(nextAt),
    ...(lastAt === undefined ? {} : { lastAt: time(lastAt) }),
    createdAt: time(createdAt),
    ...(owner === undefined ? {} : { owner }),
  };
}

function scheduleNotFound(scheduleId: string): NotFoundError {
  return new NotFoundError("schedule_not_found", `there is no schedule ${scheduleId}`, {
    fix: "list the schedules to see which there are",
  });
}

export function tokenService({ tokens, clock }: ServiceHost): ServiceImpl<typeof TokenService> {
  return {
    async create({ kind, name, ttlMs, owner }, context) {
      const isRegistration = kind === "registration";
      if (owner !== undefined && !isRegistration)
        throw new UsageError(`a token of the kind "${kind}" has no owner other than its name`, {
          at: "owner",
          fix: 'leave the owner out, or ask for a token of the kind "registration"',
        });
      const ttl = lifeOf(ttlMs, isRegistration, clock.now());
      const { text, token } = await tokens.create(
        {
          kind: kind as "admin" | "user" | "registration",
          name,
          ...(kind === "user" ? { user: name } : owner === undefined ? {} : { user: owner }),
          ...(ttl === undefined ? {} : { ttlMs: ttl }),
        },
        auditOf(callOf(context), "token.create", ""),
      );
      return { token: tokenMessage(token), secret: text };
    },

    async list({ limit = PAGE, cursor }) {
      if (cursor !== undefined && !/^[0-9a-f]{64}$/.test(cursor)) throw unknownCursor();
      const page = await tokens.list(cursor, limit);
      const next = page.length < limit ? undefined : page.at(-1)?.hash;
      return {
        tokens: page
          .filter(({ revokedAt, usedAt }) => revokedAt === undefined && usedAt === undefined)
          .map(tokenMessage),
        ...(next === undefined ? {} : { nextCursor: next }),
      };
    },

    async revoke({ tokenId: id }, context) {
      if (!(await tokens.revoke(id, auditOf(callOf(context), "token.revoke", ""))))
        // Not what was given: it may be a token.
        throw new NotFoundError("token_not_found", "there is no token of this id", {
          fix: "list the tokens to see which there are; a token's own text is not its id",
        });
      return {};
    },
  };
}

/** How long a token is good, where that ends. @throws Refusal for longer than it may be, or than an integer can tell. */
function lifeOf(ttlMs: bigint | undefined, isRegistration: boolean, now: number): number | undefined {
  const most = isRegistration ? REGISTRATION_MS_MAX : Number.MAX_SAFE_INTEGER - now;
  const ms = ttlMs === undefined ? undefined : Number(ttlMs);
  if (ms === undefined) return isRegistration ? REGISTRATION_MS_MAX : undefined;
  if (ms <= most) return ms;
  throw invalid([
    { pointer: "/ttlMs", code: "too_large", message: `is ${ms}; at most ${Math.floor(most)} is expected` },
  ]);
}

function tokenMessage(token: StoredToken): MessageInitShape<typeof TokenSchema> {
  const { kind, name, user, runnerId, createdAt, expiresAt, lastUsedAt } = token;
  return {
    tokenId: tokenId(token),
    kind,
    name,
    ...(user === undefined ? {} : { owner: user }),
    ...(runnerId === undefined ? {} : { runnerId }),
    createdAt: BigInt(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: BigInt(expiresAt) }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: BigInt(lastUsedAt) }),
  };
}

export function auditService({ storage }: ServiceHost): ServiceImpl<typeof AuditService> {
  return {
    async list({ after, limit = PAGE }) {
      const rows = await storage.reader.audit({
        limit,
        ...(after === undefined ? {} : { after: Number(after) }),
      });
      const next = rows.length < limit ? undefined : rows.at(-1)?.seq;
      return { rows: rows.map(bytesOfValue), ...(next === undefined ? {} : { nextAfter: BigInt(next) }) };
    },
  };
}

export function healthService(
  { storage }: ServiceHost,
  writes: WriteHealth,
): ServiceImpl<typeof HealthService> {
  return {
    async get() {
      let problem: HoldfastError | undefined;
      try {
        await storage.reader.document("health", "none");
        problem = await writes.problem();
      } catch (cause) {
        problem = new HoldfastError("storage_unavailable", "storage does not answer", { cause });
      }
      // As a refusal: why is for everybody to hear, and no fault that the log must tell of each time.
      if (problem !== undefined) throw new Refusal(problem.code, problem.message);
      return { status: "ok" };
    },
  };
}
