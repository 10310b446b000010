// `childRoutes`: the routes of the run gateway by which an executor starts sessions below its own, and reads
// them.
//
//   child-routes-1. A start is a call of the session's tool `start_agent_session`. The session creates the
//       child in the commit that also remembers it, and the answer comes after that commit. Everything that
//       is wrong is refused before the call is stored.
//   child-routes-2. An executor reads its own session and its children, and no other session.
//   - A `sync` start is answered when the child has ended, or refused with the child's id when that takes too
//     long. The child continues then.

import {
  defined,
  endEvent,
  HoldfastError,
  isEnded,
  isName,
  LimitError,
  LIMITS,
  type Session,
  type SessionStatus,
} from "@holdfast/core";
import type { SessionToolInput } from "@holdfast/proto/session-tools";
import type { GatewayAnswer, GatewayCall, GatewayHandler, GatewayRoutes } from "@holdfast/runtime/gateway";
import { setTimeout as delay } from "node:timers/promises";

import { errorText, resultOf } from "../../session/way-back/callback-text.ts";
import { wrongField, type ServedTurn } from "./report-routes.ts";

const MODES = ["sync", "async_poll", "async_callback"] as const;
type Mode = (typeof MODES)[number];

/** Seconds. */
const SYNC_WAIT_MAX = 600;
/** How often a child is looked at that is waited for: at first, and at most. */
const LOOK_MS = { first: 20, max: 1_000 } as const;
/** A year, in seconds. */
const TIMEOUT_MAX = 31_536_000;
const TEXT_CHARS = 200;

type Body = GatewayCall["body"];

type StartCall = SessionToolInput<"start_agent_session">;

interface Start {
  readonly mode: Mode;
  readonly waitMs: number;
  readonly call: StartCall;
}

type Task = ServedTurn["turn"]["task"];

export function childRoutes(served: () => ServedTurn): GatewayRoutes {
  const read =
    (of: (child: Session, own: boolean) => Record<string, unknown>): GatewayHandler =>
    async ({ sessionId, params: { id = "" } }) => ({
      body: of(await readSession(served().turn.task, id), id === sessionId),
    });
  return {
    "POST /runs": async (call) => startChild(served(), call),
    "GET /runs/{id}": read((child, own) => runOf(child, own)),
    "GET /sessions/{id}": read((child, own) => ({ session: sessionOf(child, own) })),
    "GET /sessions/{id}/status": async ({ sessionId, params: { id = "" } }) => {
      const found = id === sessionId ? undefined : await findSession(served().turn.task, id);
      if (id === sessionId) return { body: { status: "running" } };
      return { body: { status: found === undefined ? "not_existent" : STATUS[found.status].session } };
    },
    "GET /sessions/{id}/result": read((child) => resultOfEnded(child)),
  };
}

async function startChild(
  served: ServedTurn,
  { sessionId, body, signal }: GatewayCall,
): Promise<GatewayAnswer> {
  const { mode, waitMs, call } = readStart(body, sessionId, served.executor);
  const { task } = served.turn;
  refuseParent(await Promise.race([task.readSession(), served.over]));
  const childId = await start(served, call, signal);
  const started = { run_id: childId, session_id: childId };
  if (mode !== "sync") return { status: 201, body: { ...started, status: "pending" } };
  const child = await Promise.race([untilEnded(task, childId, waitMs, signal), served.over]);
  if (child === undefined)
    throw new HoldfastError(
      "request_timeout",
      `session ${childId} has not ended within ${waitMs / 1_000} seconds`,
      {
        at: childId,
        expected: "a child that ends in that time",
        fix: `ask GET /sessions/${childId}/status later, or start it with execution_mode "async_callback"; it continues`,
      },
    );
  const { status } = STATUS[child.status];
  const ended = child.status === "completed" ? resultOfEnded(child) : { error: whyEnded(child) };
  return { status: 201, body: { ...started, status, ...ended } };
}

/** child-routes-1. @returns the id of the child. */
async function start({ turn, over }: ServedTurn, call: StartCall, signal: AbortSignal): Promise<string> {
  const { wayBack } = turn;
  if (wayBack === undefined)
    throw new HoldfastError("not_implemented", "no session is here that could start a child", {
      fix: "start the executor by a session",
    });
  const { text, isError } = await Promise.race([wayBack.call("start_agent_session", call, signal), over]);
  if (isError) throw new HoldfastError("invalid_input", text);
  return (JSON.parse(text) as { readonly session_id: string }).session_id;
}

