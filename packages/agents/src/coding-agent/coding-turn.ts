// One turn of the coding agent. The first turn inspects the repository and runs its tests. Every other turn is a model call, the tool calls
// that it asks for and their results, or it ends the work. The rules of a turn are in `../coding-agent.ts`.

import { HoldfastError, type Approval } from "@holdfast/core";
import type { AgentContext, TurnResult } from "@holdfast/runtime";

import type {
  AssistantContent,
  ModelReply,
  ModelTool,
  ModelToolCall,
  ToolContent,
} from "../models/model-provider.ts";
import type { modelTask } from "../models/model-task.ts";
import { entryTokens } from "../models/request-size.ts";
import { REPEATABLE, type ShellOutput } from "../tasks/shell-task.ts";
import type { WorkspaceTasks } from "../tasks/workspace-tasks.ts";
import {
  CODING_LIMITS,
  type CodingAgentOptions,
  type CodingInput,
  type CodingLimits,
  type CodingReport,
  type CodingState,
  type Finish,
  type Plan,
} from "./coding-session.ts";
import {
  codingTools,
  FINISH,
  finishInput,
  PROPOSE_PLAN,
  proposePlanInput,
  type CodingTool,
  type ToolOutcome,
} from "./coding-tools.ts";
import type { inspectRepositoryTask, RepositoryFacts } from "./inspect-repository.ts";
import { noteCall, noteIdleReply } from "../model-loop/loop-guard.ts";
import { cutText, parseArguments } from "../model-loop/tools/tool.ts";
import { renderCommand } from "../model-loop/tools/workspace-tools.ts";
import {
  ASK_FOR_PLAN,
  ASK_TO_CONTINUE,
  CUT_OFF,
  firstMessage,
  planRefused,
  systemPrompt,
  testsStillFail,
} from "./prompts.ts";

type Context = AgentContext<CodingInput, CodingState>;
type Turn = TurnResult<CodingState, CodingReport>;

export type CodingTasks = WorkspaceTasks & {
  readonly inspect: ReturnType<typeof inspectRepositoryTask>;
  readonly model: ReturnType<typeof modelTask>;
};

/** One turn. Lives for one call of the agent's function: what must outlive it is in the state or in the journal. */
export class CodingTurn {
  readonly #ctx: Context;
  readonly #tasks: CodingTasks;
  readonly #options: CodingAgentOptions;
  readonly #limits: CodingLimits;
  #state: CodingState;

  constructor(ctx: Context, state: CodingState, tasks: CodingTasks, options: CodingAgentOptions) {
    this.#ctx = ctx;
    this.#state = state;
    this.#tasks = tasks;
    this.#options = options;
    this.#limits = { ...CODING_LIMITS, ...options.limits };
  }

  async take(): Promise<Turn> {
    const { repository } = this.#state;
    if (repository === null) return this.#begin();
    const exhausted = this.#exhausted();
    if (exhausted !== undefined) return this.#stop(exhausted);
    return this.#act(repository);
  }

  // ---- the first turn ----------------------------------------------------------------------------------------------

