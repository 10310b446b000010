// One turn of the model loop: a model call, the tool calls it asks for, their results. The rules of a turn are in `model-loop.ts`.

import { HoldfastError, type Json, type RetryPolicy } from "@holdfast/core";
import type { AgentContext, TaskContext, TurnResult } from "@holdfast/runtime";

import type { AgentRecord, PermissionRule } from "../agent-files/agent-record.ts";
import type { AssistantContent, ModelReply, ModelToolCall, ToolContent } from "../models/model-provider.ts";
import type { modelTask } from "../models/model-task.ts";
import { entryTokens } from "../models/request-size.ts";
import { askPermission, type ProjectRules } from "./permission/ask-permission.ts";
import { offersOf, type AnyCapability } from "./capability.ts";
import { SUBMIT_OUTPUT, submitOutput } from "./loop-tools.ts";
import { FRESH_GUARD, noteCall } from "./loop-guard.ts";
import { FIRST_STATE, type CapabilityFacts, type ModelState } from "./model-state.ts";
import { matchesName } from "./permission/permissions.ts";
import {
  CUT_OFF,
  EMPTY_REPLY,
  INTERRUPTED,
  INTERRUPTED_CALL,
  NO_OUTPUT,
  systemPrompt,
} from "./system-prompt.ts";
import type { ReadyCall, Tool, ToolOutcome } from "./tool.ts";
import { addressOf, type WorkspaceFacts } from "./workspace-facts.ts";

/** The signal that gives a conversation its next request: a text, or `{ text }`. */
const NEXT_INPUT = "next_input";
/** The signal that reaches the model before its next call, in the middle of the work: a text, or `{ text }`. */
const STEER = "steer";
/** The signal that ends the rules that answers gave the session. It has no payload, and counts from the next model call. */
const REVOKE_RULES = "revoke_rules";
/** The signal that ends the turn under way. It has no payload. A turn that has ended already ignores it. */
const INTERRUPT = "interrupt";

/** The parts of an agent of the model loop, apart from its record. */
export interface LoopParts {
  readonly model: ReturnType<typeof modelTask>;
  /** Every tool that a record may name, apart from those of the capabilities. */
  readonly tools: readonly Tool[];
  readonly capabilities: readonly AnyCapability[];
  /** Reads what a session that starts now continues with. */
  readonly prepare: (task: TaskContext) => Promise<Prepared>;
  readonly projectRules: ProjectRules | undefined;
}

export interface Prepared {
  readonly agent: AgentRecord;
  readonly workspace: WorkspaceFacts;
  readonly facts: CapabilityFacts;
  readonly rules: readonly PermissionRule[];
}

export const LOOP_LIMITS = {
  /** Model calls of one request, where the record does not say. Then a person is asked. */
  turns: 100,
  /** Tool calls of one reply that are carried out. */
  callsPerReply: 64,
  /** Outputs in a row that do not match their schema. */
  corrections: 5,
} as const;

/** Errors of an agent's file or of its surroundings, which another attempt would meet again. */
const PREPARE_RETRY: RetryPolicy = {
  nonRetryable: ["agent_invalid", "config_invalid", "file_not_found", "invalid_input", "secret_missing"],
};

type Context = AgentContext<unknown, ModelState>;
type Turn = TurnResult<ModelState, Json>;

/** One turn. Lives for one call of the agent's function: what must outlive it is in the state or in the journal. */
export class ModelTurn {
  readonly #ctx: Context;
  readonly #parts: LoopParts;
  /** The state of the last checkpoint. */
  readonly #before: ModelState;
  #state: ModelState;
  /** The calls of the last reply that have no result yet. */
  #openCalls: readonly ModelToolCall[] = [];

  constructor(ctx: Context, state: ModelState, parts: LoopParts) {
    this.#ctx = ctx;
    this.#before = state;
    this.#state = { ...FIRST_STATE, ...state }; // A session of an older version lacks the newer fields.
    this.#parts = parts;
  }

  async take(): Promise<Turn> {
    const { agent, workspace, isWaiting } = this.#state;
    if (agent === null || workspace === null) return this.#begin();
    if (isWaiting) return this.#awaitRequest(agent);
    return this.#workInterruptibly(agent, workspace);
  }

