// `executorAgent` makes an agent of an executor: a session whose turns a program carries out.
//
//   working ─► waiting for `next_input` ─► working … ─► completed with the last result, when its time to live is over
//
//   executor-agent-1. Each turn is one task, which is tried once. An attempt that was lost is not repeated: the next turn
//       starts the executor with `mode: "resume"` and says that it was cut off.
//   executor-agent-2. Everything that the executor reported before its turn ended is in the session before the turn's end
//       (turn-reports-2), also when the turn failed. A report of a lost attempt counts as well.
//   executor-agent-3. A turn that ends without a result and without a message of the executor has failed.
//   executor-agent-4. A session with callbacks to come does not complete, and does not time out: the next callback starts its
//       next turn. A session whose parent waits for its end completes with its first turn that expects no callback.
//   executor-agent-5. A graceful cancel stops the program. The session ends after it has taken what the program reported
//       until its process ended. A request of the program is not carried out any more.

import { CancelledError, CHILD_ENDED, HoldfastError, NEXT_INPUT, UncertainEffectError } from "@holdfast/core";
import { defineAgent, defineTask, type Agent, type AgentContext, type TurnResult } from "@holdfast/runtime";

import {
  answerTask,
  expectsCallbacks,
  ExecutorChildren,
  takeCallbacks,
  type KnownChild,
} from "./executor-children.ts";
import type { ExecutorHost, TurnOutcome } from "./executor-host.ts";
import { readInput, readPrompt, type ExecutorInput, type TurnRequest } from "./invocation.ts";
import { secretsOf, type ExecutorProfile } from "./profile.ts";
import { REPORT_SIGNAL, type StoredReport } from "./turn-reports.ts";

/** The most attempts in a row that may be lost with their process. */
const LOST_MAX = 5;

/** The output of a session, and of each turn. */
export interface ExecutorResult {
  readonly result_text: string | null;
  readonly result_data: unknown;
}

/** A turn before it is asked for. A fork has another id than the session that prepared the turn. */
type Prepared = Omit<TurnRequest, "sessionId">;

interface State {
  readonly request: Prepared;
  readonly isWaiting: boolean;
  /** Attempts in a row that were lost. */
  readonly lost: number;
  readonly result: ExecutorResult | null;
  readonly children: readonly KnownChild[];
}

/** How a turn ended, or why its task has no outcome. */
type TurnEnd = TurnOutcome | { readonly failure: unknown };

type Context = AgentContext<unknown, State>;
type Turn = TurnResult<State, ExecutorResult>;

/** The agent whose name is that of the profile. @throws as `ExecutorHost.add` does. */
export function executorAgent(profile: ExecutorProfile, host: ExecutorHost): Agent<unknown, ExecutorResult> {
  host.add(profile);
  const task = defineTask<TurnRequest, TurnOutcome>({
    name: `executor:${profile.name}`,
    description: `One turn of the executor ${profile.name}.`,
    secrets: secretsOf(profile),
    effect: "once", // executor-agent-1.
    run: (request, context) => host.turn(profile, request, context),
    endLost: (request) => host.endLost((request as TurnRequest).sessionId),
  });

  const answers = answerTask(profile.name, host.answers);

  /** One run of the program, with everything that it reports. */
  async function work(ctx: Context, state: State): Promise<Turn> {
    const { request } = state;
    const received = new ReceivedReports(ctx, request, new ExecutorChildren(ctx, answers, state.children));
    const run = ctx.scheduleTask(task, { ...request, sessionId: ctx.sessionId });
    const ended = run.catch((failure: unknown) => ({ failure }));
    try {
      const end = await received.takeUntil(ended, ctx);
      if ("failure" in end) return cutOff(ctx, state, received, end.failure);
      if (end.error !== undefined) throw new HoldfastError("task_failed", end.error);
      return finished(ctx, state, received);
    } catch (error) {
      if (!CancelledError.is(error)) throw error;
      // executor-agent-5.
      received.refuseRequests();
      await ctx.cleanup(async (cleaning) => {
        const isUnderWay = await cleaning.run("stop_executor", () => host.stopTurn(ctx.sessionId));
        if (!isUnderWay) run.cancel();
        await received.takeUntil(ended, cleaning);
        received.takeStored();
      });
      throw error;
    }
  }

  function finished(ctx: Context, state: State, received: ReceivedReports): Turn {
    const { result, children } = received;
    // executor-agent-3.
    if (result === null)
      throw new HoldfastError("invalid_output", `executor ${profile.name} ended its turn without a result`, {
        expected: 'an event { "event_type": "result", "result_text": … }',
        fix: "report a result before the turn ends",
      });
    ctx.reportProgress({ turn: state.request.turn, ...result });
    // executor-agent-4.
    const isConversation = profile.conversationTtlMs > 0 && (ctx.parentNotice ?? "events") === "events";
    // mutant: callback-given-up
    if (!isConversation && !expectsCallbacks(ctx, children) && !ctx.hasSignal(CHILD_ENDED))
      return { done: result };
    const request = { ...state.request, executorSessionId: received.executorSessionId };
    return { state: { request, isWaiting: true, lost: 0, result, children } };
  }

  return defineAgent<unknown, ExecutorResult, State>({
    name: profile.name,
    description: `Sessions of the executor ${profile.name}.`,
    tasks: [task, answers],
    secrets: secretsOf(profile),
    initial: (input) => firstState(readInput(input)),
    turn: async (ctx, state) =>
      state.isWaiting ? next(ctx, state, profile.conversationTtlMs) : work(ctx, state),
  });
}

