// One turn of the model loop: a model call, the tool calls it asks for, their results. The rules of a turn
// are in `../model-loop.ts`.

import { defined, HoldfastError, NEXT_INPUT, type Json } from "@holdfast/core";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { AssistantContent, ModelReply, ToolContent } from "../../models/model-provider.ts";
import { offersOf } from "../capability.ts";
import { Compaction } from "../compaction/compaction.ts";
import { withOwnIds } from "../compaction/earlier-work.ts";
import { FEEDBACK_SIGNALS, feedbackText } from "../feedback.ts";
import { Hooks } from "../hooks/hooks.ts";
import { asAtStart } from "../tools/delegate.ts";
import { FRESH_GUARD } from "../loop-guard.ts";
import { SUBMIT_OUTPUT } from "../tools/loop-tools.ts";
import type { ModelState } from "../model-state.ts";
import {
  CUT_OFF,
  EMPTY_REPLY,
  INTERRUPTED,
  INTERRUPTED_CALL,
  NO_OUTPUT,
  systemPrompt,
} from "../system-prompt.ts";
import { isQueued, requestText, type DeliveredMessage } from "../request-text.ts";
import type { WorkspaceFacts } from "../workspace-facts.ts";
import { askModel } from "./model-call.ts";
import { offeredTools } from "./offered-tools.ts";
import { ToolCalls } from "./tool-calls.ts";
import {
  LOOP_LIMITS,
  PREPARE_RETRY,
  STEER,
  TurnDraft,
  type Context,
  type LoopParts,
  type Turn,
} from "./turn-draft.ts";
import { TurnFiles } from "./turn-files.ts";

/** The signal that ends the rules that answers gave the session. It has no payload, and counts from the next model call. */
const REVOKE_RULES = "revoke_rules";
/** The signal that ends the turn under way. It has no payload. A turn that has ended already ignores it. */
const INTERRUPT = "interrupt";

/** One turn. Lives for one call of the agent's function: what must outlive it is in the state or in the journal. */
export class ModelTurn {
  readonly #draft: TurnDraft;

  constructor(ctx: Context, state: ModelState, parts: LoopParts) {
    this.#draft = new TurnDraft(ctx, state, parts);
  }

  async take(): Promise<Turn> {
    const { agent, workspace, isWaiting } = this.#draft.state;
    if (agent === null || workspace === null) return this.#begin();
    const files = new TurnFiles(this.#draft, agent);
    await files.own();
    files.report();
    if (isWaiting) return this.#awaitRequest(agent);
    return this.#workInterruptibly(agent, this.#draft.state.workspace ?? workspace, files);
  }

  /**
   * Works until the turn ends or a person interrupts it. An interruption withdraws what is open, and the
   * conversation waits.
   */
  async #workInterruptibly(
    agent: AgentRecord,
    workspace: WorkspaceFacts,
    files = new TurnFiles(this.#draft, agent),
  ): Promise<Turn> {
    if (!agent.isConversation) return this.#work(agent, workspace, files);
    const ready = this.#draft.ctx.signalReady(INTERRUPT);
    const first = await this.#draft.ctx.select({ turn: this.#work(agent, workspace, files), ready });
    if (first.key === "turn") return first.value;
    this.#dropInterruptions();
    for (const { id, name } of this.#draft.openCalls)
      this.#draft.append("tool", {
        toolCallId: id,
        name,
        text: INTERRUPTED_CALL,
        isError: true,
      } satisfies ToolContent);
    this.#draft.append("user", INTERRUPTED);
    files.interrupt();
    this.#draft.ctx.update({ ...this.#draft.state, isWaiting: true });
    return this.#draft.ctx.checkpoint(undefined, { openTasks: "cancel" });
  }

  #dropInterruptions(): void {
    while (this.#draft.ctx.hasSignal(INTERRUPT)) this.#draft.ctx.takeSignal(INTERRUPT);
  }

