// The durable task that carries out one turn of an external agent (`turnTask`).
//
//   turn-task-1. A turn is tried once. The agent decides what follows an attempt that was lost.
//   turn-task-2. An event is a signal of the session before the turn ends. The output says how many reports there are.
//   turn-task-3. A session has at most one process of its agent on a machine: what an earlier process of ours has left is ended first.
//   turn-task-4. A turn whose question waits for longer than `keepAliveMs` is ended. The question stays, and its answer begins the next turn.
//   turn-task-5. A turn that has used up the budget of its session is ended. Silence is reported and never a failure.
//   turn-task-8. All that an agent says has limits (`bounded-events.ts`).
//   turn-task-7. A resume with a restore receipt begins when nothing is lost. A loss ends the task before a process starts.
//   turn-task-9. The program and the rights of a turn are the choice of this machine and not of the record (`own-intent.ts`).
//   turn-task-6. A turn that has used four fifths of the rest of its budget is told so once, where its agent takes a message.

import { HoldfastError, toError, type TokenUsage } from "@holdfast/core";
import { defineTask, type TaskContext } from "@holdfast/runtime";
import { isUrgentAbort } from "@holdfast/runtime/internal";

import { modelPrices } from "../models/prices.ts";
import type {
  Delivery,
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalIntent,
  PermissionAnswer,
} from "./external-agent-protocol.ts";
import { boundedEnd, boundedEvent } from "./bounded-events.ts";
import { PendingCalls, type SessionCallEvent } from "./way-back/pending-calls.ts";
import { openWayBack, type CallResult } from "./way-back/way-back.ts";
import { isQuestion, wayBackTools } from "./way-back/way-back-tools.ts";
import { limitOf, type AgentLimit } from "./limits/agent-limit.ts";
import { turnCost } from "./limits/turn-cost.ts";
import { takeOwnIntent, type OwnPlace, type OwnRights } from "./intent/own-intent.ts";
import { checkReceipt, takeReceipt, type ReceiptPlace } from "./receipt/read-receipt.ts";
import { differencesText, type RestoreReceipt } from "./receipt/restore-receipt.ts";

/** The name of the signals with events. */
export const REPORT_SIGNAL = "external_agent.report";

/** The payload of a signal. */
export interface StoredReport {
  readonly events: readonly RecordedEvent[];
}

export type RecordedEvent = Exclude<ExternalEvent, { type: "text_delta" }> | SessionCallEvent;

export interface TurnRequest {
  readonly intent: ExternalIntent;
  readonly boundId: string | null;
  readonly mode: "start" | "resume";
  readonly prompt: string;
  readonly keepAliveMs: number;
  /** The rest of the budget; `null` without a limit. */
  readonly tokensLeft: number | null;
  readonly costMicroUsdLeft: number | null;
  /** turn-task-7. Absent where nothing is checked. */
  readonly receipt?: RestoreReceipt;
}

export interface TurnOutput {
  readonly end: ExternalEnd;
  readonly isOverBudget: boolean;
  /** turn-task-4. */
  readonly isSuspended: boolean;
  readonly reports: number;
  /** Taken where the turn ended in order. */
  readonly receipt?: RestoreReceipt;
  /** The turn ended by a limit of the agent's account. */
  readonly limit?: AgentLimit;
  /** turn-task-7. The turn did not begin. */
  readonly losses?: readonly string[];
  /** turn-task-9. How a session with losses continues. */
  readonly rights?: OwnRights;
}

const SILENCE_MS = 60_000;
/** Events that wait to be stored. */
const PENDING_CHARS_MAX = 32 * 1024 * 1024;
/** The events of one signal. A single event may be larger. */
const REPORT_CHARS = 256 * 1024;

/** The turns at work in this process, by session. */
export type LiveTurns = Map<string, LiveTurn>;

/** The receipt for a message to a turn at work. A message that was not taken is the next prompt. */
export type MessageReceipt = Delivery | "restarted";

/** A turn at work. It ends itself when a question waits for too long (turn-task-4). */
export class LiveTurn {
  readonly agent: ExternalAgent;
  isSuspended = false;
  readonly #keepAliveMs: number;
  readonly #calls: PendingCalls;
  #hasStarted = false;
  readonly #open = new Map<string, NodeJS.Timeout>();

