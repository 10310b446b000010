// The model call of a turn: the candidates in their order, and the cost of the reply.

import { HoldfastError } from "@holdfast/core";

import type { AgentRecord } from "../../agent-files/agent-record.ts";
import type { ModelReply } from "../../models/model-provider.ts";
import type { Tool } from "../tool.ts";
import type { TurnDraft } from "./turn-draft.ts";

/** Asks the model, or the next one of the agent's list where a model cannot be reached. */
export async function askModel(
  draft: TurnDraft,
  agent: AgentRecord,
  system: string,
  tools: ReadonlyMap<string, Tool>,
): Promise<ModelReply> {
  // A session continues with the model that answered it last. Only where that cannot be reached, the next of the list is asked.
  const models = [agent.model, ...agent.fallbackModels];
  const last = models.findIndex((model) => model !== null && model === draft.state.model);
  const candidates =
    last < 0 ? [draft.state.model ?? agent.model, ...agent.fallbackModels] : models.slice(last);
  for (const [at, model] of candidates.entries()) {
    try {
      const reply = await draft.ctx.scheduleTask(draft.parts.model, {
        system,
        messages: draft.ctx.conversation(),
        tools: [...tools.values()].map(({ offered }) => offered),
        maxConversationTokens: Math.max(1, draft.state.conversationTokens),
        ...(model === null ? {} : { model }),
      });
      noteReply(draft, reply);
      return reply;
    } catch (error) {
      if (at === candidates.length - 1 || !isUnreachable(error)) throw error;
    }
  }
  throw new Error("unreachable: the last candidate returns or throws");
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

/** The model cannot be reached, or not with what this process knows. */
function isUnreachable(error: unknown): boolean {
  if (!HoldfastError.is(error) || error.code !== "task_failed") return false;
  const { code } = (error.cause ?? {}) as { readonly code?: unknown };
  return code === "model_unavailable" || code === "model_auth" || code === "config_invalid";
}
