// A numbered event for people: one line, but for questions. Nothing for those that only replay needs.

import type { Session, TokenUsage } from "@holdfast/core";
import {
  AGENT_REPORT,
  deliveryOf,
  isUncounted,
  planOf,
  stepText,
  subAgentCallOf,
  answerText,
  viewQuestion,
  type RecordType,
} from "@holdfast/proto/view";
import type { Look } from "../frame/command.ts";
import { amountText } from "./budget-text.ts";
import { askedLines, errorLine, moment, signalText, statusText } from "./describe-session.ts";
import type { JournalEvent } from "./journal-events.ts";
import { duration, jsonLine, plainLine } from "../frame/plain-text.ts";

/** The end of a turn of an external agent, in the output of its task. */
interface StoppedEnd {
  readonly type: string;
  readonly process?: {
    readonly type: string;
    readonly means: string;
    readonly exit?: { readonly type: string; readonly exitCode?: number; readonly signal?: string };
  };
}

/** The end of an attempt by an orderly stop, for people. */
const HANDED_OVER = {
  running: "handed over: its process was stopped before it ended, and the attempt does not count",
  waiting: "has not begun: the next process begins it",
} as const;

const TEXT_CHARS = 500;
const ROLE_CHARS = 120;

/** @param now what times are told from. */
export function eventLine(
  event: JournalEvent,
  look: Look,
  {
    now,
    sessionId,
    isChangeShown = false,
  }: { readonly now: number; readonly sessionId: string; readonly isChangeShown?: boolean },
): string | undefined {
  const { paint, symbols } = look;
  const kind = taskName(event, look);
  const name = signalText(event.name ?? "", sessionId);
  const line: Line | undefined = LINES[event.type]; // Newer versions have other types.
  return line?.({ event, look, paint, symbols, kind, name, now, sessionId, isChangeShown });
}

/** An event, with the words and marks that its line may need. */
interface EventWords {
  readonly event: JournalEvent;
  readonly look: Look;
  readonly paint: Look["paint"];
  readonly symbols: Look["symbols"];
  /** The name of its task. */
  readonly kind: string;
  /** The name of its signal. */
  readonly name: string;
  readonly now: number;
  readonly sessionId: string;
  /** Whether the change that a question is about stands above it. */
  readonly isChangeShown: boolean;
}

type Line = (words: EventWords) => string | undefined;

const NO_LINE: Line = () => undefined;

const TASK_LINES = {
  schedule_task: ({ paint, symbols, kind }) => paint.dim(`${symbols.begin} ${kind}`),
  task_completed: ({ event, look, paint, symbols, kind }) => {
    if (isMessageReceipt(event)) return receiptLine(event, look);
    if (isFailedHook(event))
      return `${paint.red(symbols.failed)} ${kind}${paint.dim(took(event))}  ${hookText(event.output, look)}`;
    return `${paint.green(symbols.done)} ${kind}${paint.dim(took(event))}${paint.dim(stopOf(event.output))}`;
  },
  task_failed: ({ event, look, paint, symbols, kind }) =>
    cutOffTurn(event, event.error, look) ??
    `${paint.red(symbols.failed)} ${kind}${paint.dim(took(event))}  ${paint.red(errorOf(event))}`,
  attempt_failed: ({ event, paint, symbols, kind }) => {
    if (event.handedOver !== undefined)
      return `${paint.yellow(symbols.again)} ${kind}  ${paint.yellow(HANDED_OVER[event.handedOver])}`;
    if (event.paused === true)
      return `${paint.yellow(symbols.wait)} ${kind}  ${paint.yellow("paused the session")}: ${plainLine(event.error?.message ?? "", TEXT_CHARS)}`;
    const delay = duration(Math.max(0, (event.retryAt ?? 0) - (event.at ?? 0)));
    const again = `attempt ${event.attempt} failed, again in ${delay}`;
    return `${paint.yellow(symbols.again)} ${kind}  ${paint.yellow(again)}: ${errorOf(event)}`;
  },
  attempt_lost: ({ event, paint, symbols, kind }) =>
    event.begins === true
      ? paint.dim(`${symbols.begin} ${kind}  attempt ${event.attempt} begins`)
      : `${paint.yellow(symbols.again)} ${kind}  ${paint.yellow(`attempt ${event.attempt} was lost with its process; again`)}`,
  withdraw: ({ event, look, paint, symbols }) =>
    event.withdrawn === undefined
      ? undefined
      : paint.dim(
          `${symbols.again} ${event.withdrawn.map((task) => taskName(task, look)).join(", ")}  withdrawn`,
        ),
  outcome_kept: ({ event, look, paint, symbols, kind }) => {
    if (event["outcome"] !== "task_failed")
      return paint.dim(`${symbols.done} ${kind}  completed (not delivered yet)`);
    const error = (event["kept"] ?? {}) as { readonly name?: string; readonly message?: string };
    const { message = "" } = error;
    const cutOff = cutOffTurn(event, error, look);
    if (cutOff !== undefined) return `${cutOff} (not delivered yet)`;
    return `${paint.red(symbols.failed)} ${kind}  ${paint.red(`failed (not delivered yet): ${plainLine(message, TEXT_CHARS)}`)}`;
  },
} satisfies Partial<Record<RecordType, Line>>;