/** @returns the child; `undefined` when it has not ended in time. */
async function untilEnded(
  task: Task,
  childId: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<Session | undefined> {
  const endsAt = performance.now() + waitMs;
  for (let pauseMs: number = LOOK_MS.first; ; pauseMs = Math.min(2 * pauseMs, LOOK_MS.max)) {
    const child = await readSession(task, childId);
    if (isEnded(child.status)) return child;
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0) return undefined;
    await delay(Math.min(pauseMs, leftMs), undefined, { signal });
  }
}

/** child-routes-1. The request of the orchestrator's clients. @throws HoldfastError */
function readStart(body: Body, sessionId: string, executor: string): Start {
  const { type = "start_session", parent_session_id: parentId } = body;
  if (type !== "start_session")
    throw new HoldfastError("not_implemented", "a child ends with its result and is not resumed", {
      at: "/type",
      got: shortText(type),
      expected: '"start_session"',
      fix: "start another child, with the earlier result in its prompt",
    });
  if (parentId !== undefined && parentId !== null && parentId !== sessionId)
    throw new HoldfastError("forbidden", "the token belongs to another session", {
      at: "/parent_session_id",
      fix: "name the session of this run, or none",
    });
  for (const name of ["session_id", "additional_demands", "scope"])
    if (isGiven(body[name]))
      throw wrongField(
        name,
        "no such field: the parent's agent decides where its children run, and names them",
      );
  const mode = readMode(body);
  const key = readKey(body);
  const timeout = readSeconds(body, "timeout_seconds", TIMEOUT_MAX);
  return {
    mode,
    waitMs: (readSeconds(body, "wait_seconds", SYNC_WAIT_MAX) ?? SYNC_WAIT_MAX) * 1_000,
    call: {
      agent_name: readAgent(body) ?? executor,
      input: readChildInput(body),
      mode: mode === "async_callback" ? mode : "async_poll",
      ...defined({ idempotency_key: key, timeout_seconds: timeout }),
    },
  };
}

function readAgent(body: Body): string | undefined {
  const name = readText(body, "agent_name");
  if (name !== undefined && !isName(name)) throw wrongField("agent_name", "the name of an agent", name);
  return name;
}

function readMode({ execution_mode: given, callback }: Body): Mode {
  if (callback !== undefined && callback !== null && typeof callback !== "boolean")
    throw wrongField("callback", "true or false");
  if (!isGiven(given)) return callback === true ? "async_callback" : "async_poll";
  const mode = MODES.find((one) => one === given);
  if (mode === undefined)
    throw wrongField("execution_mode", MODES.map((one) => `"${one}"`).join(", "), given);
  if (typeof callback === "boolean" && callback !== (mode === "async_callback"))
    throw wrongField(
      "callback",
      `${mode === "async_callback"}, or none, beside execution_mode "${mode}"`,
      callback,
    );
  return mode;
}

/** `input` is the child's input as it is. The other fields are an executor's. */
function readChildInput(body: Body): unknown {
  const { prompt, parameters, input } = body;
  const given = [prompt, parameters, input].filter((value) => isGiven(value));
  if (given.length !== 1) throw wrongField("prompt", "exactly one of prompt, parameters and input");
  if (isGiven(input)) return input;
  if (isGiven(prompt) && (typeof prompt !== "string" || prompt === "")) throw wrongField("prompt", "a text");
  if (isGiven(parameters) && (typeof parameters !== "object" || Array.isArray(parameters)))
    throw wrongField("parameters", "a JSON object");
  const projectDir = readText(body, "project_dir", Infinity);
  return {
    ...(isGiven(prompt) ? { prompt } : { parameters }),
    ...defined({ project_dir: projectDir }),
  };
}

function readKey(body: Body): string | undefined {
  const key = readText(body, "idempotency_key");
  if (key === undefined || /^[\x21-\x7e]+$/.test(key)) return key;
  throw wrongField("idempotency_key", "a text of 1 to 200 visible ASCII characters", key);
}

