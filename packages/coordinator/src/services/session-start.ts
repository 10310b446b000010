// `creationOf` turns a request into the change that creates a session, with an id that makes repeating the
// request safe.
//
//   L7. The id of a session under an idempotency key is derived from its owner and the key. Repeated and
//       concurrent requests at any coordinator therefore mean the same session. Another body under the key is
//       a conflict.
//   - `async_callback` makes the session a child that calls back. Every end of it reaches its parent in the
//     same transaction, under the one name that any agent can wait for. The child's number in the parent is
//     far above those of the parent's own commands. In the other modes the session of the caller may be named
//     too. It then has a child that it is not told of, and that outlives it.
//   - All checks come before the change, so that a refused request leaves nothing behind.
//   - A queued task is created under the claim of its session, and once under that claim. Storage checks that
//     with the change itself (ST49). A delayed request therefore creates nothing after another process
//     claimed the session, or after the task has its outcome.

import { createHash } from "node:crypto";
import {
  BEHAVIOUR_FLAGS,
  type Budget,
  checkBudget,
  ConflictError,
  type CreateSession,
  defined,
  type HeldAs,
  HoldfastError,
  isEnded,
  isSameEnvironment,
  JOURNAL_FORMAT,
  LimitError,
  isQueuedTaskAgent,
  LIMITS,
  mintId,
  NotFoundError,
  type Placement,
  refuseIfLarge,
  type Session,
  UsageError,
} from "@holdfast/core";
import { budgetOf, environmentOf, type StartRequest } from "@holdfast/proto";
import { invalid } from "../call/refusal.ts";
import { announcedBudget } from "../input/announced-budget.ts";
import { refuseMissingVariables } from "../input/refuse-missing-variables.ts";
import { refuseWrongInput } from "../input/refuse-wrong-input.ts";
import { noVersion, offeredVersion, versionOfItem } from "../catalogue/catalogue.ts";
import { textOf } from "../call/json-field.ts";
import type { Call } from "../call/call.ts";
import { sessionMoved, sessionNotFound, type ServiceHost } from "./service-host.ts";
import { projectOf, refuseForeignProject, refuseForeignTree } from "./environments/project-of.ts";
import { childrenOf, ownerFor, ownSession } from "./session-scope.ts";

/** The change that a request asks for. */
export async function creationOf(
  host: ServiceHost,
  request: StartRequest,
  call: Call,
): Promise<CreateSession> {
  const { invocation = "async_poll", parentSessionId, idempotencyKey, traceparent } = request;
  const task = request.taskId === undefined ? undefined : await taskOf(host, request, call);
  refuseForeignStarts(request, call, task);
  const input = textOf(request.input, "input");
  refuseIfLarge(input, "input", LIMITS.payloadChars);
  const owner = task === undefined ? await ownerFor(host, call.caller) : task.owner;
  const callsBack = invocation === "async_callback";
  const parent =
    callsBack || parentSessionId !== undefined ? await parentOf(host, parentSessionId, call) : undefined;
  const given = request.budget === undefined ? undefined : checkBudget(budgetOf(request.budget));
  const sessionId = idOf(host, request, owner);
  const placement = placementOf(request, owner);
  refuseForeignProject(call.caller, placement, "demands");
  await refuseForeignTree(host, call.caller, { placement, parent }, "parentSessionId");
  const version = await versionFor(host, request);
  const start = { agent: { name: request.agent, version }, placement };
  // The session that asked for a queued task pays for it.
  const usual = task === undefined ? await announcedBudget(host.registry, start) : undefined;
  const budget = given ?? usual;
  const timeoutMs = Math.min(Number(request.timeoutMs ?? Infinity), budget?.ttlMs ?? Infinity);
  refuseTooLate(host, timeoutMs, request.timeoutMs === undefined ? "/budget/ttlMs" : "/timeoutMs");
  const persistence = request.persistence as CreateSession["persistence"] | "full" | undefined;
  const isRepeated = (await host.storage.reader.session(sessionId)) !== undefined;
  if (!isRepeated) await refuseInactive(host, request.agent);
  const environment = environmentOf(request.environment);
  if (task === undefined && !isRepeated) {
    await refuseWrongInput(host.registry, { ...start, input }, "/input");
    const project = await projectOf(host, { placement, parent });
    await refuseMissingVariables(host, { ...start, environment, project }, "/environment");
  }
  return {
    type: "create_session",
    sessionId,
    agent: {
      name: request.agent,
      version,
      ...defined({ traceparent }),
    },
    ...defined({ title: request.title }),
    input,
    seed: idempotencyKey === undefined ? host.random.u32() : seedOf(sessionId, request, given),
    flags: BEHAVIOUR_FLAGS,
    format: JOURNAL_FORMAT,
    ...(parent === undefined
      ? {}
      : {
          parent: {
            sessionId: parent.sessionId,
            child: childNumber(sessionId),
            onEnd: callsBack ? ("cancel" as const) : ("leave" as const),
            notify: callsBack ? ("callback" as const) : ("end" as const),
          },
          depth: parent.depth + 1,
        }),
    ...(persistence === undefined || persistence === "full" ? {} : { persistence }),
    ...defined({ budget, environment }),
    ...(timeoutMs === Infinity ? {} : { deadlineAt: host.clock.now() + timeoutMs }),
    ...defined({ placement }),
    // mutant: queued-task-without-claim
    ...defined({ under: task?.under }),
  };
}