const WAIT_LINES = {
  start_timer: ({ event, symbols, now }) =>
    `${symbols.wait} waits for a timer, due ${moment(event.fireAt ?? now, now)}`,
  timer_fired: ({ paint, symbols }) => `${paint.cyan(symbols.arrived)} the timer is due`,
  wait_signal: ({ event, look, symbols, name }) => {
    if (event.name === AGENT_REPORT) return undefined; // Its entries follow.
    return `${symbols.wait} waits for ${name}${persistsOf(event, look)}`;
  },
  request_input: ({ event, paint, symbols, now, isChangeShown }) => {
    const until = event.expiresAt === undefined ? "" : `  (until ${moment(event.expiresAt, now)})`;
    const view = viewQuestion({ prompt: event.prompt ?? "", details: event.details }, event.takes);
    return askedLines(view, isChangeShown)
      .map((line, i) => (i === 0 ? `${paint.bold(symbols.ask)} ${paint.bold(line)}${until}` : `  ${line}`))
      .join("\n");
  },
  signal_received: ({ event, paint, symbols, name }) =>
    `${paint.cyan(symbols.arrived)} ${event.prompt === undefined ? name + valueOf(event.payload) : `answered  ${plainLine(answerText(event.payload), TEXT_CHARS)}`}${principalText(event)}`,
  signal_ready: ({ event, paint, symbols, name }) => {
    if (event.name === AGENT_REPORT) return undefined;
    return `${paint.cyan(symbols.arrived)} ${name} has arrived`;
  },
  take_signals: ({ event, look, paint, symbols }) => {
    const names = (event.names ?? []).filter((taken) => taken !== AGENT_REPORT);
    return names.length === 0
      ? undefined
      : `${paint.cyan(symbols.arrived)} took ${plainLine(names.join(", "), TEXT_CHARS)}${persistsOf(event, look)}`;
  },
  wait_timed_out: ({ event, paint, symbols, name }) =>
    `${paint.yellow(symbols.warn)} ${event.prompt === undefined ? name : "the question"} timed out`,
  wait_cancelled: NO_LINE,
} satisfies Partial<Record<RecordType, Line>>;

/** Between a session, its parent and its children. */
const FAMILY_LINES = {
  spawn_child: ({ event, look, paint, symbols }) => {
    const what = event.handOff === true ? "hands over to" : "asks for";
    const child = `${plainLine(String(event.agent), TEXT_CHARS)}  ${paint.dim(String(event.childId))}`;
    return `${symbols.begin} ${what} ${child}${persistsOf(event, look)}`;
  },
  tell_session: ({ event, paint, symbols, name, sessionId }) =>
    paint.dim(`${symbols.begin} signals ${recipient(event.to, sessionId)} ${name}`),
  request_parent: ({ event, look, paint, symbols }) =>
    `${paint.dim(`${symbols.begin} asks its parent for "${plainLine(event.name ?? "", TEXT_CHARS)}"`)}${persistsOf(event, look)}`,
  cancel_child: ({ event, paint, symbols }) =>
    `${paint.yellow(symbols.warn)} cancels child ${String(event.childId)}`,
  request_received: ({ event, paint, symbols }) =>
    `${paint.cyan(symbols.arrived)} child ${String(event.childId)} asks for "${plainLine(event.name ?? "", TEXT_CHARS)}"`,
  reply_child: NO_LINE,
} satisfies Partial<Record<RecordType, Line>>;

const SESSION_LINES = {
  started: NO_LINE,
  record_probe: NO_LINE,
  forked: ({ event, paint, symbols }) => `${paint.cyan(symbols.arrived)} forked from ${String(event.from)}`,
  append_entry: ({ event, paint }) =>
    `${paint.bold(`${roleText(String(event.role), event.content)}:`)} ${entryText(String(event.role), event.content)}`,
  checkpoint: ({ event, paint }) => paint.dim(`  turn ${String(event.turn)}`),
  enable_persistence: ({ paint }) => paint.dim("  from here on everything is stored"),
  drift_accepted: ({ event, paint, symbols }) =>
    `${paint.yellow(symbols.warn)} recorded results are kept for changed inputs at ${String(event.positions)}`,
  warned: ({ event, paint, symbols }) =>
    `${paint.yellow(symbols.warn)} ${plainLine(String(event.message), TEXT_CHARS)}`,
  cancel_requested: ({ event, paint, symbols }) => {
    const reason = event.reason === undefined ? "" : `: ${plainLine(event.reason, TEXT_CHARS)}`;
    return `${paint.yellow(symbols.warn)} asked to cancel${reason}`;
  },
  complete: ({ event, paint, symbols }) => `${paint.green(symbols.done)} completed${valueOf(event.output)}`,
  fail: ({ event, paint, symbols }) => `${paint.red(symbols.failed)} failed  ${paint.red(errorOf(event))}`,
} satisfies Partial<Record<RecordType, Line>>;

