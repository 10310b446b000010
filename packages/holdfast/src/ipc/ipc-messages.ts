// The protocol of `holdfast runner --ipc` (`IPC_PROTOCOL`): the messages of both directions, as schemas.
//
//   - The schemas are the only list of messages. Types, checks and `docs/ipc/schema.json` come from them.
//   - Requests are checked strictly, because a misspelt field would be a wish that nobody hears. A host
//     ignores messages and fields that it does not know, so that a later runner may send more.
//   - A change that an older host would not understand has a new number of the protocol.

import { type Budget, didYouMean, type GivenEnvironment, SESSION_STATUSES, UsageError } from "@holdfast/core";
import { z } from "zod";

export const IPC_PROTOCOL = 1;

const PAGE_MAX = 500;
const count = z.int().min(0);
const sessionId = z.string().min(1).max(100).describe("The id of a session.");
const json = z.unknown().describe("Any JSON value.");
const id = z
  .string()
  .min(1)
  .max(100)
  .describe("The host's own id of this request. The runner answers with it, and accepts it once.");

const budget: z.ZodType<Budget> = z
  .strictObject({
    maxTokens: count,
    maxCostMicroUsd: count,
    maxTokensPerCall: count,
    maxSteps: count,
    maxTurns: count,
    ttlMs: count,
    onExhausted: z.enum(["park", "cancel"]),
  })
  .partial()
  .describe("Limits of the session and of all sessions below it.") as never;

const environment: z.ZodType<GivenEnvironment> = z
  .strictObject({ references: z.array(z.string()), values: z.record(z.string(), z.string()) })
  .partial()
  .describe(
    "Names of environments, and values by the names of variables, for an agent file. No value is a secret.",
  ) as never;

function request<Type extends string, Fields extends z.core.$ZodLooseShape>(type: Type, fields: Fields) {
  return z.strictObject({ type: z.literal(type), id, ...fields });
}

/** The requests of a host. */
const REQUESTS = {
  hello: request("hello", {
    protocol: z.int().min(1).describe("The number of the protocol that the host speaks."),
    host: z.string().max(200).optional().describe("The host's name, for the log."),
  }).describe("The first request. Every other request is refused before it."),
  status: request("status", {}).describe("How the runner stands. It is answered also before `ready`."),
  start: request("start", {
    agent: z.string().min(1).describe("The name of an agent that the runner has loaded."),
    input: json.optional(),
    sessionId: sessionId
      .optional()
      .describe("An id of the host's own, under which a start is safe to repeat."),
    title: z
      .string()
      .optional()
      .describe("One line about the session for people, made of the input by default."),
    budget: budget.optional(),
    timeoutMs: z.int().min(1).optional().describe("The session is cancelled this long after its start."),
    persistence: z.enum(["full", "minimal"]).optional(),
    environment: environment.optional(),
  }).describe("Start a session. The answer comes when it is stored."),
  session: request("session", { sessionId }).describe("How a session stands."),
  sessions: request("sessions", {
    limit: z.int().min(1).max(PAGE_MAX).optional(),
    before: sessionId.optional().describe("Only sessions that were started before this one."),
    status: z.enum(SESSION_STATUSES).optional(),
  }).describe("The sessions, the newest first."),
  signal: request("signal", {
    sessionId,
    name: z.string().min(1),
    payload: json.optional(),
    dedupKey: z.string().min(1).optional().describe("A second signal with this key is not stored."),
  }).describe("Send a signal. The answer comes when it is stored."),
  answer: request("answer", {
    sessionId,
    answer: json,
    question: count.optional().describe("The number of the question; the only open one by default."),
  }).describe("Answer a question. The first answer counts."),
  cancel: request("cancel", {
    sessionId,
    hard: z.boolean().optional().describe("End the session at once, without its agent."),
    graceMs: count.optional().describe("How long its agent may clean up."),
    reason: z.string().optional(),
  }).describe("Cancel a session with all sessions below it."),
  pause: request("pause", { sessionId }).describe("Let running tasks finish, and start nothing more."),
  unpause: request("unpause", { sessionId }).describe("Let a paused session continue."),
  subscribe: request("subscribe", {
    sessionId,
    afterSeq: z.int().min(-1).optional().describe("The last position that the host knows; -1 by default."),
  }).describe("Receive the committed events of a session, those that are there and those to come."),
  unsubscribe: request("unsubscribe", { sessionId }),
  stop: request("stop", {}).describe("End the runner. Every session stays as its last commit left it."),
} as const;

