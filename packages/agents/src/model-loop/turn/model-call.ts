// The model call of a turn: the candidates in their order, and the cost of the reply.

import { HoldfastError } from "@holdfast/core";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { ModelReply } from "../../models/model-provider.ts";
import type { ModelTaskInput } from "../../models/model-task.ts";
import type { Tool } from "../tools/tool.ts";
import type { TurnDraft } from "./turn-draft.ts";

/** Asks the model, or the next one of the agent's list where a model cannot be reached. */
export async function askModel(
  draft: TurnDraft,
  agent: AgentRecord,
  system: string,
  tools: ReadonlyMap<string, Tool>,
): Promise<ModelReply> {
  // A session continues with the model that answered it last. Only where that cannot be reached, the next of
  // the list is asked.
  const models = [agent.model, ...agent.fallbackModels];
  const last = models.findIndex((model) => model !== null && model === draft.state.model);
  const candidates =
    last < 0 ? [draft.state.model ?? agent.model, ...agent.fallbackModels] : models.slice(last);
  const request = {
    system,
    messages: draft.ctx.conversation(),
    tools: [...tools.values()].map(({ offered }) => offered),
    maxConversationTokens: Math.max(1, draft.state.conversationTokens),
    ...(agent.resumeAtReset === true || asksToResume(draft.ctx.input) ? { resumeAtReset: true } : {}),
  };
  let limited: string | null | undefined;
  for (const [at, model] of candidates.entries()) {
    const isLast = at === candidates.length - 1;
    // The wait is for the first model that is only over its limit. The last of the list need not be reached
    // again for that.
    const orFail = !isLast || limited !== undefined ? { orFail: true } : {};
    try {
      return await ask(draft, { ...request, ...(model === null ? {} : { model }), ...orFail });
    } catch (error) {
      if (!isUnreachable(error)) throw error;
      if (limited === undefined && isPausing(error)) limited = model;
      if (isLast && limited === undefined) throw error;
    }
  }
  // Each model of the list is out of reach. The session pauses for the first that a person or time can bring
  // back.
  return ask(draft, { ...request, ...(limited == null ? {} : { model: limited }) });
}

/**
 * Whether the call that started the session asked that it continues at the reset of a usage limit, whatever
 * the agent file says.
 */
function asksToResume(input: unknown): boolean {
  return (
    typeof input === "object" && input !== null && "resumeAtReset" in input && input.resumeAtReset === true
  );
}

async function ask(draft: TurnDraft, request: ModelTaskInput): Promise<ModelReply> {
  const reply = await draft.ctx.scheduleTask(draft.parts.model, request);
  noteReply(draft, reply);
  return reply;
}

function noteReply(draft: TurnDraft, { model, usage }: ModelReply): void {
  const spent = draft.state.usage;
  draft.change({
    model,
    turns: draft.state.turns + 1,
    context: { counted: usage.inputTokens + usage.outputTokens, addedBytes: 0 },
    usage: {
      inputTokens: spent.inputTokens + usage.inputTokens,
      outputTokens: spent.outputTokens + usage.outputTokens,
      costMicroUsd: spent.costMicroUsd + (usage.costMicroUsd ?? 0),
    },
  });
}

/** The model cannot be reached, not with what this process knows, or not before its usage limit is reset. */
function isUnreachable(error: unknown): boolean {
  const code = causeOf(error);
  return code === "model_unavailable" || code === "config_invalid" || isPausing(error);
}

/** The model can be reached again once a limit is reset, or a key is valid. */
function isPausing(error: unknown): boolean {
  const code = causeOf(error);
  return code === "quota_exceeded" || code === "model_auth";
}

function causeOf(error: unknown): unknown {
  if (!HoldfastError.is(error) || error.code !== "task_failed") return undefined;
  return HoldfastError.is(error.cause) ? error.cause.code : undefined; // A model's own error may have any code.
}