const LINES: Readonly<Record<RecordType, Line>> = {
  ...TASK_LINES,
  ...WAIT_LINES,
  ...FAMILY_LINES,
  ...SESSION_LINES,
};

/** The line for a turn of an external agent that ended with our process. The agent is told so, and goes on. */
function cutOffTurn(
  event: JournalEvent,
  error: { readonly name?: string } | undefined,
  { paint, symbols }: Look,
): string | undefined {
  const [, program] = /^(.+):turn$/.exec(event.kind ?? "") ?? [];
  if (program === undefined || error?.name !== "UncertainEffectError") return undefined;
  const text = `${plainLine(program, TEXT_CHARS)} was cut off in its work when the process of the session stopped`;
  return `${paint.yellow(symbols.again)} ${text}${paint.dim(took(event))}`;
}

/** The step that ended the program of an aborted turn. */
function stopOf(output: unknown): string {
  const { end } = (output ?? {}) as { readonly end?: StoppedEnd | null };
  const { process } = end?.type === "aborted" ? end : {};
  if (process?.type !== "stopped") return "";
  const { means, exit } = process;
  const how = exit?.type === "exit" ? `exit code ${exit.exitCode}` : (exit?.signal ?? "exit not seen");
  return `  the program was stopped by ${means === "request" ? "a request" : means} (${how})`;
}

/** Whether a hook gave no answer. Its task completes, because a hook that fails has an effect that its agent names. */
export function isFailedHook({ type, kind, output }: JournalEvent): boolean {
  return type === "task_completed" && kind === "hook" && hookFailureOf(output) !== undefined;
}

function hookFailureOf(output: unknown): { readonly reason: string; readonly onError: string } | undefined {
  const { failure } = (output ?? {}) as { readonly failure?: { reason: string; onError: string } };
  return failure;
}

function hookText(output: unknown, { paint, symbols }: Look): string {
  const { reason = "", onError } = hookFailureOf(output) ?? {};
  const effect =
    onError === "block" ? "the hook failed, which blocks" : "the hook failed, and nothing was blocked";
  return `${paint.yellow(`${symbols.warn} ${effect}`)}: ${plainLine(reason, TEXT_CHARS)}`;
}

/** Whether a task has given a message to an external agent at work. */
export function isMessageReceipt({ type, kind, output }: JournalEvent): boolean {
  return type === "task_completed" && (kind === "steer" || kind === "follow_up") && RECEIPTS.has(output);
}

function receiptLine({ kind, output }: JournalEvent, { paint, symbols }: Look): string {
  if (kind === "follow_up")
    return `${paint.green(symbols.wait)} the message waits until the agent has answered; it is the next request`;
  switch (output) {
    case "injected":
      return `${paint.green(symbols.done)} the message joined the turn that is under way`;
    case "restarted":
      return `${paint.green(symbols.again)} the turn was interrupted for the message; it begins the next one`;
    default:
      return `${paint.yellow(symbols.wait)} the agent did not take the message in this turn; it is the next prompt`;
  }
}

/** The receipts for messages to an external agent at work. */
const RECEIPTS: ReadonlySet<unknown> = new Set(["injected", "restarted", "queued", "rejected"]);

/** By this command a minimal session became persistent. */
function persistsOf({ persists }: JournalEvent, { paint }: Look): string {
  return persists === true ? paint.dim("  (the session was minimal; from here on it is stored in full)") : "";
}

/** The line of a session's end or pause that its journal cannot have: for a fault, or for a hard cancel. */
export function endLine(session: Session, { paint, symbols }: Look): string | undefined {
  switch (session.status) {
    case "failed":
      return `${paint.red(symbols.failed)} failed  ${paint.red(errorLine(session.error))}`;
    case "paused":
      return `${paint.red(symbols.warn)} ${statusText(session)}  ${paint.red(errorLine(session.error))}`;
    case "cancelled":
      return cancelledLine(session.cancel?.reason, { paint, symbols });
    default:
      return undefined;
  }
}

