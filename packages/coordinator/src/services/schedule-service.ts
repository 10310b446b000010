// `ScheduleService`: schedules that are put, listed and removed through the API.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  checkBudget,
  defined,
  isQueuedTaskAgent,
  LIMITS,
  NotFoundError,
  refuseIfLarge,
  refuseSignalName,
  type Schedule,
  type ScheduledAction,
  UNKNOWN_VERSION,
  UsageError,
} from "@holdfast/core";
import {
  budgetMessage,
  budgetOf,
  environmentMessage,
  environmentOf,
  type ListSchedulesRequest,
  type PauseScheduleRequest,
  type PutScheduleRequest,
  type RemoveScheduleRequest,
  type ScheduleSchema,
  type ScheduleService as Contract,
  type UnpauseScheduleRequest,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import { bytesOf, textOf } from "../call/json-field.ts";
import type { CronTimes } from "../store/schedule-firing.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import { announcedBudget } from "../input/announced-budget.ts";
import { refuseMissingVariables } from "../input/refuse-missing-variables.ts";
import { refuseWrongInput } from "../input/refuse-wrong-input.ts";
import { audited, unexpected, type ServiceHost } from "./service-host.ts";
import { time } from "./session-message.ts";
import { projectOf, refuseForeignProject } from "./environments/project-of.ts";
import { ownSession } from "./session-scope.ts";
import { noTaskAgent, placementOf, refuseInactive, refuseTooLate, versionFor } from "./session-start.ts";

type ReadCron = (line: string, timeZone: string) => CronTimes;
type ScheduleMessage = MessageInitShape<typeof ScheduleSchema>;

export class ScheduleService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;
  readonly #readCron: ReadCron;

  constructor(host: ServiceHost, readCron: ReadCron) {
    this.#host = host;
    this.#readCron = readCron;
  }

  async put(request: PutScheduleRequest, context: HandlerContext): Promise<ScheduleMessage> {
    const call = callOf(context);
    const { scheduleId, cron, timeZone = "UTC" } = request;
    const known = await this.#find(call.caller, scheduleId);
    if (known === undefined) await this.#refuseTaken(scheduleId);
    const now = this.#host.clock.now();
    const action = await actionOf(this.#host, request, call.caller);
    const owner = call.caller.kind === "user" ? call.caller.name : known?.owner;
    const schedule: Schedule = {
      scheduleId,
      ...defined({ owner }),
      cron,
      timeZone,
      action,
      // A put of the same schedule, for example at each start of a program, keeps the stored times (ST34).
      nextAt: this.#readCron(cron, timeZone).after(now),
      createdAt: now,
    };
    const result = await audited(
      this.#host,
      { type: "put_schedule", schedule },
      auditOf(call, "schedule.put", `schedule:${scheduleId}`),
    );
    if (result.status === "invalid") throw new UsageError(result.reason);
    if (result.status !== "done") throw unexpected("storing a schedule", result);
    return scheduleMessage(result.schedule ?? schedule);
  }

  async list(_request: ListSchedulesRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    const schedules = await this.#host.storage.reader.schedules();
    return { schedules: schedules.filter((schedule) => isOwn(caller, schedule)).map(scheduleMessage) };
  }

  pause({ scheduleId }: PauseScheduleRequest, context: HandlerContext): Promise<ScheduleMessage> {
    return this.#setPaused(scheduleId, true, callOf(context));
  }

  unpause({ scheduleId }: UnpauseScheduleRequest, context: HandlerContext): Promise<ScheduleMessage> {
    return this.#setPaused(scheduleId, false, callOf(context));
  }

  async remove({ scheduleId }: RemoveScheduleRequest, context: HandlerContext) {
    const call = callOf(context);
    if ((await this.#find(call.caller, scheduleId)) === undefined) throw scheduleNotFound(scheduleId);
    const result = await audited(
      this.#host,
      { type: "remove_schedule", scheduleId },
      auditOf(call, "schedule.remove", `schedule:${scheduleId}`),
    );
    if (result.status === "not_found") throw scheduleNotFound(scheduleId);
    return {};
  }

  async #find(caller: Caller, scheduleId: string): Promise<Schedule | undefined> {
    return (await this.#host.storage.reader.schedules()).find(
      (schedule) => schedule.scheduleId === scheduleId && isOwn(caller, schedule),
    );
  }

  async #refuseTaken(scheduleId: string): Promise<void> {
    if ((await this.#host.storage.reader.schedules()).some((other) => other.scheduleId === scheduleId))
      throw new UsageError(`"${scheduleId}" cannot be the id of your schedule`, {
        at: "scheduleId",
        fix: "choose another id",
      });
  }

  async #setPaused(scheduleId: string, isPaused: boolean, call: Call): Promise<ScheduleMessage> {
    const known = await this.#find(call.caller, scheduleId);
    if (known === undefined) throw scheduleNotFound(scheduleId);
    if ((known.isPaused ?? false) === isPaused) return scheduleMessage(known);
    const nextAt = isPaused
      ? known.nextAt
      : this.#readCron(known.cron, known.timeZone).after(this.#host.clock.now());
    const result = await audited(
      this.#host,
      { type: "put_schedule", schedule: { ...known, nextAt, isPaused } },
      auditOf(call, `schedule.${isPaused ? "pause" : "unpause"}`, `schedule:${scheduleId}`),
    );
    if (result.status !== "done") throw unexpected("pausing a schedule", result);
    return scheduleMessage(result.schedule ?? known);
  }
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
    if (isQueuedTaskAgent(start.agent)) throw noTaskAgent(start.agent, "start.agent");
    const input = textOf(start.input, "start.input");
    refuseIfLarge(input, "start.input", LIMITS.payloadChars);
    const placement = placementOf(start, undefined);
    refuseForeignProject(caller, placement, "start.demands");
    await refuseInactive(host, start.agent);
    const version = await versionFor(host, start);
    const owner = caller.kind === "user" ? caller.name : undefined;
    const asked = {
      agent: { name: start.agent, version },
      placement: { ...placement, ...defined({ owner }) },
    };
    const budget =
      start.budget === undefined
        ? await announcedBudget(host.registry, asked)
        : checkBudget(budgetOf(start.budget));
    refuseTooLate(host, budget?.ttlMs ?? Infinity, "/start/budget/ttlMs");
    await refuseWrongInput(host.registry, { ...asked, input }, "/start/input");
    const environment = environmentOf(start.environment);
    const project = await projectOf(host, asked);
    await refuseMissingVariables(host, { ...asked, environment, project }, "/start/environment");
    return {
      type: "start",
      agent: { name: start.agent, version: start.agentVersion ?? UNKNOWN_VERSION },
      input,
      ...defined({ budget, placement, environment }),
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

function scheduleMessage(schedule: Schedule): ScheduleMessage {
  const { scheduleId, cron, timeZone, action, nextAt, isPaused = false, lastAt, createdAt, owner } = schedule;
  return {
    scheduleId,
    cron,
    timeZone,
    ...(action.type === "start"
      ? {
          start: {
            agent: action.agent.name,
            ...(action.agent.version === UNKNOWN_VERSION ? {} : { agentVersion: action.agent.version }),
            ...(action.input === undefined ? {} : { input: bytesOf(action.input) }),
            ...(action.budget === undefined ? {} : { budget: budgetMessage(action.budget) }),
            demands: { ...action.placement?.demands },
            ...(action.environment === undefined
              ? {}
              : { environment: environmentMessage(action.environment) }),
            ...defined({ priority: action.placement?.priority }),
          },
        }
      : {
          signal: {
            sessionId: action.sessionId,
            name: action.name,
            ...(action.payload === undefined ? {} : { payload: bytesOf(action.payload) }),
          },
        }),
    ...(isPaused ? {} : { nextAt: time(nextAt) }),
    isPaused,
    ...(lastAt === undefined ? {} : { lastAt: time(lastAt) }),
    createdAt: time(createdAt),
    ...defined({ owner }),
  };
}

function scheduleNotFound(scheduleId: string): NotFoundError {
  return new NotFoundError("schedule_not_found", `there is no schedule ${scheduleId}`, {
    fix: "list the schedules to see which there are",
  });
}
