// One turn of an external agent's session (`ExternalAgentTurn`): it prepares the session, lets the program
// work, or waits for the next request. The rules are in `external-agent.ts`.

import { CancelledError, defined, HoldfastError, UncertainEffectError } from "@holdfast/core";
import {
  CUT_OFF,
  LIMITED,
  OVER_BUDGET,
  RESTARTED,
  SUSPENDED,
  TURN_FAILED,
  TURN_INTERRUPTED,
} from "@holdfast/proto/view";
import type { AgentContext, TurnResult } from "@holdfast/runtime";

import { EventEntries } from "./event-entries.ts";
import type { ExternalEnd, ExternalIntent } from "./external-agent-protocol.ts";
import type { ExternalState } from "./external-state.ts";
import type { AgentLimit } from "./limits/agent-limit.ts";
import { limitTask } from "./limits/limit-task.ts";
import {
  countCutOff,
  countReported,
  isCutOff,
  usageOfTurn,
  type countTask,
  type CountedCalls,
} from "./limits/recorded-usage.ts";
import { countedBytes, usageAfter, usageForPeople } from "./limits/session-usage.ts";
import { askAboutLosses, askToStartAfresh } from "./receipt/lost-session.ts";
import { PermissionQuestions, type QuestionParts } from "./questions/permission-questions.ts";
import { answerText, continuePrompt, stopText, unreadText } from "./turn-texts.ts";
import { FOLLOW_UP, INTERRUPT, Messages, News, STEER } from "./turn-messages.ts";
import { awaitRequest, type ProgramAnswer, type RequestParts } from "./intent/next-request.ts";
import { readFollowUp, readInput } from "./intent/turn-input.ts";
import { endCancelled } from "./stopping/cancelled-session.ts";
import { lateText, WayBackCalls } from "./way-back/way-back-calls.ts";
import { isCalledBack } from "./way-back/callbacks.ts";
import type { DeleteSession, StartableAgents } from "./way-back/started-sessions.ts";
import { isQuestion } from "./way-back/way-back-tools.ts";
import { afterCutOff, type RestoreReceipt } from "./receipt/restore-receipt.ts";
import { withRights } from "./intent/own-intent.ts";
import { prepareSession, type PreparedParts } from "./intent/prepare-session.ts";
import { REPORT_SIGNAL, type StoredReport } from "./turn-reports.ts";
import type { turnTask, TurnOutput } from "./turn-task.ts";

export interface ExternalParts extends QuestionParts, PreparedParts, RequestParts {
  readonly task: ReturnType<typeof turnTask>;
  readonly countTask: ReturnType<typeof countTask>;
  /** As in the surroundings of turns. */
  readonly conversations: Set<string>;
  /** The agents that a session may start. */
  readonly startable: (intent: ExternalIntent) => StartableAgents;
  readonly deleteSession: DeleteSession | undefined;
  readonly deletesSessions: (intent: ExternalIntent) => boolean;
}

/** Turns in a row that may be cut off. */
const CUT_OFFS_MAX = 5;
type Context = AgentContext<unknown, ExternalState>;
type Turn = TurnResult<ExternalState, unknown>;
type NotedState = ExternalState & Required<Pick<ExternalState, "queued">>;

/** The parts of one run of the program. */
interface Work {
  readonly intent: ExternalIntent;
  readonly entries: EventEntries;
  readonly messages: Messages;
  readonly questions: PermissionQuestions;
  readonly calls: WayBackCalls;
  /** The receipt of a turn that ended in order. */
  readonly receipt?: RestoreReceipt | undefined;
  /** The vendor refused the turn before anything was used. */
  readonly isUnbilled?: boolean;
  /** The calls of a turn that was cut off, which it has not reported. */
  readonly counted?: CountedCalls;
}

export class ExternalAgentTurn {
  readonly #ctx: Context;
  readonly #state: ExternalState;
  readonly #parts: ExternalParts;
  /** The entries of the program's present run. */
  #entries: EventEntries | undefined;