export function refuseTooLate({ clock }: ServiceHost, timeoutMs: number, pointer: string): void {
  if (timeoutMs === Infinity || Number.isSafeInteger(clock.now() + timeoutMs)) return;
  throw invalid([
    { pointer, code: "too_large", message: "puts the deadline beyond the largest safe integer" },
  ]);
}

/**
 * Refuses a request whose session exists and is different. The same session means that an answer was lost, or
 * that two requests came at once.
 */
export function refuseOther(stored: Session, change: CreateSession, request: StartRequest): void {
  const same =
    stored.agent.name === change.agent.name &&
    (request.agentVersion === undefined || stored.agent.version === change.agent.version) &&
    // mutant: other-body-accepted
    stored.input === change.input &&
    (stored.persistence ?? change.persistence) === change.persistence && // The session may have enabled full persistence since.
    stored.parent?.sessionId === change.parent?.sessionId &&
    stored.parent?.notify === change.parent?.notify &&
    stored.placement?.owner === change.placement?.owner &&
    sorted(stored.placement?.demands) === sorted(change.placement?.demands) &&
    (stored.placement?.priority ?? 0) === (change.placement?.priority ?? 0) &&
    isSameEnvironment(stored.environment, change.environment) &&
    (request.idempotencyKey === undefined
      ? request.budget === undefined || sorted(stored.account?.limits) === sorted(change.budget) // Else its agent's.
      : stored.seed === change.seed);
  if (same) return;
  if (request.idempotencyKey !== undefined && request.sessionId === undefined)
    throw new ConflictError("idempotency_conflict", "another request was made under this idempotency key", {
      fix: "use another key for another request",
    });
  throw new ConflictError("session_exists", `there is a session ${change.sessionId} already`, {
    fix: "choose another id, or none",
  });
}

function refuseForeignStarts(
  { agent, invocation, claimToken }: StartRequest,
  { caller }: Call,
  task: object | undefined,
): void {
  if (caller.kind === "runner" && task === undefined)
    throw new HoldfastError("forbidden", "a runner starts only queued tasks of sessions it holds", {
      at: "taskId",
    });
  if (isQueuedTaskAgent(agent) && task === undefined) throw noTaskAgent(agent, "agent");
  if (claimToken !== undefined && task === undefined)
    throw new UsageError("only a queued task is started under a claim", {
      at: "claimToken",
      expected: "a taskId with the claim",
    });
  if (caller.kind === "job" && invocation !== "async_callback")
    throw new HoldfastError("forbidden", "an agent at work starts children of its own session", {
      expected: 'invocation "async_callback", with its own parentSessionId',
    });
}