/** The line for an agent's return or throw when its session was cancelled. */
export function cancelledLine(
  reason: string | undefined,
  { paint, symbols }: Pick<Look, "paint" | "symbols">,
): string {
  return `${paint.yellow(symbols.warn)} cancelled${reason === undefined ? "" : `: ${plainLine(reason, TEXT_CHARS)}`}`;
}

/** With its number, because several of one kind may run at once. */
function taskName(
  { kind, task, taskId }: Pick<JournalEvent, "kind" | "task" | "taskId" | "id">,
  { paint }: Look,
): string {
  return `${plainLine(kind ?? String(taskId), TEXT_CHARS)}${task === undefined ? "" : paint.dim(` #${task}`)}`;
}

/** The role of an entry, with its way to the agent, or with the call that started the sub-agent whose entry it is. */
export function roleText(role: string, content: unknown): string {
  const call = subAgentCallOf(content);
  const delivery = deliveryOf(content);
  const by = call === undefined ? delivery : `sub-agent of ${call}`;
  return plainLine(by === undefined ? role : `${role} (${by})`, ROLE_CHARS);
}

/** An entry in one line: the steps of a plan, or the text of another entry. */
export function entryText(role: string, content: unknown): string {
  const steps = planOf(role, content);
  return steps === undefined ? textOf(content) : plainLine(steps.map(stepText).join(" "), TEXT_CHARS);
}

/** Content of the conversation in one line: text as it is, blocks by their text, all else as JSON. */
function textOf(content: unknown): string {
  return plainLine(flatten(content), TEXT_CHARS);
}

function flatten(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(flatten).join(" ");
  if (typeof content === "object" && content !== null) {
    if ("toolCalls" in content && Array.isArray(content.toolCalls)) return flattenReply(content);
    if ("boundary" in content) return flattenBoundary(content);
    if ("type" in content && content.type === "whole_result") return flattenWholeResult(content);
    if ("text" in content && typeof content.text === "string") return content.text;
    if ("content" in content) return flatten(content.content);
  }
  return content === undefined ? "" : jsonLine(content);
}

/** The first message after a boundary, at which a conversation was summarised. */
function flattenBoundary({
  boundary,
  text,
}: {
  readonly boundary: unknown;
  readonly text?: unknown;
}): string {
  const { number, tokens, tokensAfter } = (boundary ?? {}) as Readonly<Record<string, number | undefined>>;
  const after = tokensAfter === undefined ? "were summarised" : `became ${String(tokensAfter)}`;
  return `(context boundary ${String(number)}: about ${String(tokens)} tokens ${after})  ${String(text)}`;
}

/** A result that was too long for its conversation. The conversation shows the beginning and the end of it. */
function flattenWholeResult(content: object): string {
  const { toolCallId = "", text = "" } = content as { readonly toolCallId?: string; readonly text?: string };
  return `(the whole result of ${toolCallId}: ${text.length} characters)`;
}

/** The reply of a model: its text, and each tool call with its input. */
function flattenReply({
  text,
  toolCalls,
}: {
  readonly text?: unknown;
  readonly toolCalls?: unknown;
}): string {
  const calls = (toolCalls as readonly { readonly name?: unknown; readonly input?: unknown }[]).map(
    ({ name, input }) => `${String(name)} ${jsonLine(input)}`,
  );
  return [text, ...calls].filter((part) => typeof part === "string" && part !== "").join("  ");
}

function valueOf(value: unknown): string {
  return value === undefined ? "" : `  ${plainLine(JSON.stringify(value) ?? "", TEXT_CHARS)}`;
}

function recipient(to: unknown, sessionId: string): string {
  return to === "parent" ? "its parent" : `child ${sessionId}-${String(to)}`;
}

function took({ durationMs, attempt, usage }: JournalEvent): string {
  const attempts = attempt === undefined || attempt === 1 ? "" : `, attempt ${attempt}`;
  const time = durationMs === undefined ? attempts : `  ${duration(durationMs)}${attempts}`;
  return usage === undefined ? time : `${time}  ${usageText(usage)}`;
}

/** "1,200 tokens, $0.0045". */
function usageText(usage: TokenUsage): string {
  const { inputTokens, outputTokens, costMicroUsd } = usage;
  if (isUncounted(usage)) return "usage unknown";
  const tokens = inputTokens + outputTokens;
  const cost = costMicroUsd === undefined ? "" : `, ${amountText("maxCostMicroUsd", costMicroUsd)}`;
  return `${amountText("maxTokens", tokens)} tokens${cost}`;
}

function errorOf(event: JournalEvent): string {
  return errorLine(event.error);
}

/** The person who gave an answer, where that is known. */
function principalText({ by }: JournalEvent): string {
  return typeof by === "string" ? `  by ${plainLine(by, ROLE_CHARS)}` : "";
}