  constructor(ctx: Context, state: ExternalState, parts: ExternalParts) {
    this.#ctx = ctx;
    this.#state = state;
    this.#parts = parts;
  }

  async take(): Promise<Turn> {
    try {
      return await this.#take();
    } catch (error) {
      if (CancelledError.is(error)) await endCancelled(this.#ctx, this.#state, this.#parts, this.#entries);
      throw error;
    }
  }

  async #take(): Promise<Turn> {
    const { intent, isWaiting, owner } = this.#state;
    if (intent === null) return this.#prepare();
    // external-agent-5.
    if (owner !== this.#ctx.sessionId)
      throw new HoldfastError("usage", `a fork cannot continue the session of ${this.#parts.protocol.name}`, {
        got: `a fork of session ${owner}`,
        fix: "start a new session, and describe in its prompt what was done",
      });
    if (isWaiting) return awaitRequest(this.#ctx, this.#state, this.#parts);
    return this.#work(intent);
  }

  /** external-agent-1. */
  async #prepare(): Promise<Turn> {
    const { intent, input, parameters, rules } = await prepareSession(this.#ctx, this.#parts);
    this.#ctx.appendEntry({ role: "user", content: input.text });
    const { conversationTtlMs: ttlMs } = this.#parts;
    // A parent that waits for the end of its child takes the first answer.
    const isLasting = ttlMs !== undefined && ttlMs > 0 && (this.#ctx.parentNotice ?? "events") === "events";
    return {
      state: {
        ...this.#state,
        intent,
        owner: this.#ctx.sessionId,
        request: input.text,
        prompt: input.text,
        ...(parameters && { parameters }),
        isConversation: input.conversation === true || isLasting,
        rules,
        keepAliveMs: input.keepAliveMs ?? this.#state.keepAliveMs,
        resumeAtReset: input.resumeAtReset === true,
      },
    };
  }

  /** One run of the program, with everything that it reports. */
  async #work(intent: ExternalIntent): Promise<Turn> {
    const ctx = this.#ctx;
    const { mode, prompt, parameters, keepAliveMs, boundId, receipt, restores = false } = this.#state;
    const { queued = [] } = this.#state;
    const turn = this.#state.turns + 1;
    const { tokens, costMicroUsd } = ctx.remainingBudget();
    const restarts = this.#parts.protocol.capabilities().steer === "restart";
    const limits = { tokensLeft: tokens ?? null, costMicroUsdLeft: costMicroUsd ?? null };
    const questions = new PermissionQuestions(ctx, this.#parts, { ...this.#state, folder: intent.folder });
    const agents = this.#parts.startable(intent);
    const { live, deleteSession: remove, deletesSessions } = this.#parts;
    const deleteSession = deletesSessions(intent) ? remove : undefined;
    const { doneCalls: done, started } = this.#state;
    const calls = new WayBackCalls(
      ctx,
      { live, agents, deleteSession, sandbox: intent.sandbox },
      { done, started },
    );
    const entries = new EventEntries(ctx, turn, {
      permission: (event) => questions.take(event),
      call: (event) => calls.take(event),
      followUp: (text) => {
        ctx.reportProgress({ answer: entries.lastText ?? "" });
        messages.begun(text);
      },
    });
    this.#entries = entries;
    const messages = new Messages(ctx, live, { restarts, kept: queued });
    const work: Work = { intent, entries, messages, questions, calls };
    if (this.#state.isConversation) this.#parts.conversations.add(ctx.sessionId);
    const ended = ctx
      .scheduleTask(this.#parts.task, {
        intent,
        boundId,
        mode: mode === "resume" && this.#state.isInOrder === true ? "sendMessage" : mode,
        prompt,
        ...(this.#state.command === prompt ? { isCommand: true } : {}),
        ...(parameters && { parameters }),
        turn,
        keepAliveMs,
        ...limits,
        ...(mode === "resume" && receipt ? { receipt } : {}),
        ...(mode === "resume" && restores ? { restores } : {}),
      })
      .then(
        (output) => ({ output }),
        (error: unknown) => ({ error }),
      );
    const interrupts = this.#state.isConversation ? [INTERRUPT] : [];
    const news = new News(ctx, [REPORT_SIGNAL, STEER, ...interrupts, FOLLOW_UP]);
    for (;;) {
      const first = await Promise.race([ended, news.next()]);
      if (typeof first === "string") {
        if (first === REPORT_SIGNAL) entries.take(ctx.takeSignal<StoredReport>(REPORT_SIGNAL));
        else if (first === STEER) messages.steer(readInput(ctx.takeSignal(STEER)).text);
        else if (first === FOLLOW_UP) messages.followUp(readFollowUp(ctx.takeSignal(FOLLOW_UP)));
        else messages.interrupt();
        news.taken(first);
        continue;
      }
      if ("error" in first) {
        for (const { payload } of ctx.drainSignals<StoredReport>(REPORT_SIGNAL)) entries.take(payload);
        if (!UncertainEffectError.is(first.error)) throw first.error;
        await countReported(ctx, entries.usage);
        const counted = await this.#count(work);
        // The death of our process says nothing against the program. The runtime parks a session that kills
        // its process.
        return this.#continueAfter({ ...work, counted }, CUT_OFF, this.#state.cutOffs);
      }
      return this.#finish(first.output, work);
    }
  }

  async #finish(output: TurnOutput, given: Work): Promise<Turn> {
    const { end, isOverBudget, isSuspended, reports, receipt, losses, rights, limit } = output;
    const { entries } = given;
    while (entries.count < reports) entries.take(await this.#ctx.waitForSignal<StoredReport>(REPORT_SIGNAL));
    const counted = isCutOff(end, entries) ? await this.#count(given) : undefined;
    const work: Work = { ...given, receipt, ...(counted && { counted }) };
    if (end.type !== "answered" && isSuspended) return this.#continueAfter(work, SUSPENDED, 0);
    if (losses !== undefined)
      return this.#restore(withRights(work.intent, rights), losses, output.isRestorable ?? false);
    if (limit !== undefined) return this.#awaitLimit(limit, work);
    // The next task waits until the budget is raised.
    if (end.type !== "answered" && isOverBudget) return this.#continueAfter(work, OVER_BUDGET, 0);
    return this.#follow(end, work);
  }

  async #follow(end: ExternalEnd, work: Work): Promise<Turn> {
    const { intent } = work;
    const { name } = this.#parts.protocol;
    switch (end.type) {
      case "answered":
        return this.#answer(end, work);
      case "unknown_session":
        return this.#startAfresh(intent);
      case "aborted":
        if (work.messages.isInterrupted)
          return this.#wait(work, `${TURN_INTERRUPTED}${stopText(name, end)})`);
        if (await work.messages.hasRestarted()) return this.#continueAfter(work, RESTARTED, 0);
        return this.#afterCutOff("its turn was cancelled by the program", work);
      case "died":
        if (this.#state.mode === "start" && /already in use/i.test(end.message))
          return this.#continueAfter(work, CUT_OFF, this.#state.cutOffs + 1);
        // A signal comes from outside of the program, and says nothing against it.
        if (!end.hasStarted && end.process?.type !== "signal")
          throw this.#failed(`${name} ended before its session began: ${end.message}`);
        return this.#afterCutOff(end.message, work);
      case "broken":
        throw this.#failed(`${name} does not keep to its protocol: ${end.message}`);
      case "error":
        // A session with a time to live is a run of its program, which has failed.
        if (this.#state.isConversation && this.#parts.conversationTtlMs === undefined)
          return this.#wait(work, `${TURN_FAILED} ${end.message})`);
        throw this.#failed(`${name} reports an error: ${end.message}`);
    }
  }

  /** A program whose turn is cut off after it has done something has a new chance. */
  #afterCutOff(message: string, work: Work): Promise<Turn> {
    const cutOffs = work.entries.hasProgressed ? 1 : this.#state.cutOffs + 1;
    if (cutOffs <= CUT_OFFS_MAX) return this.#continueAfter(work, CUT_OFF, cutOffs);
    throw this.#failed(`${this.#parts.protocol.name} was cut off in ${cutOffs} turns in a row: ${message}`);
  }

  async #answer({ text, data }: ProgramAnswer, work: Work): Promise<Turn> {
    const { entries, calls } = work;
    const sent = await work.messages.undelivered();
    // The agent has not waited for these answers.
    const late = (await calls.late(() => Infinity)).filter(({ call }) => isQuestion(call));
    const undelivered = this.#state.isConversation ? sent : [...sent, ...work.messages.takeLast()];
    entries.closeCalls("The turn ended without a result of this call.");
    if (entries.lastText !== text && text !== "")
      this.#ctx.appendEntry({ role: "assistant", content: { text, toolCalls: [] } });
    const { data: _earlier, ...noted } = this.#noted(work);
    const given = data === undefined ? {} : { data };
    const state = {
      ...noted,
      ...given,
      mode: "resume",
      isInOrder: true,
      cutOffs: 0,
      limitsInARow: 0,
      grants: [],
      unread: [],
      doneCalls: [],
      hasActed: true,
      answer: text,
    } as const;
    const isCounted = this.#parts.protocol.capabilities(work.intent.profile).usage !== "none";
    this.#ctx.reportProgress({ answer: text, ...given, usage: usageForPeople(state.usage, isCounted) });
    if (undelivered.length + late.length > 0) {
      const prompt = [...late.map(lateText), ...undelivered].join("\n\n");
      if (late.length > 0) this.#ctx.appendEntry({ role: "user", content: prompt });
      return { state: { ...state, request: prompt, prompt } };
    }
    const isActive =
      state.isConversation || state.queued.length > 0 || isCalledBack(this.#ctx, state.started);
    return isActive
      ? { state: { ...state, isWaiting: true } }
      : { done: this.#parts.output({ text, ...given }) };
  }

  /** Ends a turn of a conversation without an answer. */
  #wait(work: Work, why: string): Turn {
    const { entries } = work;
    entries.closeCalls();
    this.#ctx.appendEntry({ role: "user", content: why });
    return {
      state: {
        ...this.#noted(work),
        mode: this.#modeAfter(entries),
        isInOrder: true,
        cutOffs: 0,
        isWaiting: true,
      },
    };
  }

  /** external-agent-2. */
  async #continueAfter(work: Work, why: string, cutOffs: number): Promise<Turn> {
    return { state: await this.#continued(work, why, cutOffs) };
  }

  async #continued(work: Work, why: string, cutOffs: number): Promise<ExternalState> {
    const { entries, questions, messages } = work;
    const late = await questions.late((callId) => entries.hasResult(callId));
    const made = await work.calls.late((tool) => entries.resultsOf(tool));
    const asked = new Set(late.map(({ request }) => request.toolCallId));
    const cutOff = entries.openCalls.filter(({ id }) => !asked.has(id));
    const noted = this.#noted(work);
    const news = [
      ...late.map(answerText),
      ...made.map(lateText),
      ...(await messages.undelivered()).map((text) => `The user has sent this message in between: ${text}`),
    ];
    const unread = unreadText(cutOff, news, noted.unread);
    const prompt = continuePrompt(why, unread, noted.request);
    entries.closeCalls();
    this.#ctx.appendEntry({ role: "user", content: prompt });
    return { ...noted, mode: "resume", isInOrder: false, prompt, unread, cutOffs };
  }

  /** external-agent-3. */
  async #startAfresh(intent: ExternalIntent): Promise<Turn> {
    const { hasActed, request } = this.#state;
    const { name } = this.#parts.protocol;
    const fresh: ExternalState = {
      ...this.#state,
      mode: "start",
      boundId: null,
      receipt: null,
      countedBytes: 0,
    };
    if (!hasActed && this.#state.mode === "resume") {
      this.#ctx.appendEntry({
        role: "user",
        content: `(${name} had not stored its session. Nothing was done, and the request is sent again.)`,
      });
      return { state: { ...fresh, prompt: this.#state.prompt } };
    }
    const lostId = this.#state.boundId ?? intent.agentSessionId;
    const prompt = await askToStartAfresh(this.#ctx, { name, lostId, request });
    this.#ctx.appendEntry({ role: "user", content: prompt });
    return {
      state: {
        ...fresh,
        prompt,
        unread: [prompt],
        intent: { ...intent, agentSessionId: this.#ctx.randomUuid() },
      },
    };
  }

  /** external-agent-7. */
  async #awaitLimit(limit: AgentLimit, work: Work): Promise<Turn> {
    const { name } = this.#parts.protocol;
    const { signIn = `sign in with the program of ${name}` } = this.#parts.protocol.capabilities();
    const limitsInARow = (this.#state.limitsInARow ?? 0) + 1;
    const resumeAtReset = this.#state.resumeAtReset === true && limitsInARow <= LIMITS_MAX;
    await this.#ctx.scheduleTask(limitTask, { agent: name, limit, signIn, resumeAtReset });
    if (!work.entries.hasStarted) return { state: { ...this.#state, limitsInARow } };
    const isUnbilled = work.entries.usage.length === 0 && !work.entries.hasActed;
    const state = await this.#continued({ ...work, isUnbilled }, LIMITED, this.#state.cutOffs);
    return { state: { ...state, limitsInARow } };
  }

  /** external-agent-6. */
  async #restore(intent: ExternalIntent, losses: readonly string[], isRestorable: boolean): Promise<Turn> {
    const { name } = this.#parts.protocol;
    const { request, prompt } = this.#state;
    const lostId = this.#state.boundId ?? intent.agentSessionId;
    const asked = { name, lostId, request, prompt, losses, isRestorable };
    const chosen = await askAboutLosses(this.#ctx, asked);
    this.#ctx.appendEntry({ role: "user", content: chosen.prompt });
    const unread = [chosen.prompt];
    // The receipt counts again for what is lost besides the file.
    if (chosen.mode === "restore")
      return { state: { ...this.#state, intent, prompt: chosen.prompt, unread, restores: true } };
    const state: ExternalState = { ...this.#state, intent, prompt: chosen.prompt, unread, receipt: null };
    if (chosen.mode === "resume") return { state };
    const fresh = { ...intent, agentSessionId: this.#ctx.randomUuid() };
    return { state: { ...state, mode: "start", boundId: null, intent: fresh, countedBytes: 0 } };
  }

  #modeAfter(entries: EventEntries): "start" | "resume" {
    return entries.hasStarted ? "resume" : this.#state.mode;
  }

  #noted(work: Work): NotedState {
    const { entries, messages, questions, calls, receipt, counted } = work;
    const { countedBytes: last, command: _begun, ...before } = this.#state;
    const { usage, hasActed, model, boundId, request } = before;
    const countedTo = counted === undefined ? (receipt === undefined ? last : undefined) : counted.bytes;
    return {
      ...before,
      turns: before.turns + 1,
      ...defined({ countedBytes: countedTo }),
      request: messages.request ?? request,
      queued: messages.followUps,
      rules: questions.rules,
      grants: questions.grants,
      doneCalls: calls.done,
      started: calls.started,
      hasActed: hasActed || entries.hasActed,
      model: entries.model ?? model,
      boundId: entries.boundId ?? boundId,
      receipt: receipt ?? afterCutOff(this.#state.receipt),
      restores: false,
      unread: entries.hasProgressed ? [] : this.#state.unread,
      usage: usageAfter(usage, usageOfTurn(work)),
    };
  }

  #count({ intent, entries }: Work): Promise<CountedCalls> {
    const boundId = entries.boundId ?? this.#state.boundId;
    const request = { intent, boundId, from: countedBytes(this.#state), reported: entries.recordIds };
    return countCutOff(this.#ctx, this.#parts.countTask, request);
  }

  #failed(message: string): HoldfastError {
    return new HoldfastError("external_agent_failed", message, {
      fix: "correct the cause, then start a new session",
    });
  }
}

/** How often in a row a limit is waited for without a person. */
const LIMITS_MAX = 10;