export function noTaskAgent(agent: string, at: string): UsageError {
  return new UsageError(`"${agent}" is no agent: the name is reserved for queued tasks`, {
    at,
    expected: "the name of an agent",
    fix: "name the agent that asks for the task; to queue a task, give its id as taskId",
  });
}

/** The owner of a task that may be queued, and the claim of its session if that is stored here. */
interface AllowedTask {
  readonly owner: string | undefined;
  readonly under?: HeldAs;
}

/**
 * Allows a task of a session that a runner holds or a user owns. The session may also be absent: it lives in
 * its user's own storage, and only its tasks are queued here. Storage checks the claim.
 */
async function taskOf(
  host: ServiceHost,
  { taskId = "", agent, claimToken }: StartRequest,
  { caller }: Call,
): Promise<AllowedTask> {
  const at = taskId.lastIndexOf("-");
  if (at <= 0 || !/^\d+$/.test(taskId.slice(at + 1)) || !isQueuedTaskAgent(agent))
    throw new UsageError(`"${taskId}" is no task of this agent`, {
      at: "taskId",
      expected: 'the id of a task, and "task:" with its kind as the agent',
    });
  const sessionId = taskId.slice(0, at);
  const session = await host.storage.reader.session(sessionId);
  const isRunner = caller.kind === "runner";
  if (session === undefined && isRunner) throw notHeld(sessionId);
  if (!isRunner && caller.kind !== "admin" && caller.kind !== "user") throw noSuchTask(taskId);
  if (session === undefined) return { owner: await ownerFor(host, caller) };
  const owner = session.placement?.owner;
  if (caller.kind === "user" && owner !== caller.name) throw noSuchTask(taskId);
  if (session.move?.isDone === true && !isRunner) return { owner };
  if (claimToken === undefined)
    throw new UsageError("a queued task is started under a claim of its session", {
      at: "claimToken",
      expected: `the token of the claim under which ${sessionId} runs`,
    });
  const under = { sessionId, token: Number(claimToken), ...(isRunner ? { owner: caller.name } : {}) };
  return { owner, under };
}

