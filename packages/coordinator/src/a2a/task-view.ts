// `taskOf`: a session as a task of A2A 1.0, by the table of `docs/states.md`.
//
//   - The id of the message beside a state names what the session waits for. It stays the same while that is
//     open, and differs for the next question, so a client can make ids for its answers of it.
//   - The result of a session is its only artifact.

import {
  Role,
  TaskState,
  type Artifact,
  type Message,
  type Part,
  type Task,
  type TaskStatus,
} from "@a2a-js/sdk";
import { defined, NEXT_INPUT } from "@holdfast/core";
import type { Entry, Session } from "@holdfast/proto";
import { whyText, type PlainExhausted, type PlainSession } from "@holdfast/proto/view";

import { answerIn, turnOf } from "../endpoint/session-turn.ts";
import { contextOf } from "./task-ids.ts";

/** A message of the history is cut after this. */
const SAID_CHARS = 20_000;
const RESULT = "result";
const decoder = new TextDecoder();

/** Whether the task has ended, or waits for somebody. */
export function isSettled({ state }: TaskStatus): boolean {
  return isTerminal(state) || state === TaskState.TASK_STATE_INPUT_REQUIRED || isWaitingForSignIn(state);
}

export function isTerminal(state: TaskState): boolean {
  return (
    state === TaskState.TASK_STATE_COMPLETED ||
    state === TaskState.TASK_STATE_FAILED ||
    state === TaskState.TASK_STATE_CANCELED
  );
}

function isWaitingForSignIn(state: TaskState): boolean {
  return state === TaskState.TASK_STATE_AUTH_REQUIRED;
}

/** @param history the messages that are shown, oldest first. */
export function taskOf(session: Session, history: readonly Message[] = []): Task {
  return {
    id: session.sessionId,
    contextId: contextOf(session.sessionId),
    status: statusOf(session),
    artifacts: artifactsOf(session),
    history: [...history],
    metadata: undefined,
  };
}

export function statusOf(session: Session): TaskStatus & { readonly timestamp: string } {
  const { state, of, parts } = stateOf(session);
  const message = parts.length === 0 ? undefined : said(session.sessionId, of, parts);
  return { state, message, timestamp: new Date(Number(session.endedAt ?? session.updatedAt)).toISOString() };
}

interface Stand {
  readonly state: TaskState;
  /** The thing that the message is about, as a part of its id. */
  readonly of: string;
  readonly parts: readonly Part[];
}

function stateOf(session: Session): Stand {
  const turn = turnOf(session);
  switch (turn.type) {
    case "running": {
      const isNew = session.status === "submitted";
      const { blocked } = session;
      const state = isNew ? TaskState.TASK_STATE_SUBMITTED : TaskState.TASK_STATE_WORKING;
      return { state, of: "blocked", parts: blocked === undefined ? [] : [textPart(blocked)] };
    }
    case "blocked": {
      const { question } = turn;
      if (question === undefined) return pausedState(session);
      const { id, name = "", answer = "any", prompt = "" } = question;
      return {
        state: TaskState.TASK_STATE_INPUT_REQUIRED,
        of: `question-${id}`,
        parts: [textPart(prompt), dataPart({ question: name, answer })],
      };
    }
    case "finished":
      return session.endedAt === undefined
        ? idleState(session, turn.result)
        : endedState(session, turn.isError ? turn.result : "");
  }
}

function pausedState(session: Session): Stand {
  const { sessionId, pauseReason, nextSeq } = session;
  const isSignIn = pauseReason === "auth_required";
  const why = whyText(plainOf(session), {
    isElsewhere: true,
    when: (at) => `at ${new Date(at).toISOString()}`,
  });
  const text = `${why.replace(/[.\s]+$/, "")}. A person has to act: \`holdfast show ${sessionId}\` says how.`;
  return {
    state: isSignIn ? TaskState.TASK_STATE_AUTH_REQUIRED : TaskState.TASK_STATE_INPUT_REQUIRED,
    of: `pause-${nextSeq}`,
    parts: [textPart(text), dataPart({ paused: pauseReason ?? "by_user" })],
  };
}

