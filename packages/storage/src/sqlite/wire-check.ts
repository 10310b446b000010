// Whether what came over the socket is a request, to the last field that we act on (L2 of `wire.ts`).
//
// The other side is this user's own process, so this is no defence against an attacker: it keeps a mistake there (another
// version, a hand-made client) from becoming a record here that cannot be read back.

import { SESSION_STATUSES, type Change } from "@holdfast/core";
import { isObject } from "./json-object.ts";
import type { Method, Request } from "./wire.ts";

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const isText: Check = (value) => typeof value === "string";
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isToken: Check = (value) => Number.isSafeInteger(value);
const isTime: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isOneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === "string" && values.includes(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
/** L3: `null` is for ever. */
const isLease: Check = (value) => value === null || isTime(value);

function hasShape(shape: Shape): Check {
  const fields = Object.entries(shape);
  return (value) => isObject(value) && fields.every(([field, check]) => check(value[field]));
}

const isStatus = isOneOf(...SESSION_STATUSES);
const isWait = hasShape({ type: isOneOf("timer", "signal", "input"), seq: isCount });
/** What a record of its type must have beyond this is for the kernel to judge; it is kept as it is. */
const isRecord = hasShape({ type: isText, seq: isCount, payload: optional(isText) });

const isEntry = hasShape({
  seq: isCount,
  index: isCount,
  parent: optional(isCount),
  role: isText,
  turn: isCount,
  content: isText,
});

const isPatch = hasShape({
  status: isStatus,
  pauseReason: optional(isText),
  waits: optional(listOf(isWait)),
  wakeAt: optional(isTime),
  turn: optional(isCount),
  output: optional(isText),
  error: optional(hasShape({ name: isText, message: isText })),
});

const CHANGES: { readonly [type in Change["type"]]: Check } = {
  create_session: hasShape({
    sessionId: isText,
    agent: hasShape({
      name: isText,
      version: isText,
      file: optional(isText),
      traceparent: optional(isText),
    }),
    input: optional(isText),
    seed: isTime,
    flags: isCount,
    format: isCount,
    claimFor: optional(hasShape({ owner: isText, leaseMs: isLease })),
    first: optional(
      hasShape({ records: listOf(isRecord), entries: listOf(isEntry), session: optional(isPatch) }),
    ),
  }),
  send_signal: hasShape({
    sessionId: isText,
    signalId: isText,
    name: isText,
    payload: optional(isText),
    dedupKey: optional(isText),
  }),
  request_cancel: hasShape({
    sessionId: isText,
    mode: isOneOf("graceful", "hard"),
    graceMs: isTime,
    reason: optional(isText),
  }),
  commit_batch: hasShape({
    sessionId: isText,
    token: isToken,
    firstSeq: isCount,
    records: listOf(isRecord),
    entries: listOf(isEntry),
    consumed: listOf(isText),
    session: optional(isPatch),
  }),
  release_claim: hasShape({ sessionId: isText, token: isToken }),
};

const isChange: Check = (value) => {
  if (!isObject(value)) return false;
  const check = Object.hasOwn(CHANGES, String(value["type"]))
    ? CHANGES[value["type"] as Change["type"]]
    : undefined;
  return check !== undefined && check(value);
};

const ofSession = hasShape({ sessionId: isText });

const PARAMS: { readonly [method in Method]: Check } = {
  commit: hasShape({ changes: listOf(isChange), now: isTime }),
  claim: hasShape({ sessionId: isText, owner: isText, now: isTime, leaseMs: isLease }),
  load: ofSession,
  arrivals: hasShape({ sessionId: isText, after: isTime }),
  conversation: hasShape({ sessionId: isText, leaf: isCount }),
  due: hasShape({ now: isTime, limit: isCount }),
  subscribe: isObject,
  "reader.sessions": hasShape({ limit: isCount, before: optional(isText), status: optional(isStatus) }),
  "reader.session": ofSession,
  "reader.journal": hasShape({ sessionId: isText, fromSeq: isCount, limit: isCount }),
  "reader.entries": hasShape({ sessionId: isText, from: isCount, limit: isCount }),
  "reader.pendingSignals": ofSession,
};

/** The request of a line; only its id when what it asks for is not of the port; `undefined` when it is no request at all. */
export function parseRequest(line: string): Request | { readonly id: number } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(value) || !isCount(value["id"])) return undefined;
  const { id, method, params } = value;
  const isKnown =
    typeof method === "string" && Object.hasOwn(PARAMS, method) && PARAMS[method as Method](params);
  return isKnown ? (value as unknown as Request) : { id: id as number };
}