  async #begin(): Promise<Turn> {
    const { task, testCommand } = this.#ctx.input;
    const found = await this.#ctx.scheduleTask(this.#tasks.inspect, { ...this.#workspace });
    const repository = testCommand === undefined ? found : { ...found, testCommand };
    this.#state = { ...this.#state, repository };
    const tests =
      repository.testCommand === undefined ? undefined : await this.#runTests(repository.testCommand);
    if (task === undefined && tests?.isPassed === true) {
      return { done: this.#report("nothing_to_do", "All tests pass already.") };
    }
    if (task === undefined && tests === undefined) {
      throw new HoldfastError(
        "invalid_input",
        `no tests were found in ${repository.root}, and no task was given`,
        {
          fix: 'say how to run the tests or what to do: --input \'{"repo": "...", "testCommand": "...", "task": "..."}\'',
        },
      );
    }
    this.#append({ role: "user", content: firstMessage(task, tests?.text) });
    return { state: this.#state };
  }

  // ---- every other turn --------------------------------------------------------------------------------------------

  async #act(repository: RepositoryFacts): Promise<Turn> {
    const tools = codingTools(this.#tasks, repository.testCommand);
    const reply = await this.#askModel(repository, [
      ...[...tools.values()].map((tool) => tool.offered),
      PROPOSE_PLAN,
      FINISH,
    ]);
    const content: AssistantContent = { text: reply.text, toolCalls: reply.toolCalls };
    this.#append({ role: "assistant", content });
    if (reply.finishReason === "refusal") return this.#stop("the model refused to continue");
    if (reply.toolCalls.length === 0) return this.#answerIdle(reply, repository);
    return this.#carryOut(reply.toolCalls, tools, repository);
  }

  async #askModel(repository: RepositoryFacts, tools: readonly ModelTool[]): Promise<ModelReply> {
    const { model } = this.#state;
    const reply = await this.#ctx.scheduleTask(this.#tasks.model, {
      system: systemPrompt(repository),
      messages: this.#ctx.conversation(),
      tools: [...tools],
      maxConversationTokens: this.#state.conversationTokens,
      ...(model === null ? {} : { model }),
    });
    const { usage } = this.#state;
    this.#state = {
      ...this.#state,
      turns: this.#state.turns + 1,
      model: reply.model,
      usage: {
        inputTokens: usage.inputTokens + reply.usage.inputTokens,
        outputTokens: usage.outputTokens + reply.usage.outputTokens,
        costMicroUsd: usage.costMicroUsd + (reply.usage.costMicroUsd ?? 0),
      },
    };
    return reply;
  }

  /** The model only spoke. While it works, that often means that it thinks it is done. */
  async #answerIdle(reply: ModelReply, repository: RepositoryFacts): Promise<Turn> {
    const verdict = noteIdleReply(this.#state.guard);
    this.#state = { ...this.#state, guard: verdict.guard };
    if (verdict.stop !== undefined) return this.#stop(verdict.stop);
    const { plan } = this.#state;
    if (reply.finishReason === "length") return this.#continueWith(CUT_OFF);
    if (plan === null) return this.#continueWith(ASK_FOR_PLAN);
    if (repository.testCommand === undefined || this.#state.written.length === 0)
      return this.#continueWith(ASK_TO_CONTINUE);
    const tests = await this.#runTests(repository.testCommand);
    if (!tests.isPassed) return this.#continueWith(testsStillFail(tests.text));
    return this.#commit({ summary: reply.text.trim() || plan.summary, commitMessage: plan.summary });
  }

  /**
   * Carries out the calls of one reply in their order; reading calls that follow each other run at once. Every call gets
   * a result, also after the work is done: servers refuse a conversation with a call that has none.
   */
  async #carryOut(
    calls: readonly ModelToolCall[],
    tools: ReadonlyMap<string, CodingTool>,
    repository: RepositoryFacts,
  ): Promise<Turn> {
    const { callsPerReply } = this.#limits;
    const ending: Ending = { turn: undefined };
    for (const group of groupCalls(calls.slice(0, callsPerReply), tools)) {
      const outcomes = await Promise.all(
        group.map(async (call) =>
          ending.turn === undefined
            ? this.#carryOutOne(call, tools, repository, ending)
            : notCarriedOut("the work has ended"),
        ),
      );
      for (const [at, call] of group.entries()) {
        const stop = this.#keepResult(call, outcomes[at] ?? notCarriedOut("it was lost"));
        if (stop !== undefined) ending.turn ??= await this.#stop(stop);
      }
    }
    for (const call of calls.slice(callsPerReply)) {
      this.#keepResult(call, notCarriedOut(`only ${callsPerReply} calls of one reply are carried out`));
    }
    return ending.turn ?? { state: this.#state };
  }

  /** @returns why to stop, if this result is a reason to. */
  #keepResult(call: ModelToolCall, outcome: CallOutcome): string | undefined {
    const { name, input } = call;
    const isChange = outcome.written !== undefined;
    const verdict = noteCall(this.#state.guard, {
      name,
      input,
      text: outcome.text,
      isValid: outcome.isInvalid !== true,
      isChange,
    });
    const written = outcome.written === undefined ? [] : [outcome.written];
    this.#state = {
      ...this.#state,
      guard: verdict.guard,
      written: [...new Set([...this.#state.written, ...written])],
    };
    const text = verdict.warning === undefined ? outcome.text : `${outcome.text}\n${verdict.warning}`;
    const content: ToolContent = { toolCallId: call.id, name, text, isError: outcome.isError };
    this.#append({ role: "tool", content });
    return verdict.stop;
  }

  async #carryOutOne(
    call: ModelToolCall,
    tools: ReadonlyMap<string, CodingTool>,
    repository: RepositoryFacts,
    ending: Ending,
  ): Promise<CallOutcome> {
    try {
      if (call.problem !== undefined) throw new HoldfastError("invalid_input", call.problem);
      if (call.name === PROPOSE_PLAN.name)
        return await this.#proposePlan(parseArguments(call.name, proposePlanInput, call.input), ending);
      if (call.name === FINISH.name)
        return await this.#finish(parseArguments(call.name, finishInput, call.input), repository, ending);
      const tool = tools.get(call.name);
      if (tool === undefined) throw new HoldfastError("invalid_input", unknownTool(call.name, tools));
      const ready = tool.prepare(call.input);
      if (!tool.isReading && this.#state.plan === null) {
        return {
          text: `${call.name} is not possible yet: call propose_plan, and wait until the plan is approved.`,
          isError: true,
        };
      }
      return await ready.schedule(this.#ctx, this.#workspace.workspace);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "invalid_input") throw error;
      return { text: error.message, isError: true, isInvalid: true };
    }
  }

  // ---- the plan and the end ----------------------------------------------------------------------------------------

  async #proposePlan(plan: Plan, ending: Ending): Promise<CallOutcome> {
    if (this.#state.plan !== null)
      return { text: "A plan was approved already. Carry it out.", isError: false };
    const { approved, reason } = await this.#askPerson(plan);
    if (approved) {
      this.#state = { ...this.#state, plan };
      return {
        text: `The plan was approved. Carry it out.${reason === undefined ? "" : ` The person says: ${reason}`}`,
        isError: false,
      };
    }
    this.#state = { ...this.#state, refusals: this.#state.refusals + 1 };
    if (this.#state.refusals >= this.#limits.refusals) {
      const why = reason === undefined ? "" : ` The last reason: ${reason}`;
      ending.turn = {
        done: this.#report(
          "plan_refused",
          `${this.#state.refusals} plans were refused, nothing was changed.${why}`,
        ),
      };
    }
    return { text: planRefused(reason), isError: false };
  }

  #askPerson(plan: Plan): Promise<Approval> {
    const { repository } = this.#state;
    return this.#ctx.requestInput({
      prompt: `Approve this plan for ${repository?.root ?? "the repository"}?`,
      details: {
        plan,
        workspace: repository?.containment ?? null,
        testCommand: repository?.testCommand ?? null,
        model: this.#state.model,
      },
    });
  }

  async #finish(finish: Finish, { testCommand }: RepositoryFacts, ending: Ending): Promise<CallOutcome> {
    if (testCommand !== undefined) {
      const tests = await this.#runTests(testCommand);
      if (!tests.isPassed) return { text: testsStillFail(tests.text), isError: true };
    }
    ending.turn = await this.#commit(finish);
    return { text: "Done: the changes are committed.", isError: false };
  }

  async #commit({ summary, commitMessage }: Finish): Promise<Turn> {
    const { commit, files } = await this.#ctx.scheduleTask(this.#tasks.gitCommit, {
      message: commitMessage,
      newFiles: [...this.#state.written],
      ...(this.#options.author === undefined ? {} : { author: this.#options.author }),
      ...this.#workspace,
    });
    return { done: { ...this.#report("completed", summary), commit: commit ?? null, filesChanged: files } };
  }

  async #stop(reason: string): Promise<Turn> {
    const { changes } = await this.#ctx.scheduleTask(this.#tasks.gitStatus, { ...this.#workspace });
    const left =
      changes.length === 0
        ? "Nothing is changed."
        : "The changes made so far are in the repository, not committed.";
    const report = this.#report("stopped", `Stopped: ${reason}. ${left}`);
    return { done: { ...report, reason, filesChanged: changes.map((change) => change.path) } };
  }

  // ------------------------------------------------------------------------------------------------------------------

  async #runTests(command: string): Promise<{ readonly isPassed: boolean; readonly text: string }> {
    const output: ShellOutput = await this.#ctx.scheduleTask(
      this.#tasks.shell,
      { command, ...this.#workspace },
      { retry: REPEATABLE },
    );
    const isPassed = output.end.type === "exit" && output.end.exitCode === 0;
    return { isPassed, text: cutText(renderCommand(output)) };
  }

  #continueWith(message: string): Turn {
    this.#append({ role: "user", content: message });
    return { state: this.#state };
  }

  #append(entry: { readonly role: string; readonly content: unknown }): void {
    this.#ctx.appendEntry(entry);
    const conversationTokens = this.#state.conversationTokens + entryTokens(entry);
    this.#state = { ...this.#state, conversationTokens };
  }

  /**
   * The agent's own limits, which hold with any budget. The budget reserves a call's worst case before the
   * call.
   */
  #exhausted(): string | undefined {
    const { turns, usage } = this.#state;
    const { turns: turnsMax, tokens } = this.#limits;
    if (turns >= turnsMax) return `the limit of ${turnsMax} model calls is reached`;
    const used = usage.inputTokens + usage.outputTokens;
    return used >= tokens ? `the limit of ${tokens} tokens is reached (${used} used)` : undefined;
  }

  #report(status: CodingReport["status"], summary: string): CodingReport {
    const { turns, model, usage } = this.#state;
    return { status, summary, commit: null, filesChanged: [], turns, model, usage };
  }

  /**
   * The workspace in the input of each task, for an agent that works for several workspaces. It is the
   * absolute path once that is known, so that a process started in another folder finds the same workspace.
   */
  get #workspace(): { readonly workspace?: string } {
    const name = this.#state.repository?.root ?? this.#ctx.input.repo;
    return typeof this.#options.workspace === "function" && name !== undefined ? { workspace: name } : {};
  }
}

