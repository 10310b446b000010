// `sessionMessage` shows a session, and what belongs to it, as the contract does.

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  defined,
  resumesAt,
  spentIn,
  type Account,
  type Amount,
  type Entry,
  type Exhausted,
  type QuotaWait,
  type RecordedError,
  type Session,
  type SessionCost,
  type Wait,
} from "@holdfast/core";
import {
  budgetMessage,
  type AccountSchema,
  type AmountSchema,
  type CostSchema,
  type EntrySchema,
  type ExhaustedSchema,
  type QuotaSchema,
  type RecordedErrorSchema,
  type SessionSchema,
  type WaitSchema,
} from "@holdfast/proto";
import { bytesOf } from "../call/json-field.ts";

export type SessionMessage = MessageInitShape<typeof SessionSchema>;

/** Facts about a session that are not in its row. */
export interface Whereabouts {
  readonly runnerId?: string | undefined;
  /** The need of the session that no registered runner meets. */
  readonly blocked?: string | undefined;
  /** The names of its stored signals that are not read yet. */
  readonly pending?: ReadonlySet<string> | undefined;
  /** The present, for what is spent in windows. Epoch milliseconds. */
  readonly now: number;
}

export function sessionMessage(
  session: Session,
  { runnerId, blocked, pending, now }: Whereabouts,
): SessionMessage {
  const { agent, placement = {}, parent, fork, cancel, account, error } = session;
  return {
    sessionId: session.sessionId,
    agent: agent.name,
    agentVersion: agent.version,
    ...defined({ title: session.title }),
    status: session.status,
    ...defined({ pauseReason: session.pauseReason, owner: placement.owner }),
    demands: { ...placement.demands },
    priority: placement.priority ?? 0,
    ...json("input", session.input),
    ...json("output", session.output),
    ...(error === undefined ? {} : { error: errorMessage(error) }),
    waits: session.waits.map((wait) => waitMessage(wait, pending)),
    ...(account === undefined ? {} : { account: accountMessage(account, now) }),
    ...(session.cost === undefined ? {} : { cost: costMessage(session.cost) }),
    ...(session.exhausted === undefined ? {} : { exhausted: exhaustedMessage(session.exhausted) }),
    ...(session.quota === undefined ? {} : { quota: quotaMessage(session.quota) }),
    ...defined({ parentSessionId: parent?.sessionId }),
    depth: session.depth,
    children: session.children,
    ...defined({ handedOffTo: session.handedOffTo, originSessionId: fork?.origins[0] }),
    turn: session.turn,
    nextSeq: BigInt(session.nextSeq),
    entryCount: session.entryCount,
    ...json("progress", session.progress),
    persistence: session.persistence ?? "full",
    ...(cancel === undefined
      ? {}
      : {
          cancel: {
            mode: cancel.mode,
            deadlineAt: time(cancel.deadlineAt),
            ...defined({ reason: cancel.reason, cause: cancel.cause }),
          },
        }),
    ...defined({ blocked, runnerId }),
    createdAt: time(session.createdAt),
    updatedAt: time(session.updatedAt),
    ...number("endedAt", session.endedAt),
    ...number("deadlineAt", session.deadlineAt),
    ...number("wakeAt", session.wakeAt),
    ...defined({ movedTo: session.move?.to }),
    ...number("resumesAt", resumesAt(session)),
  };
}

export function errorMessage({
  cause,
  data,
  errors = [],
  ...error
}: RecordedError): MessageInitShape<typeof RecordedErrorSchema> {
  return {
    ...error,
    ...(errors.length === 0 ? {} : { errors: errors.map(errorMessage) }),
    ...(data === undefined ? {} : { data: JSON.stringify(data) }),
    ...(cause === undefined ? {} : { cause: errorMessage(cause) }),
  };
}

export function entryMessage(entry: Entry): MessageInitShape<typeof EntrySchema> {
  const { id, index, parent, role, turn, content, createdAt } = entry;
  return {
    id: BigInt(id),
    index: BigInt(index),
    ...number("parent", parent),
    role,
    turn,
    content: bytesOf(content),
    createdAt: time(createdAt),
  };
}

function accountMessage(
  { limits, spent, reserved, ledgers, lost }: Account,
  now: number,
): MessageInitShape<typeof AccountSchema> {
  return {
    limits: budgetMessage(limits),
    spent: amountMessage(spent),
    reserved: amountMessage(reserved),
    windows: (limits.windows ?? []).map(({ per }) => {
      return { per, spent: amountMessage(spentIn(ledgers, per, now)) };
    }),
    ...(lost === undefined ? {} : { lost: amountMessage(lost) }),
  };
}

function exhaustedMessage({
  payer,
  limit,
  per,
  used,
  max,
  asked,
}: Exhausted): MessageInitShape<typeof ExhaustedSchema> {
  return {
    payer,
    limit,
    ...defined({ per }),
    used: BigInt(used),
    max: BigInt(max),
    ...number("asked", asked),
  };
}

function quotaMessage({ pool, resetsAt, resumesAt: at }: QuotaWait): MessageInitShape<typeof QuotaSchema> {
  return { pool, ...number("resetsAt", resetsAt), ...number("resumesAt", at) };
}

function costMessage({
  calls,
  unpriced,
  costMicroUsd,
  inputTokens,
  outputTokens,
}: SessionCost): MessageInitShape<typeof CostSchema> {
  return {
    calls: BigInt(calls),
    unpriced: BigInt(unpriced),
    costMicroUsd: BigInt(costMicroUsd),
    inputTokens: BigInt(inputTokens),
    outputTokens: BigInt(outputTokens),
  };
}

function amountMessage({
  tokens,
  costMicroUsd,
  steps,
  turns,
}: Amount): MessageInitShape<typeof AmountSchema> {
  return {
    tokens: BigInt(tokens),
    costMicroUsd: BigInt(costMicroUsd),
    steps: BigInt(steps),
    turns: BigInt(turns),
  };
}

function waitMessage(wait: Wait, pending?: ReadonlySet<string>): MessageInitShape<typeof WaitSchema> {
  const of = { type: wait.type, id: BigInt(wait.id) };
  if (wait.type === "timer") return { ...of, at: time(wait.at) };
  const named = {
    ...of,
    name: wait.name,
    ...number("until", wait.until),
    ...(pending?.has(wait.name) === true ? { answered: true } : {}),
  };
  return wait.type === "signal"
    ? named
    : { ...named, prompt: wait.prompt, ...defined({ answer: wait.answer }) };
}

/** Times in the contract are whole milliseconds. */
export function time(ms: number): bigint {
  return BigInt(Math.round(ms));
}

function number<K extends string>(key: K, value: number | undefined): { readonly [key in K]?: bigint } {
  return value === undefined ? {} : ({ [key]: time(value) } as { readonly [key in K]: bigint });
}

function json<K extends string>(
  key: K,
  text: string | undefined,
): { readonly [key in K]?: Uint8Array<ArrayBuffer> } {
  return text === undefined
    ? {}
    : ({ [key]: bytesOf(text) } as { readonly [key in K]: Uint8Array<ArrayBuffer> });
}
