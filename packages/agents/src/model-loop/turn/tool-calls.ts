// `ToolCalls`: the tool calls of one reply, from the check of the arguments to the results in the
// conversation.
//
//   - Every call gets a result, because servers refuse a conversation with a call that has none.
//   - Calls that follow each other run beside each other when they only read. Results are kept in the order
//     of the calls.

import { HoldfastError, type Json } from "@holdfast/core";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { ModelToolCall } from "../../models/model-provider.ts";
import { keepResult } from "../compaction/keep-result.ts";
import { Hooks } from "../hooks/hooks.ts";
import { declaredEffect, withDeclaredEffect } from "../tools/declared-effect.ts";
import { noteCall } from "../loop-guard.ts";
import { askPermission } from "../../permissions/ask-permission.ts";
import { hiddenPaths } from "../../permissions/permissions.ts";
import { ruledPath } from "../../permissions/ruled-path.ts";
import type { CapabilityFacts } from "../model-state.ts";
import { HIDDEN_PATHS, PATH_MASK, type ReadyCall, type Tool, type ToolOutcome } from "../tools/tool.ts";
import { addressOf } from "../workspace-facts.ts";
import { noteSuccess, whyNotYet } from "./offered-tools.ts";
import { LOOP_LIMITS, STEER, type TurnDraft } from "./turn-draft.ts";
import type { TurnFiles } from "./turn-files.ts";

/** Tools whose calls wait for a person. */
const ASKING_TOOLS: ReadonlySet<string> = new Set(["ask_user", "propose_plan"]);

/** The result of all calls of one reply. */
interface CarriedOut {
  /** Why to stop, if there is a reason. */
  readonly stop: string | undefined;
  /** The output of the session, if a call gave it. */
  readonly output: Json | undefined;
}

export class ToolCalls {
  readonly #draft: TurnDraft;
  readonly #agent: AgentRecord;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #hooks: Hooks;
  readonly #files: TurnFiles;

  constructor(draft: TurnDraft, agent: AgentRecord, tools: ReadonlyMap<string, Tool>, files: TurnFiles) {
    this.#draft = draft;
    this.#files = files;
    this.#agent = agent;
    this.#tools = tools;
    this.#hooks = new Hooks(draft, agent);
  }

