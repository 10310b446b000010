import { appendFileSync } from "node:fs";
import { defineAgent, defineTask, TaskFailedError, type AgentContext } from "holdfast";
import { modelTask, resolveModel, type ModelTool, type ModelToolCall } from "holdfast/agents";
import { z } from "zod";

const TURNS_MAX = 20;
const SYSTEM =
  "You answer customers of a lamp shop. Look at an order before you speak about it. Refund only what was delivered broken.";

/** A call of your model. Its reply is recorded, so a resumed session asks no question of the model twice. */
const model = modelTask(() => {
  const found = resolveModel(process.env);
  if (found === undefined) throw new Error("set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL");
  return found;
});

const findOrder = defineTask({
  name: "find_order",
  input: z.object({ id: z.string() }),
  run: ({ id }) => ({ id, item: "a brass lamp", state: "delivered", euros: 49 }),
});

const refund = defineTask({
  name: "refund",
  input: z.object({ id: z.string(), euros: z.number().positive() }),
  // The service takes the key of a repeated call for the same refund.
  effect: "keyed",
  run: ({ id, euros }, { idempotencyKey }) => {
    appendFileSync("refunds.log", `${euros} EUR for ${id} (${idempotencyKey})\n`);
    return "refunded";
  },
});

interface Offer {
  readonly description: string;
  readonly fields: Readonly<Record<string, "string" | "number">>;
  /** A person allows each call. */
  readonly asks?: boolean;
}

/** The tools of the model, by the names of the tasks that they run. */
const TOOLS: Readonly<Record<string, Offer>> = {
  find_order: { description: "Shows an order by its id.", fields: { id: "string" } },
  refund: {
    description: "Gives money back for an order.",
    fields: { id: "string", euros: "number" },
    asks: true,
  },
};
const OFFERED: ModelTool[] = Object.entries(TOOLS).map(([name, { description, fields }]) => {
  const properties = Object.fromEntries(Object.entries(fields).map(([field, type]) => [field, { type }]));
  return { name, description, inputSchema: { type: "object", properties, required: Object.keys(fields) } };
});

export const assistant = defineAgent({
  name: "assistant",
  tasks: [model, findOrder, refund],
  async run(ctx, question: string) {
    ctx.appendEntry({ role: "user", content: question });
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const request = { system: SYSTEM, messages: ctx.conversation(), tools: OFFERED };
      const { text, toolCalls } = await ctx.scheduleTask(model, request);
      ctx.appendEntry({ role: "assistant", content: { text, toolCalls } });
      if (toolCalls.length === 0) return text;
      for (const call of toolCalls) {
        const content = { toolCallId: call.id, name: call.name, ...(await answerOf(ctx, call)) };
        ctx.appendEntry({ role: "tool", content });
      }
    }
    throw new Error(`the model has called tools for ${TURNS_MAX} turns`);
  },
});

export default assistant;

/** The result of a call, which the model reads. A mistake of the model is a result, too. */
async function answerOf(ctx: AgentContext, call: ModelToolCall): Promise<{ text: string; isError: boolean }> {
  const tool = Object.hasOwn(TOOLS, call.name) ? TOOLS[call.name] : undefined;
  if (tool === undefined) return { text: `there is no tool ${call.name}`, isError: true };
  if (tool.asks) {
    const details = { input: call.input };
    const { approved, reason } = await ctx.requestInput({ prompt: `Allow ${call.name}?`, details });
    if (!approved) return { text: `refused: ${reason ?? "no reason was given"}`, isError: true };
  }
  try {
    const output = await ctx.scheduleTask(call.name, call.input);
    return { text: JSON.stringify(output), isError: false };
  } catch (error) {
    if (!TaskFailedError.is(error)) throw error;
    return { text: error.message, isError: true };
  }
}
