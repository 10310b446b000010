// `awaitRequest`: a session of an external agent between two turns. It waits for a request of a person, for
// feedback on its work, or for a callback, and ends where it has waited long enough.

import { CHILD_ENDED, defined, NEXT_INPUT } from "@holdfast/core";
import {
  type DeliveredMessage,
  FEEDBACK_SIGNALS,
  feedbackText,
  isQueued,
  requestText,
} from "@holdfast/agents";
import type { AgentContext, TurnResult } from "@holdfast/runtime";

import type { ExternalAgentProtocol } from "../external-agent-protocol.ts";
import type { ExternalState } from "../external-state.ts";
import { FOLLOW_UP, INTERRUPT, queuedMessage } from "../turn-messages.ts";
import { expectsCallbacks, takeCallbacks } from "../way-back/callbacks.ts";
import { type FollowUp, readFollowUp, readInput } from "./turn-input.ts";

/** The answer of a program to a request. */
export interface ProgramAnswer {
  readonly text: string;
  /** The answer as a value of JSON. Absent for a text alone. */
  readonly data?: unknown;
}

export interface RequestParts {
  readonly protocol: ExternalAgentProtocol;
  /**
   * How long a session waits for its next request before it ends with its answer; 0 for none. Absent where
   * its input decides.
   */
  readonly conversationTtlMs: number | undefined;
  /** The output of a session. */
  readonly output: (answer: ProgramAnswer) => unknown;
}

type Context = AgentContext<unknown, ExternalState>;
type Turn = TurnResult<ExternalState, unknown>;

export async function awaitRequest(ctx: Context, state: ExternalState, parts: RequestParts): Promise<Turn> {
  const { started, queued: waiting = [], answer: text, data } = state;
  const [kept, ...queued] = waiting;
  const { conversationTtlMs: ttlMs, protocol } = parts;
  const endsAt = ttlMs === undefined ? undefined : ctx.now() + ttlMs;
  for (;;) {
    const callbacks = takeCallbacks(ctx, started);
    if (callbacks !== undefined)
      return begin(ctx, { ...state, started: callbacks.started }, callbacks.prompt);
    if (kept !== undefined) return beginFollowUp(ctx, { ...state, queued }, kept, "kept");
    const isPatient = endsAt === undefined || expectsCallbacks(ctx, started);
    const next = await nextRequest(ctx, isPatient ? {} : { timeoutMs: Math.max(1, endsAt - ctx.now()) });
    if (next.type === "nothing") return { done: parts.output({ text, ...defined({ data }) }) };
    if (next.type === "callback") continue;
    if (next.type === "follow_up") return beginFollowUp(ctx, state, next.message);
    if (protocol.readRequest === undefined || !("given" in next)) return begin(ctx, state, next.content);
    const request = protocol.readRequest(next.given);
    if (request !== undefined) return begin(ctx, state, request.text, { parameters: request.parameters });
    ctx.appendEntry({ role: "system", content: "a next_input without a prompt was ignored" });
  }
}

/** The session begins with its next request. */
function begin(
  ctx: Context,
  { parameters: _earlier, ...state }: ExternalState,
  content: string | DeliveredMessage,
  more: { readonly [K in "parameters" | "command"]?: ExternalState[K] | undefined } = {},
): Turn {
  const text = requestText(content);
  while (ctx.hasSignal(INTERRUPT)) ctx.takeSignal(INTERRUPT); // They were for the turn before.
  ctx.appendEntry({ role: "user", content });
  const begun = { ...state, isWaiting: false, request: text, prompt: text, unread: [], doneCalls: [] };
  return { state: { ...begun, ...defined(more) } };
}

/** @param kept the message has waited for the answer to another request. */
function beginFollowUp(ctx: Context, state: ExternalState, message: FollowUp, kept?: "kept"): Turn {
  if (typeof message !== "string") return begin(ctx, state, message.command, message);
  return begin(ctx, state, kept === undefined ? message : queuedMessage(message));
}

/** The next step of a conversation. */
type Next =
  | { readonly type: "request"; readonly content: string | DeliveredMessage; readonly given?: unknown }
  | { readonly type: "follow_up"; readonly message: FollowUp }
  /** A session that it has started has ended, and calls back. The signal is not taken. */
  | { readonly type: "callback" }
  /** No request came in time. */
  | { readonly type: "nothing" };

/**
 * The next request of a conversation: a person's, or feedback on its work (feedback-1).
 *
 * @param patience how long a request is waited for.
 */
async function nextRequest(
  ctx: Pick<AgentContext, "waitForSignal" | "signalReady" | "takeSignal" | "select">,
  patience: { readonly timeoutMs?: number },
): Promise<Next> {
  const names = [...FEEDBACK_SIGNALS, FOLLOW_UP, CHILD_ENDED];
  const first = await ctx
    .select({
      [NEXT_INPUT]: ctx.waitForSignal(NEXT_INPUT, patience),
      ...Object.fromEntries(names.map((name) => [name, ctx.signalReady(name)])),
    })
    .catch((error: unknown) => {
      if ((error as Error).name === "WaitTimeoutError") return undefined;
      throw error;
    });
  if (first === undefined) return { type: "nothing" };
  const { key, value }: { readonly key: string; readonly value: unknown } = first;
  if (key === CHILD_ENDED) return { type: "callback" };
  if (key === NEXT_INPUT) {
    const { text } = readInput(value);
    return { type: "request", content: isQueued(value) ? queuedMessage(text) : text, given: value };
  }
  const payload = ctx.takeSignal(key);
  if (key === FOLLOW_UP) return { type: "follow_up", message: readFollowUp(payload) };
  return { type: "request", content: feedbackText(key, payload) };
}