export type RequestType = keyof typeof REQUESTS;
export type IpcRequest = { [T in RequestType]: z.infer<(typeof REQUESTS)[T]> }[RequestType];
export type RequestOf<T extends RequestType> = Extract<IpcRequest, { type: T }>;
export const REQUEST_TYPES = Object.keys(REQUESTS) as RequestType[];

// ---- what the runner sends
// -----------------------------------------------------------------------------------------

const text = z.string();
const error = z
  .looseObject({
    code: text.describe("One of docs/errors.md."),
    message: text,
    at: text.optional(),
    got: text.optional(),
    expected: text.optional(),
    fix: text.optional().describe("The advice for a person."),
  })
  .describe("What happened, where, what was there, what was expected, and how to mend it.");
const place = z
  .looseObject({ type: z.enum(["database", "coordinator"]), at: text })
  .describe("Where sessions are: the path of a database, or the URL of a coordinator.");
const anySession = z.looseObject({ sessionId, status: z.enum(SESSION_STATUSES) });

function message<Type extends string, Fields extends z.core.$ZodLooseShape>(type: Type, fields: Fields) {
  return z.looseObject({ type: z.literal(type), ...fields });
}

/** The messages of the runner. */
const MESSAGES = {
  hello: message("hello", {
    protocols: z.array(z.int()),
    holdfast: text.describe("The version of Holdfast."),
    requests: z.array(text).describe("The types of requests that this runner knows."),
    limits: z.looseObject({
      lineBytes: z.int().describe("A longer line of the host is refused."),
      openRequests: z.int().describe("The runner reads no further while so many requests are unanswered."),
      subscriptions: z.int(),
    }),
  }).describe("The first line. It is sent before anything is loaded."),
  ready: message("ready", {
    place,
    agents: z.array(z.looseObject({ name: text, version: text })),
    resumed: z.array(sessionId).describe("Sessions of an earlier runner that continue here."),
  }).describe("Files are loaded, and sessions run. It is sent again after the place was reopened."),
  result: message("result", { id, result: z.looseObject({}) }).describe("The answer to a request."),
  error: message("error", {
    id: id.optional().describe("The request that failed. Without it the line was no request."),
    line: z.int().optional().describe("The number of the host's line, from 1."),
    error,
  }),
  event: message("event", {
    sessionId,
    event: z.looseObject({ seq: count, type: text }).describe("A record of the session's journal."),
  }).describe("A committed event of a subscribed session. Each comes once, in order."),
  session: message("session", { sessionId, session: anySession }).describe(
    "How a subscribed session stands, whenever that has changed.",
  ),
  unsubscribed: message("unsubscribed", {
    sessionId,
    reason: z.enum(["asked", "ended", "moved", "deleted", "failed"]),
    error: error.optional(),
  }).describe("The last message of a subscription."),
  delta: message("delta", {
    sessionId,
    taskId: text,
    kind: text,
    attempt: z.int(),
    offset: z.int(),
    delta: json,
  }).describe(
    "A piece of what a running task streams. It is not durable, and is left out when the host reads too slowly.",
  ),
  warning: message("warning", { sessionId: sessionId.optional(), message: text }),
  end: message("end", {
    reason: z.enum(["stopped", "host_gone", "signal", "failed", "drained"]),
    error: error.optional(),
  }).describe("The last line. A process that ends without it has crashed; start it again."),
} as const;