function noSuchTask(taskId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no task ${taskId}`);
}

/** The same error as for a missing session: a runner knows only the sessions that it holds (X13). */
export function notHeld(sessionId: string): ConflictError {
  return new ConflictError("fenced", `the caller does not hold session ${sessionId} by this claim`, {
    at: "claimToken",
    fix: "do nothing: the current holder of the claim continues the session's tasks",
  });
}

async function parentOf(
  host: ServiceHost,
  parentSessionId: string | undefined,
  call: Call,
): Promise<Session> {
  if (parentSessionId === undefined)
    throw new UsageError("the request names no session for its callback", {
      at: "parentSessionId",
      expected: "the id of the session that asks",
    });
  const parent = await ownSession(host, call.caller, parentSessionId);
  if (call.caller.kind === "job" && parent.sessionId !== call.caller.name)
    throw sessionNotFound(parentSessionId);
  if (parent.move !== undefined) throw sessionMoved(parent.move.to);
  if (isQueuedTaskAgent(parent.agent.name))
    throw new UsageError(`session ${parentSessionId} is a queued task, and no conversation`, {
      at: "parentSessionId",
      expected: "a session of an agent",
      fix: "name the session that asked for the task, or none",
    });
  if (isEnded(parent.status))
    throw new ConflictError(
      "session_ended",
      `session ${parentSessionId} has ended (${parent.status}): it can have no child`,
    );
  if (parent.depth + 1 > LIMITS.depth)
    throw new LimitError("depth", `session ${parentSessionId} is already ${parent.depth} sessions deep`, {
      expected: `at most the limit "depth" (${LIMITS.depth})`,
    });
  const children = await childrenOf(host, parent);
  if (children.length >= LIMITS.children)
    throw new LimitError("children", `session ${parentSessionId} already has ${children.length} children`, {
      expected: `at most the limit "children" (${LIMITS.children})`,
    });
  return parent;
}

function idOf(
  host: ServiceHost,
  { sessionId, idempotencyKey, taskId }: StartRequest,
  owner: string | undefined,
): string {
  if (sessionId !== undefined) return sessionId;
  if (idempotencyKey !== undefined) return derivedId("key", owner ?? "", idempotencyKey);
  if (taskId !== undefined) return derivedId("task", taskId);
  return mintId("ses", host.clock.now(), () => host.random.u32());
}

/** An id in the usual shape that does not reveal its parts. */
function derivedId(...parts: readonly string[]): string {
  const hex = digestOf(JSON.stringify(parts)).toString("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `ses_${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Under a key, concurrent requests make the same session. The seed includes the options that may change later
 * or are not stored as given. The seed itself stays, so that a repeated request is recognised.
 */
function seedOf(sessionId: string, { timeoutMs }: StartRequest, budget: Budget | undefined): number {
  return digestOf(`seed of ${sessionId} ${timeoutMs ?? ""} ${sorted(budget)}`).readUInt32BE(0);
}

function childNumber(sessionId: string): number {
  return 2 ** 48 + digestOf(`child ${sessionId}`).readUIntBE(0, 6);
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

export function placementOf(
  { demands, priority }: Pick<StartRequest, "demands" | "priority">,
  owner: string | undefined,
): Placement | undefined {
  const hasDemands = Object.keys(demands).length > 0;
  if (owner === undefined && !hasDemands && priority === undefined) return undefined;
  return {
    ...defined({ owner }),
    ...(hasDemands ? { demands: { ...demands } } : {}),
    ...defined({ priority }),
  };
}

/** @throws NotFoundError for an agent file that is inactive in the catalogue. */
export async function refuseInactive(
  { catalogue }: Pick<ServiceHost, "catalogue">,
  agent: string,
): Promise<void> {
  if ((await catalogue.agent(agent))?.isActive !== false) return;
  throw new NotFoundError("agent_not_found", `the agent ${agent} is inactive at this coordinator`, {
    at: "agent",
    fix: `have an admin activate it: \`holdfast agents activate ${agent}\``,
  });
}

/**
 * The version that a request means: a tag or a version of the catalogue, one that runners offer, or the
 * current one.
 *
 * @throws NotFoundError for a version that neither the catalogue nor a runner has, of an agent that the
 *   catalogue has.
 */
export async function versionFor(
  host: Pick<ServiceHost, "registry" | "catalogue">,
  { agent, agentVersion }: { readonly agent: string; readonly agentVersion?: string | undefined },
): Promise<string> {
  if (agentVersion === undefined) return versionOf(host, agent, "1");
  const item = await host.catalogue.agent(agent);
  if (item === undefined) return agentVersion;
  const hash = versionOfItem(item, agentVersion);
  if (hash !== undefined) return offeredVersion(hash);
  const isOffered = (await host.registry.all()).some(({ agents }) =>
    agents.some(({ name, version }) => name === agent && version === agentVersion),
  );
  if (!isOffered) throw noVersion(item, agentVersion, "agentVersion");
  return agentVersion;
}

/** The current version of an agent file in the catalogue, and otherwise the version that runners offer now. */
export async function versionOf(
  { registry, catalogue }: Pick<ServiceHost, "registry" | "catalogue">,
  agent: string,
  otherwise: string,
): Promise<string> {
  const item = await catalogue.agent(agent);
  if (item !== undefined) return offeredVersion(item.current);
  const runners = [...(await registry.all())].sort((a, b) => b.registeredAt - a.registeredAt);
  for (const { agents } of runners) {
    const offered = agents.find(({ name, version }) => name === agent && version !== undefined);
    if (offered?.version !== undefined) return offered.version;
  }
  return otherwise;
}

/** The same text for the same members in any order. */
function sorted(value: object | undefined): string {
  return JSON.stringify(Object.entries(value ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}