  /** Works until the turn ends or a person interrupts it. An interruption withdraws what is open, and the conversation waits. */
  async #workInterruptibly(agent: AgentRecord, workspace: WorkspaceFacts): Promise<Turn> {
    if (!agent.isConversation) return this.#work(agent, workspace);
    const ready = this.#ctx.signalReady(INTERRUPT);
    const first = await this.#ctx.select({ turn: this.#work(agent, workspace), ready });
    if (first.key === "turn") return first.value;
    this.#dropInterruptions();
    for (const { id, name } of this.#openCalls)
      this.#append("tool", {
        toolCallId: id,
        name,
        text: INTERRUPTED_CALL,
        isError: true,
      } satisfies ToolContent);
    this.#append("user", INTERRUPTED);
    this.#ctx.update({ ...this.#state, isWaiting: true });
    return this.#ctx.checkpoint(undefined, { openTasks: "cancel" });
  }

  #dropInterruptions(): void {
    while (this.#ctx.hasSignal(INTERRUPT)) this.#ctx.takeSignal(INTERRUPT);
  }

  async #begin(): Promise<Turn> {
    const prepared = await this.#ctx.run("prepare", this.#parts.prepare, { retry: PREPARE_RETRY });
    const { workspace, facts, rules } = prepared;
    const isConversation = prepared.agent.isConversation || wantsConversation(this.#ctx.input);
    const agent: AgentRecord = { ...prepared.agent, isConversation };
    this.#change({ agent, workspace, facts, rules });
    this.#append("user", textOf(this.#ctx.input));
    return this.#workInterruptibly(agent, workspace);
  }

  /** Waits for the next request of a conversation. */
  async #awaitRequest(agent: AgentRecord): Promise<Turn> {
    const options = agent.ttlMs === null ? {} : { timeoutMs: agent.ttlMs };
    const given = await this.#ctx.waitForSignal(NEXT_INPUT, options).then(
      (payload) => ({ payload }),
      (error: unknown) => {
        if (HoldfastError.is(error) && error.code === "wait_timed_out") return undefined;
        throw error;
      },
    );
    if (given === undefined) return { done: this.#state.answer };
    this.#dropInterruptions(); // They were for the turn before.
    this.#append("user", textOf(given.payload));
    this.#change({ isWaiting: false, turns: 0, corrections: 0, guard: FRESH_GUARD });
    return this.#next();
  }

  async #work(agent: AgentRecord, workspace: WorkspaceFacts): Promise<Turn> {
    for (let steer; (steer = this.#ctx.takeSignal(STEER)) !== undefined;) this.#append("user", textOf(steer));
    while (this.#ctx.hasSignal(REVOKE_RULES)) {
      this.#ctx.takeSignal(REVOKE_RULES);
      this.#change({ rules: [] });
    }
    const turnsMax = agent.turnsMax ?? LOOP_LIMITS.turns;
    if (this.#state.turns >= turnsMax)
      await this.#askToContinue(agent, `it has made ${this.#state.turns} model calls for this request`);

    const offers = offersOf(this.#parts.capabilities, this.#state.facts);
    const tools = offeredTools(agent, [
      ...this.#parts.tools,
      ...offers.flatMap((offer) => offer.tools ?? []),
    ]);
    const instructions = offers.flatMap((offer) => offer.instructions ?? []);
    const reply = await this.#askModel(agent, systemPrompt(agent, workspace, instructions), tools);
    const content: AssistantContent = { text: reply.text, toolCalls: reply.toolCalls };
    this.#append("assistant", content);
    if (reply.finishReason === "refusal")
      throw new HoldfastError("invalid_output", `the model ${reply.model} refused to continue`, {
        got: reply.text.slice(0, 500),
        fix: "look at the conversation (`holdfast logs`), and start again with another request or model",
      });
    if (reply.toolCalls.length > 0) return this.#carryOut(agent, reply.toolCalls, tools);
    return this.#answerWithoutCalls(agent, reply);
  }

  async #askModel(agent: AgentRecord, system: string, tools: ReadonlyMap<string, Tool>): Promise<ModelReply> {
    // A session continues with the model that answered it last. Only where that cannot be reached, the next of the list is asked.
    const models = [agent.model, ...agent.fallbackModels];
    const last = models.findIndex((model) => model !== null && model === this.#state.model);
    const candidates =
      last < 0 ? [this.#state.model ?? agent.model, ...agent.fallbackModels] : models.slice(last);
    for (const [at, model] of candidates.entries()) {
      try {
        const reply = await this.#ctx.scheduleTask(this.#parts.model, {
          system,
          messages: this.#ctx.conversation(),
          tools: [...tools.values()].map(({ offered }) => offered),
          maxConversationTokens: Math.max(1, this.#state.conversationTokens),
          ...(model === null ? {} : { model }),
        });
        this.#noteReply(reply);
        return reply;
      } catch (error) {
        if (at === candidates.length - 1 || !isUnreachable(error)) throw error;
      }
    }
    throw new Error("unreachable: the last candidate returns or throws");
  }

  #noteReply({ model, usage }: ModelReply): void {
    const spent = this.#state.usage;
    this.#change({
      model,
      turns: this.#state.turns + 1,
      usage: {
        inputTokens: spent.inputTokens + usage.inputTokens,
        outputTokens: spent.outputTokens + usage.outputTokens,
        costMicroUsd: spent.costMicroUsd + (usage.costMicroUsd ?? 0),
      },
    });
  }

  #answerWithoutCalls(agent: AgentRecord, reply: ModelReply): Turn {
    if (reply.finishReason === "length") return this.#continueWith(CUT_OFF);
    const isEmpty = reply.text.trim() === "";
    if (agent.outputSchema === null && !isEmpty) return this.#answer(agent, reply.text);
    const corrections = this.#state.corrections + 1;
    this.#change({ corrections });
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

  /**
   * Carries out the calls of one reply in their order; reading calls that follow each other run beside each other. Every call gets
   * a result, because servers refuse a conversation with a call that has none.
   */
  async #carryOut(
    agent: AgentRecord,
    calls: readonly ModelToolCall[],
    tools: ReadonlyMap<string, Tool>,
  ): Promise<Turn> {
    let stop: string | undefined;
    let output: Json | undefined;
    this.#openCalls = calls;
    for (const group of groupCalls(calls, tools)) {
      const why = this.#whyNot(group[0]?.at ?? 0, output);
      const outcomes = await Promise.all(
        group.map(async ({ call }) =>
          why === undefined ? this.#carryOutOne(agent, call, tools) : notDone(why),
        ),
      );
      for (const [at, { call }] of group.entries()) {
        const outcome = outcomes[at] ?? notDone("it was lost");
        stop ??= this.#keepResult(call, outcome, tools.get(call.name)?.isReading !== true);
        output ??= outcome.output;
      }
    }
    if (output !== undefined) return this.#answer(agent, output);
    if (stop !== undefined) await this.#askToContinue(agent, stop);
    return this.#next();
  }

  /** @returns why no further call of this reply is carried out, if there is a reason. */
  #whyNot(at: number, output: Json | undefined): string | undefined {
    if (output !== undefined) return "the result was given already";
    if (at >= LOOP_LIMITS.callsPerReply)
      return `only ${LOOP_LIMITS.callsPerReply} calls of one reply are carried out`;
    if (this.#ctx.hasSignal(STEER)) return "the user has sent a message in between, which follows";
    return undefined;
  }

  async #carryOutOne(
    agent: AgentRecord,
    call: ModelToolCall,
    tools: ReadonlyMap<string, Tool>,
  ): Promise<CallOutcome> {
    let ready: ReadyCall;
    const tool = tools.get(call.name);
    try {
      if (call.problem !== undefined) throw new HoldfastError("invalid_input", call.problem);
      if (tool === undefined) throw new HoldfastError("invalid_input", unknownTool(call.name, tools));
      ready = tool.prepare(call.input);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "invalid_input") throw error;
      return { text: error.message, isError: true, isInvalid: true };
    }
    const refusal = await this.#whyRefused(agent, tool, ready.subject, call);
    if (refusal !== undefined) return { text: refusal, isError: true };
    return ready.schedule(this.#ctx, addressOf(this.#state.workspace), this.#state.facts);
  }

  /** @returns why the call is refused. */
  async #whyRefused(
    agent: AgentRecord,
    tool: Tool,
    subject: string | null,
    call: ModelToolCall,
  ): Promise<string | undefined> {
    if (agent.planFirst && this.#state.plan === null && !tool.isReading)
      return `${call.name} is not possible yet: call propose_plan, and wait until the plan is approved.`;
    return askPermission(this.#ctx, {
      agent,
      tool,
      subject,
      input: call.input,
      folder: this.#state.workspace?.root,
      rules: () => this.#state.rules,
      keep: (rule) => this.#change({ rules: [...this.#state.rules, rule] }),
      projectRules: this.#parts.projectRules,
    });
  }

  /** @returns why to stop, if this result is a reason to. */
  #keepResult(call: ModelToolCall, outcome: CallOutcome, isChange: boolean): string | undefined {
    const { name, input } = call;
    const verdict = noteCall(this.#state.guard, {
      name,
      input,
      text: outcome.text,
      isValid: outcome.isInvalid !== true,
      isChange,
    });
    this.#change({ guard: verdict.guard, ...outcome.update });
    const text = verdict.warning === undefined ? outcome.text : `${outcome.text}\n${verdict.warning}`;
    const content: ToolContent = { toolCallId: call.id, name, text, isError: outcome.isError };
    this.#append("tool", content);
    this.#openCalls = this.#openCalls.filter((open) => open !== call);
    return verdict.stop;
  }

  /** The request is answered. */
  #answer(agent: AgentRecord, answer: Json): Turn {
    if (!agent.isConversation) return { done: answer };
    this.#ctx.reportProgress({ answer });
    this.#change({ isWaiting: true, answer });
    return this.#next();
  }

  #continueWith(message: string): Turn {
    this.#append("user", message);
    return this.#next();
  }

  /** A limit is reached: a person decides whether the work continues. The wait costs nothing, and what was done stays. */
  async #askToContinue(agent: AgentRecord, why: string): Promise<void> {
    const { approved, reason } = await this.#ctx.requestInput({
      prompt: `Let agent "${agent.name}" continue? It was stopped because ${why}.`,
      details: { turns: this.#state.turns, usage: this.#state.usage },
    });
    if (!approved)
      throw new HoldfastError("limit_exceeded", `agent "${agent.name}" was stopped because ${why}`, {
        ...(reason === undefined ? {} : { got: `the person's reason: ${reason}` }),
        fix: "raise `maxTurns` in the agent's file, or give it smaller requests",
      });
    this.#change({ turns: 0, guard: FRESH_GUARD });
    if (reason !== undefined) this.#append("user", reason);
  }

  /** Ends the turn with the changed fields alone: the record and the facts of a session are stored once. */
  #next(): Turn {
    const before = this.#before;
    const changed = Object.entries(this.#state).filter(
      ([field, value]) => value !== before[field as keyof ModelState],
    );
    return { update: Object.fromEntries(changed) };
  }

  #change(update: Partial<ModelState>): void {
    this.#state = { ...this.#state, ...update };
  }

  #append(role: string, content: unknown): void {
    const entry = { role, content };
    this.#ctx.appendEntry(entry);
    this.#change({ conversationTokens: this.#state.conversationTokens + entryTokens(entry) });
  }
}