  async #begin(): Promise<Turn> {
    const { ctx, parts } = this.#draft;
    const prepared = await ctx.run("prepare", (task) => parts.prepare(task, ctx), {
      retry: PREPARE_RETRY,
    });
    const { workspace, files, facts, rules } = prepared;
    const isConversation = prepared.agent.isConversation || wantsConversation(this.#draft.ctx.input);
    const agent: AgentRecord = { ...prepared.agent, isConversation };
    this.#draft.change({ agent, workspace, files, facts, rules });
    const started = await new Hooks(this.#draft, agent).onRunStart(this.#draft.ctx.input as Json);
    if ("blocked" in started) throw new HoldfastError("policy_denied", started.blocked);
    const request = requestText(started.request);
    this.#draft.change({ request });
    this.#draft.append("user", request);
    return this.#workInterruptibly(agent, workspace);
  }

  /** Waits for the next request of a conversation. */
  async #awaitRequest(agent: AgentRecord): Promise<Turn> {
    const options = agent.ttlMs === null ? {} : { timeoutMs: agent.ttlMs };
    const { ctx } = this.#draft;
    const wanted = ctx.select({
      [NEXT_INPUT]: ctx.waitForSignal(NEXT_INPUT, options),
      ...Object.fromEntries(FEEDBACK_SIGNALS.map((name) => [name, ctx.signalReady(name)])),
      [STEER]: ctx.signalReady(STEER),
    });
    const given = await wanted.then(
      ({ key, value }) => {
        // The work had ended before the message came.
        if (key === STEER) return { payload: requestText(ctx.takeSignal(STEER)), isQueued: true };
        if (key !== NEXT_INPUT) return { payload: feedbackText(key, ctx.takeSignal(key)), isQueued: false };
        return isQueued(value)
          ? { payload: requestText(value), isQueued: true }
          : { payload: value, isQueued: false };
      },
      (error: unknown) => {
        if (HoldfastError.is(error) && error.code === "wait_timed_out") return undefined;
        throw error;
      },
    );
    if (given === undefined) return { done: this.#draft.state.answer };
    this.#dropInterruptions(); // They were for the turn before.
    const started = await new Hooks(this.#draft, agent).onRunStart(given.payload as Json);
    if ("blocked" in started) {
      // The conversation goes on with the next request.
      this.#draft.ctx.reportProgress({ answer: started.blocked });
      this.#draft.change({ answer: started.blocked });
      return this.#draft.next();
    }
    const request = requestText(started.request);
    const queued: DeliveredMessage = { text: request, delivery: "queue" };
    this.#draft.append("user", given.isQueued ? queued : request);
    this.#draft.change({ request, isWaiting: false, turns: 0, corrections: 0, guard: FRESH_GUARD });
    return this.#draft.next();
  }

  async #work(agent: AgentRecord, workspace: WorkspaceFacts, files: TurnFiles): Promise<Turn> {
    const offers = offersOf(this.#draft.parts.capabilities, this.#draft.state.facts);
    const { facts } = this.#draft.state;
    const own = this.#draft.parts.tools.map((tool) => asAtStart(tool, facts));
    const all = [...own, ...offers.flatMap((offer) => offer.tools ?? [])];
    const tools = offeredTools(agent, all, this.#draft.state.earlier.calls.length > 0);
    const instructions = offers.flatMap((offer) => offer.instructions ?? []);
    const system = systemPrompt(agent, workspace, instructions);
    const compaction = new Compaction(this.#draft, agent, system, tools);
    if (compaction.isDue) return compaction.make(); // Messages that arrived meanwhile follow the boundary.
    for (let steer; (steer = this.#draft.ctx.takeSignal(STEER)) !== undefined;)
      this.#draft.append("user", { text: requestText(steer), delivery: "steer" } satisfies DeliveredMessage);
    while (this.#draft.ctx.hasSignal(REVOKE_RULES)) {
      this.#draft.ctx.takeSignal(REVOKE_RULES);
      this.#draft.change({ rules: [] });
    }
    const turnsMax = agent.turnsMax ?? LOOP_LIMITS.turns;
    if (this.#draft.state.turns >= turnsMax)
      await this.#draft.askToContinue(
        agent,
        `it has made ${this.#draft.state.turns} model calls for this request`,
      );

    let reply: ModelReply;
    try {
      reply = await askModel(this.#draft, agent, system, tools);
    } catch (error) {
      const again = compaction.afterFailure(error);
      if (again !== undefined) return again;
      throw error;
    }
    const { text, thoughts } = reply;
    const { earlier, boundaries } = this.#draft.state;
    const toolCalls = withOwnIds(reply.toolCalls, earlier, boundaries.count);
    const content: AssistantContent = { text, ...defined({ thoughts }), toolCalls };
    this.#draft.append("assistant", content);
    if (reply.finishReason === "refusal")
      throw new HoldfastError("invalid_output", `the model ${reply.model} refused to continue`, {
        got: reply.text.slice(0, 500),
        fix: "look at the conversation (`holdfast logs`), and start again with another request or model",
      });
    if (toolCalls.length === 0) return this.#answerWithoutCalls(agent, reply);
    const { stop, output } = await new ToolCalls(this.#draft, agent, tools, files).carryOut(toolCalls);
    files.report();
    // No fork begins at the end of a session.
    if (output === undefined || agent.isConversation) await files.keep();
    if (output !== undefined) return this.#answer(agent, output);
    if (stop !== undefined) await this.#draft.askToContinue(agent, stop);
    return this.#draft.next();
  }

  async #answerWithoutCalls(agent: AgentRecord, reply: ModelReply): Promise<Turn> {
    if (reply.finishReason === "length") return this.#continueWith(CUT_OFF);
    const isEmpty = reply.text.trim() === "";
    if (agent.outputSchema === null && !isEmpty) return this.#answer(agent, reply.text);
    const corrections = this.#draft.state.corrections + 1;
    this.#draft.change({ corrections });
    if (corrections < LOOP_LIMITS.corrections) return this.#continueWith(isEmpty ? EMPTY_REPLY : NO_OUTPUT);
    throw new HoldfastError(
      "invalid_output",
      `agent "${agent.name}" gave no result in ${corrections} replies`,
      {
        got: reply.text.slice(0, 500),
        expected:
          agent.outputSchema === null
            ? "a text"
            : `a call of ${SUBMIT_OUTPUT} that matches the output schema`,
        fix: "make the prompt or the output schema simpler, or choose another model",
      },
    );
  }

  /** The request is answered. */
  async #answer(agent: AgentRecord, answer: Json): Promise<Turn> {
    await new Hooks(this.#draft, agent).onRunFinish(answer);
    if (!agent.isConversation) return { done: answer };
    this.#draft.ctx.reportProgress({ answer });
    this.#draft.change({ isWaiting: true, answer });
    return this.#draft.next();
  }

  #continueWith(message: string): Turn {
    this.#draft.append("user", message);
    return this.#draft.next();
  }
}

/** Whether the input asks that the session waits for the next request after each answer, as `holdfast chat` does. */
function wantsConversation(input: unknown): boolean {
  return (
    typeof input === "object" && input !== null && "conversation" in input && input.conversation === true
  );
}