interface CallOutcome extends ToolOutcome {
  /** It was the call of no tool, or its arguments were wrong. */
  readonly isInvalid?: boolean;
}

/** How the session ends, once something has decided that it does. */
interface Ending {
  turn: Turn | undefined;
}

/** Reading calls that follow each other in one group, every other call in one of its own. */
function groupCalls(
  calls: readonly ModelToolCall[],
  tools: ReadonlyMap<string, CodingTool>,
): readonly ModelToolCall[][] {
  const groups: ModelToolCall[][] = [];
  let open: ModelToolCall[] | undefined;
  for (const call of calls) {
    const isReading = tools.get(call.name)?.isReading === true;
    if (isReading && open !== undefined) open.push(call);
    else groups.push((open = [call]));
    if (!isReading) open = undefined;
  }
  return groups;
}

function notCarriedOut(why: string): CallOutcome {
  return { text: `Not carried out: ${why}.`, isError: true };
}

function unknownTool(name: string, tools: ReadonlyMap<string, CodingTool>): string {
  const names = [...tools.keys(), PROPOSE_PLAN.name, FINISH.name].join(", ");
  return `${name.trim() === "" ? "A call without the name of a tool" : `There is no tool "${name.slice(0, 100)}"`}. The tools are: ${names}.`;
}