  constructor(agent: ExternalAgent, keepAliveMs: number, calls: PendingCalls) {
    this.agent = agent;
    this.#keepAliveMs = keepAliveMs;
    this.#calls = calls;
  }

  note(event: ExternalEvent | SessionCallEvent): void {
    if (event.type === "session_started") this.#hasStarted = true;
    if (event.type === "permission_withdrawn") this.#forget(event.requestId);
    if (event.type === "permission_request") this.#await(event.request.requestId);
    if (event.type === "session_call" && isQuestion(event.call)) this.#await(`call ${event.callId}`);
  }

  /**
   * Gives a message to the agent.
   *
   * @param restarts whether a turn that does not take it is interrupted. A program that has opened no session yet is left alone.
   */
  async steer(text: string, restarts: boolean): Promise<MessageReceipt> {
    const delivery = await this.agent.steer(text);
    if (delivery === "injected" || !restarts || !this.#hasStarted || this.isSuspended) return delivery;
    return (await this.agent.abort()).type === "aborted" ? "restarted" : "rejected";
  }

  /** @returns whether the answer reached the agent. */
  async answer(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    if (this.isSuspended) return false;
    this.#forget(requestId);
    return this.agent.answerPermission(requestId, answer);
  }

  /** @returns whether the result reached the agent. */
  answerCall(callId: number, result: CallResult): boolean {
    if (this.isSuspended) return false;
    this.#forget(`call ${callId}`);
    return this.#calls.answer(callId, result);
  }

  end(): void {
    for (const timer of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #await(question: string): void {
    const suspend = (): void => {
      this.isSuspended = true;
      void this.agent.abort();
    };
    this.#open.set(question, setTimeout(suspend, this.#keepAliveMs));
  }

  #forget(requestId: string): void {
    clearTimeout(this.#open.get(requestId));
    this.#open.delete(requestId);
  }
}

/** The surroundings of the turns of one external agent. */
interface TurnPlace extends ReceiptPlace, OwnPlace {
  readonly protocol: ExternalAgentProtocol;
  readonly live: LiveTurns;
  /** Whether the agent may start others in this session. */
  readonly startsAgents: (intent: ExternalIntent) => boolean;
  /** How long a program may write nothing before that is reported. A minute by default. */
  readonly silenceMs?: number | undefined;
}

/** @param place `mirrors` is the folder for copies of session files. */
export function turnTask(place: TurnPlace) {
  const { protocol } = place;
  return defineTask<TurnRequest, TurnOutput>({
    name: `${protocol.name}:turn`,
    description: `One turn of ${protocol.name}.`,
    retry: { maxAttempts: 1 }, // turn-task-1.
    cost: (request) => turnCost(protocol, request),
    run: (request, task) => carryOut(place, request, task),
    endLost: (request) => protocol.endLost(tagOf((request as TurnRequest).intent)),
  });
}

/** The id of the agent's session and not of ours, which a user may choose twice. */
export function tagOf({ agentSessionId }: ExternalIntent): string {
  return `external:${agentSessionId}`;
}

async function carryOut(place: TurnPlace, request: TurnRequest, task: TaskContext): Promise<TurnOutput> {
  const { sessionId, signal } = task;
  const { protocol, live, startsAgents, silenceMs = SILENCE_MS } = place;
  // turn-task-3.
  await live.get(sessionId)?.agent.abort();
  const { boundId, mode } = request;
  const tag = tagOf(request.intent);
  await protocol.endLost(tag);
  const own = takeOwnIntent(place, request.intent); // turn-task-9.
  const { intent } = own;
  const checked = await check(place, { ...request, intent });
  const losses = [...own.losses, ...(checked.losses ?? [])];
  if (losses.length > 0)
    return {
      end: { type: "unknown_session" },
      losses,
      rights: own.rights,
      isOverBudget: false,
      isSuspended: false,
      reports: 0,
    };
  const calls = new PendingCalls();
  const wayBack = await openWayBack(
    (call, gone) => calls.carryOut(call, gone),
    wayBackTools(startsAgents(intent)),
  );
  const { costMicroUsdLeft } = request;
  const fenced = costMicroUsdLeft === null ? {} : { costMicroUsdMax: costMicroUsdLeft };
  const turn = { intent, boundId, prompt: checked.prompt, tag, wayBack, ...fenced };
  const begun = mode === "start" ? protocol.start(turn) : protocol.resume(turn);
  const agent = await begun.catch((error: unknown) => {
    wayBack.close();
    throw error;
  });
  const turnAtWork = new LiveTurn(agent, request.keepAliveMs, calls);
  live.set(sessionId, turnAtWork);
  const abort = (): void => void agent.abort(isUrgentAbort(signal));
  const reports = new Reports(task, abort);
  let bound = boundId;
  if (checked.notice !== undefined) reports.add({ type: "notice", text: checked.notice });
  const wrapUp = async (): Promise<void> => {
    if ((await agent.steer(WRAP_UP)) === "injected")
      task.progress({ notice: "the agent was told that its budget is nearly used up" });
  };
  const fence = new BudgetFence(request, { onNear: () => void wrapUp(), onReached: abort });
  const silence = setInterval(
    () => task.progress({ unresponsive: `no output for ${silenceMs / 1_000} s` }),
    silenceMs,
  );
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    calls.subscribe((call) => {
      const event = { type: "session_call", ...call, used: fence.used } as const;
      turnAtWork.note(event);
      reports.add(event);
    });
    agent.subscribe((given) => {
      silence.refresh();
      const event = boundedEvent(given); // turn-task-8.
      if (typeof event === "string") return reports.refuse(event);
      turnAtWork.note(event);
      if (event.type === "session_started") bound = event.boundId ?? bound;
      if (event.type === "text_delta") return task.streamToken(event.text);
      if (event.type === "usage") {
        task.reportUsage(event.usage);
        fence.use(event.usage);
      }
      reports.add(event);
    });
    const end = boundedEnd(await agent.ended);
    const count = await reports.end();
    signal.throwIfAborted();
    const limit = limitOf(end, Date.now());
    const turnOutput = {
      end,
      isOverBudget: fence.isReached,
      isSuspended: turnAtWork.isSuspended,
      reports: count,
      ...(limit === undefined ? {} : { limit }),
    };
    if (!IN_ORDER.includes(end.type)) return turnOutput;
    const receipt = await takeReceipt(place, { intent, boundId: bound }, request.receipt ?? null);
    return { ...turnOutput, receipt };
  } finally {
    clearInterval(silence);
    signal.removeEventListener("abort", abort);
    turnAtWork.end();
    wayBack.close();
    if (live.get(sessionId) === turnAtWork) live.delete(sessionId);
  }
}

/** Ends after which the program had time to store its session. */
const IN_ORDER: readonly ExternalEnd["type"][] = ["answered", "aborted", "error"];

interface Checked {
  readonly prompt: string;
  readonly notice?: string;
  readonly losses?: readonly string[];
}

/** turn-task-7. Changes are told to the agent, before the request, which stays at the end of the prompt. */
async function check(
  place: ReceiptPlace,
  { intent, boundId, prompt, receipt }: TurnRequest,
): Promise<Checked> {
  if (receipt === undefined) return { prompt };
  const { differences, putBack } = await checkReceipt(place, { intent, boundId }, receipt);
  const losses = differences.filter(({ isLoss }) => isLoss).map(({ text }) => text);
  if (losses.length > 0) return { prompt, losses };
  return {
    prompt: differences.length === 0 ? prompt : `${CHANGED}\n${differencesText(differences)}\n\n${prompt}`,
    ...(putBack === undefined
      ? {}
      : { notice: `the agent's own session file was missing and was put back: ${putBack}` }),
  };
}

const CHANGED = "Since your last turn this has changed, and not by you:";
const prices = modelPrices();

const WRAP_UP =
  "The budget of this session is nearly used up. Finish the step that you are in, leave the work in order, and answer with what is done and what is left.";
/** The part of the budget that is left when the agent is told (turn-task-6). */
const NEAR = 0.2;

/** turn-task-5, turn-task-6. */
class BudgetFence {
  isReached = false;
  #isNear = false;
  #tokens: number;
  #cost: number;
  #used: SessionCallEvent["used"] = { tokens: 0, costMicroUsd: 0 };
  readonly #nearTokens: number;
  readonly #nearCost: number;
  readonly #on: { onNear(): void; onReached(): void };