function firstState(input: ExecutorInput): State {
  return {
    request: { ...input, turn: 1, mode: "start", executorSessionId: null },
    isWaiting: false,
    lost: 0,
    result: null,
    children: [],
  };
}

/** executor-agent-1. */
function cutOff(ctx: Context, state: State, received: ReceivedReports, error: unknown): Turn {
  received.refuseRequests();
  received.takeStored();
  const lost = state.lost + 1;
  if (!UncertainEffectError.is(error) || lost > LOST_MAX) throw error;
  const { request } = state;
  const again: Prepared = {
    ...request,
    turn: request.turn + 1,
    mode: "resume",
    executorSessionId: received.executorSessionId,
    parameters:
      state.lost > 0 ? request.parameters : { ...request.parameters, prompt: cutOffPrompt(request) },
  };
  return { state: { ...state, request: again, lost, children: received.children } };
}

function cutOffPrompt({ parameters }: Prepared): string {
  const { prompt = "" } = parameters;
  return (
    "Your previous run was cut off before it ended. Check what it has already done before you repeat anything, and then " +
    `continue. The request was:\n\n${typeof prompt === "string" ? prompt : JSON.stringify(prompt)}`
  );
}

/** Waits for the next prompt or callback; the session completes when none comes in time (executor-agent-4). */
async function next(ctx: Context, state: State, ttlMs: number): Promise<Turn> {
  const { request, result, children } = state;
  const done = { done: result ?? { result_text: null, result_data: null } };
  const deadline = ctx.now() + ttlMs;
  const resumed = (parameters: Prepared["parameters"], known: readonly KnownChild[]): Turn => {
    const again: Prepared = { ...request, parameters, mode: "resume", turn: request.turn + 1 };
    return { state: { ...state, isWaiting: false, request: again, children: known } };
  };
  for (;;) {
    const callbacks = takeCallbacks(ctx, children);
    if (callbacks !== undefined) return resumed({ prompt: callbacks.prompt }, callbacks.children);
    const patience = expectsCallbacks(ctx, children) ? {} : { timeoutMs: Math.max(1, deadline - ctx.now()) };
    const first = await ctx
      .select({ input: ctx.waitForSignal(NEXT_INPUT, patience), callback: ctx.signalReady(CHILD_ENDED) })
      .catch((error: unknown) => {
        if ((error as Error).name === "WaitTimeoutError") return undefined;
        throw error;
      });
    if (first === undefined) return done;
    if (first.key === "callback") continue;
    const parameters = readPrompt(first.value);
    if (parameters !== undefined) return resumed(parameters, children);
    ctx.appendEntry({ role: "system", content: "a next_input without a prompt was ignored" });
  }
}