/** A conversation that has answered, and waits for its next input. */
function idleState({ waits }: Session, answer: string): Stand {
  const wait = waits.find(({ type, name }) => type === "signal" && name === NEXT_INPUT);
  const of = `turn-${wait?.id ?? 0n}`;
  return { state: TaskState.TASK_STATE_INPUT_REQUIRED, of, parts: answer === "" ? [] : [textPart(answer)] };
}

function endedState({ status }: Session, reason: string): Stand {
  const state =
    status === "completed"
      ? TaskState.TASK_STATE_COMPLETED
      : status === "cancelled"
        ? TaskState.TASK_STATE_CANCELED
        : TaskState.TASK_STATE_FAILED;
  return { state, of: "end", parts: reason === "" ? [] : [textPart(reason)] };
}

/** The result: as text, and as JSON where it is more than a text. */
function artifactsOf({ output, endedAt }: Session): Artifact[] {
  if (output === undefined || endedAt === undefined) return [];
  const value = JSON.parse(decoder.decode(output)) as unknown;
  const isMore = typeof value !== "string" && value !== null;
  return [
    {
      artifactId: RESULT,
      name: RESULT,
      description: "",
      parts: [textPart(answerIn(output)), ...(isMore ? [dataPart(value)] : [])],
      metadata: undefined,
      extensions: [],
    },
  ];
}

/** The message of an entry; `undefined` for one that nobody has said. */
export function messageOf(sessionId: string, { id, role, content }: Entry): Message | undefined {
  if (role !== "user" && role !== "assistant") return undefined;
  const text = entryText(JSON.parse(decoder.decode(content)));
  if (text === "") return undefined;
  const cut =
    text.length <= SAID_CHARS
      ? text
      : `${text.slice(0, SAID_CHARS)}\n[cut: it has ${text.length} characters]`;
  const message = said(sessionId, `entry-${id}`, [textPart(cut)]);
  return role === "user" ? { ...message, role: Role.ROLE_USER } : message;
}

function entryText(content: unknown): string {
  if (typeof content === "string") return content;
  const text =
    typeof content === "object" && content !== null ? (content as { text?: unknown }).text : undefined;
  return typeof text === "string" ? text.trim() : "";
}

function said(sessionId: string, of: string, parts: readonly Part[]): Message {
  return {
    messageId: `${sessionId}.${of}`,
    contextId: contextOf(sessionId),
    taskId: sessionId,
    role: Role.ROLE_AGENT,
    parts: [...parts],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function textPart(value: string): Part {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "text/plain" };
}

function dataPart(value: unknown): Part {
  return {
    content: { $case: "data", value },
    metadata: undefined,
    filename: "",
    mediaType: "application/json",
  };
}

/** As far as it says why the session is paused. */
function plainOf(session: Session): PlainSession {
  const { sessionId, status, pauseReason, error, exhausted, quota, resumesAt, movedTo } = session;
  return {
    sessionId,
    status: status as PlainSession["status"],
    waits: [],
    ...defined({ pauseReason, movedTo, resumesAt: numberOf(resumesAt) }),
    ...(error === undefined
      ? {}
      : { error: { message: error.message, ...defined({ code: error.code, fix: error.fix }) } }),
    ...(exhausted === undefined ? {} : { exhausted: plainExhausted(exhausted) }),
    ...(quota === undefined
      ? {}
      : { quota: { pool: quota.pool, ...defined({ resetsAt: numberOf(quota.resetsAt) }) } }),
  };
}

function plainExhausted({
  payer,
  limit,
  per,
  used,
  max,
  asked,
}: NonNullable<Session["exhausted"]>): PlainExhausted {
  const amounts = { used: Number(used), max: Number(max) };
  return { payer, limit, ...amounts, ...defined({ per, asked: numberOf(asked) }) };
}

function numberOf(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}