interface CallOutcome extends ToolOutcome {
  /** It was the call of no tool, or its arguments were wrong. */
  readonly isInvalid?: boolean;
}

/** The tools of an agent's record, by name. */
function offeredTools(agent: AgentRecord, all: readonly Tool[]): ReadonlyMap<string, Tool> {
  const { tools, deniedTools, outputSchema, planFirst } = agent;
  const isOffered = ({ offered: { name } }: Tool): boolean => {
    if (deniedTools.some((pattern) => matchesName(pattern, name))) return false;
    if (name === "propose_plan") return planFirst;
    return tools === null || tools.some((pattern) => matchesName(pattern, name));
  };
  const offered = all.filter(isOffered);
  const submit = outputSchema === null ? [] : [submitOutput(outputSchema)];
  return new Map([...offered, ...submit].map((tool) => [tool.offered.name, tool]));
}

interface PlacedCall {
  readonly call: ModelToolCall;
  /** Its place in the reply, from 0. */
  readonly at: number;
}

/** Reading calls that follow each other in one group, every other call in one of its own. */
function groupCalls(
  calls: readonly ModelToolCall[],
  tools: ReadonlyMap<string, Tool>,
): readonly PlacedCall[][] {
  const groups: PlacedCall[][] = [];
  let open: PlacedCall[] | undefined;
  for (const [at, call] of calls.entries()) {
    const isReading = tools.get(call.name)?.isReading === true && at !== LOOP_LIMITS.callsPerReply;
    if (isReading && open !== undefined) open.push({ call, at });
    else groups.push((open = [{ call, at }]));
    if (!isReading) open = undefined;
  }
  return groups;
}