/** The reports of the executor in this turn, as entries of the conversation and as the turn's result. */
class ReceivedReports {
  executorSessionId: string | null;
  /** Reports of this turn that were taken. */
  #count = 0;
  #refusesRequests = false;
  readonly #ctx: Context;
  readonly #turn: number;
  readonly #children: ExecutorChildren;
  #result: ExecutorResult | null = null;
  #lastMessage: string | null = null;

  constructor(ctx: Context, request: Prepared, children: ExecutorChildren) {
    this.#ctx = ctx;
    this.#children = children;
    this.#turn = request.turn;
    this.executorSessionId = request.executorSessionId;
    ctx.appendEntry({ role: "user", content: request.parameters["prompt"] ?? request.parameters });
  }

  /** The result, or in its place the last message of the executor. */
  get result(): ExecutorResult | null {
    if (this.#result !== null || this.#lastMessage === null) return this.#result;
    return { result_text: this.#lastMessage, result_data: null };
  }

  get children(): readonly KnownChild[] {
    return this.#children.known;
  }

  /**
   * Takes reports until the turn has ended, and then those that are still missing.
   *
   * @param ctx whose waits are used: those of a clean-up continue after a graceful cancel.
   * @returns how the turn ended, or why its task has no outcome.
   *
   * @throws CancelledError when the session is cancelled meanwhile.
   */
  async takeUntil(ended: Promise<TurnEnd>, ctx: Context): Promise<TurnEnd> {
    for (;;) {
      const end = await Promise.race([ended, ctx.signalReady(REPORT_SIGNAL).then(() => undefined)]);
      if (end === undefined) {
        this.take(ctx.takeSignal<StoredReport>(REPORT_SIGNAL));
        continue;
      }
      // executor-agent-2.
      const reports = "reports" in end ? end.reports : 0;
      while (this.#count < reports) this.take(await ctx.waitForSignal<StoredReport>(REPORT_SIGNAL));
      return end;
    }
  }

  /** From here on a request of the executor counts as a report, and is not carried out. executor-children-2. */
  refuseRequests(): void {
    this.#refusesRequests = true;
  }

  /** Takes what is there, for a turn whose end does not tell how many reports it has. */
  takeStored(): void {
    for (const { payload } of this.#ctx.drainSignals<StoredReport>(REPORT_SIGNAL)) this.take(payload);
  }

  take(report: StoredReport | undefined): void {
    if (report === undefined) return;
    const isOwn = report.turn === this.#turn;
    if (isOwn) this.#count++;
    if (report.type === "bind") this.executorSessionId = report.executorSessionId;
    else if (report.type === "event") this.#takeEvent(report.event, isOwn);
    else if (isOwn && !this.#refusesRequests) this.#children.carryOut(report.id, report); // executor-children-2.
  }

  #takeEvent(event: Readonly<Record<string, unknown>>, isOwn: boolean): void {
    switch (event["event_type"]) {
      case "message":
        return this.#takeMessage(event, isOwn);
      case "pre_tool":
      case "post_tool":
        this.#ctx.appendEntry({ role: "tool", content: event });
        return;
      case "result": {
        const { result_text: text, result_data: data } = event;
        const result = { result_text: typeof text === "string" ? text : null, result_data: data ?? null };
        if (isOwn) this.#result = result;
        return;
      }
      default: // Other events are facts about the program, and no part of the conversation.
    }
  }

  #takeMessage({ role, content }: Readonly<Record<string, unknown>>, isOwn: boolean): void {
    const text = textOf(content);
    this.#ctx.appendEntry({ role: role === "user" ? "user" : "assistant", content: text ?? content ?? "" });
    if (isOwn && role !== "user" && text !== undefined && text !== "") this.#lastMessage = text;
  }
}

/** The text of a message: a text, or a list of parts `{ type: "text", text }`. */
function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part) => (part as { readonly text?: unknown } | null)?.text);
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}
