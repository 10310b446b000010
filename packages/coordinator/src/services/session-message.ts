// `sessionMessage` shows a session, and what belongs to it, as the contract does.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Account, Amount, Budget, Entry, RecordedError, Session, Wait } from "@holdfast/core";
import type {
  AccountSchema,
  AmountSchema,
  Budget as BudgetMessage,
  BudgetSchema,
  EntrySchema,
  RecordedErrorSchema,
  SessionSchema,
  WaitSchema,
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
}

export function sessionMessage(
  session: Session,
  { runnerId, blocked, pending }: Whereabouts,
): SessionMessage {
  const { agent, placement = {}, parent, fork, cancel, account, error } = session;
  return {
    sessionId: session.sessionId,
    agent: agent.name,
    agentVersion: agent.version,
    status: session.status,
    ...defined("pauseReason", session.pauseReason),
    ...defined("owner", placement.owner),
    demands: { ...placement.demands },
    priority: placement.priority ?? 0,
    ...json("input", session.input),
    ...json("output", session.output),
    ...(error === undefined ? {} : { error: errorMessage(error) }),
    waits: session.waits.map((wait) => waitMessage(wait, pending)),
    ...(account === undefined ? {} : { account: accountMessage(account) }),
    ...defined("parentSessionId", parent?.sessionId),
    depth: session.depth,
    children: session.children,
    ...defined("handedOffTo", session.handedOffTo),
    ...defined("originSessionId", fork?.origins[0]),
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
            ...defined("reason", cancel.reason),
            ...defined("cause", cancel.cause),
          },
        }),
    ...defined("blocked", blocked),
    ...defined("runnerId", runnerId),
    createdAt: time(session.createdAt),
    updatedAt: time(session.updatedAt),
    ...number("endedAt", session.endedAt),
    ...number("deadlineAt", session.deadlineAt),
    ...number("wakeAt", session.wakeAt),
    ...defined("movedTo", session.move?.to),
  };
}

export function errorMessage({
  cause,
  ...error
}: RecordedError): MessageInitShape<typeof RecordedErrorSchema> {
  return { ...error, ...(cause === undefined ? {} : { cause: errorMessage(cause) }) };
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

/** The limits in core's form. Absent limits stay absent. */
export function budgetOf(message: BudgetMessage): Budget {
  const { onExhausted } = message;
  const limits = BUDGET_LIMITS.flatMap((name) =>
    message[name] === undefined ? [] : [[name, Number(message[name])] as const],
  );
  return {
    ...Object.fromEntries(limits),
    ...(onExhausted === undefined ? {} : { onExhausted: onExhausted as "park" | "cancel" }),
  };
}

const BUDGET_LIMITS = [
  "maxTokens",
  "maxCostMicroUsd",
  "maxTokensPerCall",
  "maxSteps",
  "maxTurns",
  "ttlMs",
] as const;

export function budgetMessage(limits: Budget): MessageInitShape<typeof BudgetSchema> {
  return {
    ...Object.fromEntries(
      BUDGET_LIMITS.flatMap((name) => (limits[name] === undefined ? [] : [[name, BigInt(limits[name])]])),
    ),
    ...defined("onExhausted", limits.onExhausted),
  };
}

function accountMessage({ limits, spent, reserved, lost }: Account): MessageInitShape<typeof AccountSchema> {
  return {
    limits: budgetMessage(limits),
    spent: amountMessage(spent),
    reserved: amountMessage(reserved),
    ...(lost === undefined ? {} : { lost: amountMessage(lost) }),
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
  const named = { ...of, name: wait.name, ...number("until", wait.until) };
  return wait.type === "signal"
    ? named
    : {
        ...named,
        prompt: wait.prompt,
        ...defined("answer", wait.answer),
        ...(pending?.has(wait.name) === true ? { answered: true } : {}),
      };
}

/** Times in the contract are whole milliseconds. */
export function time(ms: number): bigint {
  return BigInt(Math.round(ms));
}

function defined<K extends string>(key: K, value: string | undefined): { readonly [key in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]: string });
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