  constructor({ tokensLeft, costMicroUsdLeft }: TurnRequest, on: { onNear(): void; onReached(): void }) {
    this.#tokens = tokensLeft ?? Infinity;
    this.#cost = costMicroUsdLeft ?? Infinity;
    this.#nearTokens = (tokensLeft ?? 0) * NEAR;
    this.#nearCost = (costMicroUsdLeft ?? 0) * NEAR;
    this.#on = on;
  }

  /** The use of the turn so far. */
  get used(): SessionCallEvent["used"] {
    return this.#used;
  }

  use(usage: TokenUsage): void {
    const tokens = usage.inputTokens + usage.outputTokens;
    const cost = prices(usage) ?? 0;
    this.#used = { tokens: this.#used.tokens + tokens, costMicroUsd: this.#used.costMicroUsd + cost };
    this.#tokens -= tokens;
    this.#cost -= cost;
    if (this.isReached) return;
    if (this.#tokens <= 0 || this.#cost <= 0) {
      this.isReached = true;
      return this.#on.onReached();
    }
    if (this.#isNear || (this.#tokens > this.#nearTokens && this.#cost > this.#nearCost)) return;
    this.#isNear = true;
    this.#on.onNear();
  }
}

/** turn-task-2. Stores events in their order, several in one signal while the storage is busy. */
class Reports {
  readonly #task: TaskContext;
  readonly #onError: () => void;
  #pending: RecordedEvent[] = [];
  #pendingChars = 0;
  #stored = 0;
  #storing: Promise<void> | undefined;
  #error: Error | undefined;