export type IpcMessage = {
  [T in keyof typeof MESSAGES]: z.infer<(typeof MESSAGES)[T]>;
}[keyof typeof MESSAGES];

/** Both directions as one JSON Schema. `docs/ipc/schema.json` is a copy of it. */
export function ipcSchema(): object {
  const of = (schemas: Readonly<Record<string, z.ZodType>>): object =>
    Object.fromEntries(Object.entries(schemas).map(([type, schema]) => [type, bare(z.toJSONSchema(schema))]));
  const either = (defs: string, types: readonly string[]): object => ({
    oneOf: types.map((type) => ({ $ref: `#/$defs/${defs}/${type}` })),
  });
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: `Messages of holdfast runner --ipc, protocol ${IPC_PROTOCOL}`,
    description:
      "Each line is one message. Lines of the host are requests; lines of the runner are messages.",
    anyOf: [{ $ref: "#/$defs/fromHost" }, { $ref: "#/$defs/fromRunner" }],
    $defs: {
      fromHost: either("request", REQUEST_TYPES),
      fromRunner: either("message", Object.keys(MESSAGES)),
      request: of(REQUESTS),
      message: of(MESSAGES),
    },
  };
}

/** A schema without the dialect, which the whole names. */
function bare(schema: z.core.JSONSchema.BaseSchema): object {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "$schema"));
}

/** Whether a line of the runner is one of its messages: for tests of both sides. */
export function isIpcMessage(value: unknown): boolean {
  const type = (value as { readonly type?: string } | null)?.type ?? "";
  return Object.hasOwn(MESSAGES, type) && MESSAGES[type as keyof typeof MESSAGES].safeParse(value).success;
}

// ---- checks ----------------------------------------------------------------------------------------------------------

/** The id of what may be a request, so that a refusal can name it. */
export function requestId(value: unknown): string | undefined {
  const found = id.safeParse((value as { readonly id?: unknown } | null)?.id);
  return found.success ? found.data : undefined;
}

/** @throws UsageError that names the field. */
export function checkRequest(value: unknown): IpcRequest {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError("a request is a JSON object", { expected: '{"type": "status", "id": "1"}' });
  const { type } = value as { readonly type?: unknown };
  if (typeof type !== "string" || !Object.hasOwn(REQUESTS, type)) {
    const what =
      typeof type === "string" ? `there is no request "${type.slice(0, 100)}"` : "a request has a type";
    throw new UsageError(`${what}${typeof type === "string" ? didYouMean(type, REQUEST_TYPES) : ""}`, {
      at: "/type",
      expected: REQUEST_TYPES.join(", "),
      fix: "send a request that `requests` of the runner's hello lists",
    });
  }
  const schema = REQUESTS[type as RequestType];
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const { issues } = checked.error;
  const known = Object.keys(schema.shape);
  const unknown = issues.find((one) => one.code === "unrecognized_keys");
  if (unknown !== undefined) {
    const [key = ""] = unknown.keys;
    const at = ["", ...unknown.path, key.slice(0, 100)].join("/");
    const near = unknown.path.length === 0 ? didYouMean(key, known) : "";
    throw new UsageError(`the request "${type}" has no field ${at}${near}`, {
      at,
      expected: near === "" ? SEE_SCHEMA : known.join(", "),
      fix: "correct the name, or leave the field out",
    });
  }
  const [issue] = issues;
  throw new UsageError(`a field of the request "${type}" is missing or wrong`, {
    at: `/${issue?.path.join("/") ?? ""}`,
    expected: issue?.message.replace("Invalid input: expected ", "") ?? SEE_SCHEMA,
    fix: SEE_SCHEMA,
  });
}

const SEE_SCHEMA = "docs/ipc/schema.json defines each request";