function readSeconds(body: Body, name: string, max: number): number | undefined {
  const value = body[name];
  if (!isGiven(value)) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw wrongField(name, `a whole number from 1 to ${max}`, value);
}

function readText(body: Body, name: string, max = TEXT_CHARS): string | undefined {
  const value = body[name];
  if (!isGiven(value)) return undefined;
  if (typeof value === "string" && value !== "" && value.length <= max) return value;
  throw wrongField(name, `a text${max === Infinity ? "" : ` of 1 to ${max} characters`}`, value);
}

/** child-routes-1. @throws HoldfastError for a session that can have no more children. */
function refuseParent(own: Session | undefined): void {
  if (own === undefined || isEnded(own.status) || own.status === "cancelling")
    throw new HoldfastError(
      "session_ended",
      "the session has ended, or is being cancelled: it starts no child",
      {
        fix: "start the child from a session that goes on",
      },
    );
  if (own.depth + 1 > LIMITS.depth)
    throw new LimitError("depth", `session ${own.sessionId} is already ${own.depth} sessions deep`, {
      expected: `at most the limit "depth" (${LIMITS.depth})`,
    });
  if (own.children >= LIMITS.children)
    throw new LimitError("children", `session ${own.sessionId} already has ${own.children} children`, {
      expected: `at most the limit "children" (${LIMITS.children})`,
    });
}

// ---- reading -----------------------------------------------------------------------------------------------------

/** The statuses of a session, and of its run, in the words of the protocol. */
const STATUS: { readonly [status in SessionStatus]: { readonly session: string; readonly status: string } } =
  {
    submitted: { session: "pending", status: "pending" },
    working: { session: "running", status: "running" },
    waiting: { session: "running", status: "running" },
    input_required: { session: "running", status: "running" },
    paused: { session: "running", status: "running" },
    cancelling: { session: "stopping", status: "stopping" },
    completed: { session: "finished", status: "completed" },
    failed: { session: "failed", status: "failed" },
    cancelled: { session: "stopped", status: "stopped" },
  };

/** child-routes-2. A child that handed over is read in its successor. */
async function findSession(task: Task, id: string): Promise<Session | undefined> {
  const seen = new Set<string>();
  let found = await task.readSession(id);
  while (found?.handedOffTo !== undefined && !seen.has(found.sessionId)) {
    seen.add(found.sessionId);
    found = await task.readSession(found.handedOffTo);
  }
  return found;
}

async function readSession(task: Task, id: string): Promise<Session> {
  const found = await findSession(task, id);
  if (found !== undefined) return found;
  throw new HoldfastError("session_not_found", `there is no session ${shortText(id)} below this one`, {
    expected: "the id of a session that this one has started",
  });
}

function sessionOf(
  { sessionId, agent, status, parent, createdAt }: Session,
  own: boolean,
): Record<string, unknown> {
  return {
    session_id: sessionId,
    status: own ? "running" : STATUS[status].session,
    agent_name: agent.name,
    parent_session_id: parent?.sessionId ?? null,
    created_at: new Date(createdAt).toISOString(),
  };
}

function runOf(child: Session, own: boolean): Record<string, unknown> {
  const error = isEnded(child.status) && child.status !== "completed" ? whyEnded(child) : null;
  const { session_id: sessionId } = sessionOf(child, own);
  return {
    run_id: sessionId,
    session_id: sessionId,
    status: own ? "running" : STATUS[child.status].status,
    error,
  };
}

/** @throws HoldfastError for a child that has no result, or none so far. */
function resultOfEnded(child: Session): Record<string, unknown> {
  const { sessionId, status, output } = child;
  if (!isEnded(status))
    throw new HoldfastError("session_not_ended", `session ${sessionId} has not finished: it is ${status}`, {
      fix: `ask GET /sessions/${sessionId}/status until it is finished`,
    });
  if (status !== "completed")
    throw new HoldfastError("not_found", `session ${sessionId} has no result: ${whyEnded(child)}`);
  const { text, data } = resultOf(output === undefined ? null : (JSON.parse(output) as unknown));
  return { result_text: text, result_data: data };
}

function whyEnded(child: Session): string {
  return errorText(JSON.parse(endEvent(child)) as Parameters<typeof errorText>[0]);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function shortText(value: unknown): string {
  return (typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing")).slice(0, TEXT_CHARS);
}