  constructor(task: TaskContext, onError: () => void) {
    this.#task = task;
    this.#onError = onError;
  }

  add(event: RecordedEvent): void {
    if (this.#error !== undefined) return;
    this.#pending.push(event);
    this.#pendingChars += sizeOf(event);
    if (this.#pendingChars > PENDING_CHARS_MAX)
      this.#fail(
        new HoldfastError(
          "external_agent_failed",
          "the agent reports events faster than they can be stored",
          {
            expected: `at most ${PENDING_CHARS_MAX} characters of events that wait`,
          },
        ),
      );
    this.#storing ??= this.#store().finally(() => (this.#storing = undefined));
  }

  /** Ends the turn: an event cannot be recorded. */
  refuse(reason: string): void {
    this.#fail(new HoldfastError("external_agent_failed", reason));
  }

  /** @returns the number of reports. @throws what prevented one. */
  async end(): Promise<number> {
    while (this.#storing !== undefined) await this.#storing;
    if (this.#error !== undefined) throw this.#error;
    return this.#stored;
  }

  async #store(): Promise<void> {
    await Promise.resolve(); // Events of the same moment share a signal.
    while (this.#pending.length > 0 && this.#error === undefined) {
      const events = this.#next();
      const dedupKey = `${this.#task.taskId}/${this.#task.attempt}/${this.#stored}`;
      try {
        await this.#task.signalSession(REPORT_SIGNAL, { events } satisfies StoredReport, { dedupKey });
        this.#stored++;
      } catch (error) {
        this.#fail(error);
      }
    }
  }

  #next(): readonly RecordedEvent[] {
    let count = 0;
    let chars = 0;
    do chars += sizeOf(this.#pending[count++]!);
    while (count < this.#pending.length && chars + sizeOf(this.#pending[count]!) <= REPORT_CHARS);
    this.#pendingChars -= chars;
    return this.#pending.splice(0, count);
  }

  #fail(error: unknown): void {
    this.#error ??= toError(error);
    this.#pending = [];
    this.#pendingChars = 0;
    this.#onError();
  }
}

function sizeOf(event: RecordedEvent): number {
  return JSON.stringify(event).length;
}