  /**
   * Carries out the calls of one reply in their order; reading calls that follow each other run beside each
   * other. Every call gets a result, because servers refuse a conversation with a call that has none.
   */
  async carryOut(calls: readonly ModelToolCall[]): Promise<CarriedOut> {
    let stop: string | undefined;
    let output: Json | undefined;
    this.#draft.openCalls = calls;
    for (const group of groupCalls(calls, this.#tools)) {
      const why = this.#whyNot(group[0]?.at ?? 0, output);
      await this.#files.own(); // The session may be a fork since the call before.
      const outcomes = await Promise.all(
        group.map(async ({ call }) => (why === undefined ? this.#carryOutOne(call) : notDone(why))),
      );
      for (const [at, { call }] of group.entries()) {
        const outcome = outcomes[at] ?? notDone("it was lost");
        stop ??= this.#keepResult(call, outcome, this.#tools.get(call.name)?.isReading !== true);
        output ??= outcome.output;
      }
    }
    return { stop, output };
  }

  /** @returns why no further call of this reply is carried out, if there is a reason. */
  #whyNot(at: number, output: Json | undefined): string | undefined {
    if (output !== undefined) return "the result was given already";
    if (at >= LOOP_LIMITS.callsPerReply)
      return `only ${LOOP_LIMITS.callsPerReply} calls of one reply are carried out`;
    if (this.#draft.ctx.hasSignal(STEER)) return "the user has sent a message in between, which follows";
    return undefined;
  }

  async #carryOutOne(call: ModelToolCall): Promise<CallOutcome> {
    let ready: ReadyCall;
    const tool = this.#tools.get(call.name);
    try {
      if (call.problem !== undefined) throw new HoldfastError("invalid_input", call.problem);
      if (tool === undefined) throw new HoldfastError("invalid_input", unknownTool(call.name, this.#tools));
      ready = tool.prepare(call.input);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "invalid_input") throw error;
      return { text: error.message, isError: true, isInvalid: true };
    }
    const { id, name, input } = call;
    const hooked = { id, name, input, tool, subject: ready.subject };
    const { action, reason } = await this.#hooks.beforeTool(hooked);
    if (action === "block") return { text: `Not carried out: a hook blocked it. ${reason}`, isError: true };
    const refusal = await this.#whyRefused(tool, ready.subject, call, action === "ask");
    if (refusal !== undefined) return { text: refusal, isError: true };
    await this.#files.own();
    const { workspace, facts } = this.#draft.state;
    const mask = workspace?.mask === undefined ? {} : { [PATH_MASK]: { ...workspace.mask } };
    const effect = declaredEffect(this.#agent, call.name);
    if (effect !== "read" && (!tool.isReading || tool.startsWork === true)) this.#files.noteChange();
    const ctx = withDeclaredEffect(this.#draft.ctx, effect);
    const hiding = this.#hiding(tool, ready.subject);
    const outcome = await ready.schedule(
      ctx,
      addressOf(workspace),
      { ...facts, ...hiding, ...mask },
      call.id,
    );
    const added = await this.#hooks.afterTool(hooked, outcome);
    return added.length === 0 ? outcome : { ...outcome, text: [outcome.text, ...added].join("\n") };
  }

  /** @returns why the call is refused. */
  async #whyRefused(
    tool: Tool,
    subject: string | null,
    call: ModelToolCall,
    isAskedByHook: boolean,
  ): Promise<string | undefined> {
    const changes = !tool.isReading || tool.startsWork === true;
    if (this.#agent.planFirst && this.#draft.state.plan === null && changes)
      return `${call.name} is not possible yet: call propose_plan, and wait until the plan is approved.`;
    const notYet = whyNotYet(call.name, this.#agent, this.#draft.state.succeeded);
    if (notYet !== undefined) return notYet;
    return askPermission(this.#draft.ctx, {
      agent: this.#agent,
      isAskedByHook,
      tool: { ...tool, isMasked: this.#draft.state.workspace?.mask !== undefined },
      subject,
      input: call.input,
      folder: this.#draft.state.workspace?.root,
      rules: () => this.#draft.state.rules,
      keep: (rule) => this.#draft.change({ rules: [...this.#draft.state.rules, rule] }),
      projectRules: this.#draft.parts.projectRules,
    });
  }

  /** The fact that keeps files out of the results of a tool for folders (permissions-9). */
  #hiding(tool: Tool, subject: string | null): CapabilityFacts {
    if (tool.subjectKind !== "path" || !tool.isReading || subject === null) return {};
    const { workspace, rules } = this.#draft.state;
    const given = ruledPath(subject, workspace?.root ?? ".");
    const hidden = hiddenPaths([...this.#agent.permissions, ...rules], tool, given);
    return hidden.length === 0 ? {} : { [HIDDEN_PATHS]: hidden };
  }

  /** @returns why to stop, if this result is a reason to. */
  #keepResult(call: ModelToolCall, outcome: CallOutcome, isChange: boolean): string | undefined {
    const { name, input } = call;
    const verdict = noteCall(this.#draft.state.guard, {
      name,
      input,
      text: outcome.text,
      isValid: outcome.isInvalid !== true,
      isChange,
      asksPerson: ASKING_TOOLS.has(name),
    });
    const { boundaries } = this.#draft.state;
    const { succeeded, opened } = outcome.isError
      ? { succeeded: this.#draft.state.succeeded, opened: [] }
      : noteSuccess(name, this.#agent, this.#draft.state.succeeded);
    this.#draft.change({
      guard: verdict.guard,
      succeeded,
      boundaries: { ...boundaries, callsSince: boundaries.callsSince + 1 },
      ...outcome.update,
    });
    const text = [
      outcome.text,
      ...opened.map((tool) => `(${tool} can be called now.)`),
      ...(verdict.warning === undefined ? [] : [verdict.warning]),
    ].join("\n");
    const { isError, images } = outcome;
    const shown = images === undefined ? {} : { images };
    keepResult(this.#draft, this.#agent, call, { toolCallId: call.id, name, text, isError, ...shown });
    this.#draft.openCalls = this.#draft.openCalls.filter((open) => open !== call);
    return verdict.stop;
  }
}

interface CallOutcome extends ToolOutcome {
  /** It was the call of no tool, or its arguments were wrong. */
  readonly isInvalid?: boolean;
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

function notDone(why: string): CallOutcome {
  return { text: `Not carried out: ${why}.`, isError: true };
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): string {
  const names = [...tools.keys()].join(", ");
  return `${name.trim() === "" ? "A call without the name of a tool" : `There is no tool "${name.slice(0, 100)}"`}. The tools are: ${names}.`;
}