/** The model cannot be reached, or not with what this process knows. */
function isUnreachable(error: unknown): boolean {
  if (!HoldfastError.is(error) || error.code !== "task_failed") return false;
  const { code } = (error.cause ?? {}) as { readonly code?: unknown };
  return code === "model_unavailable" || code === "model_auth" || code === "config_invalid";
}

function notDone(why: string): CallOutcome {
  return { text: `Not carried out: ${why}.`, isError: true };
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): string {
  const names = [...tools.keys()].join(", ");
  return `${name.trim() === "" ? "A call without the name of a tool" : `There is no tool "${name.slice(0, 100)}"`}. The tools are: ${names}.`;
}

/** Whether the input asks that the session waits for the next request after each answer, as `holdfast chat` does. */
function wantsConversation(input: unknown): boolean {
  return (
    typeof input === "object" && input !== null && "conversation" in input && input.conversation === true
  );
}

/** A request as the text that the model reads: a text itself, `{ text }`, or JSON. */
function textOf(input: unknown): string {
  if (typeof input === "string") return input;
  const { text, prompt } = (input ?? {}) as { readonly text?: unknown; readonly prompt?: unknown };
  if (typeof text === "string") return text;
  if (typeof prompt === "string") return prompt;
  return JSON.stringify(input ?? "", null, 2);
}
