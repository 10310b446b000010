// The durable task that calls a model.

import { HoldfastError, type RetryPolicy } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";
import { z } from "zod";

import type { ModelProvider, ModelReply } from "./model-provider.ts";

/**
 * A provider, or how to find one. `wanted` is the model of the session so far, as `provider/model`: a session that began
 * with a real model must not go on with a scripted one because the key is missing in another terminal.
 */
export type ModelSource =
  | ModelProvider
  | ((wanted: string | undefined) => ModelProvider | Promise<ModelProvider>);

const entry = z.object({ role: z.string(), content: z.unknown() });
const tool = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
});

export const modelInput = z.strictObject({
  system: z.string(),
  /** Schedule it with `ctx.conversation()`: a reference is recorded, and the handler finds the entries in its place. */
  messages: z.array(entry).min(1),
  tools: z.array(tool).default([]),
  maxOutputTokens: z.int().min(1).optional(),
  /** The model of the session so far. */
  model: z.string().optional(),
});

/** What is scheduled: `messages` may be a reference to the conversation. */
export type ModelTaskInput = Omit<z.input<typeof modelInput>, "messages"> & { readonly messages: unknown };

/** Two minutes of back-off in all, and whatever time the server asks for. */
const RETRY: RetryPolicy = {
  maxAttempts: 10,
  initialDelayMs: 500,
  maxDelayMs: 30_000,
  nonRetryable: ["model_auth", "config_invalid", "invalid_input", "policy_denied", "usage"],
};

/** The task `model`: a conversation in, a reply out. Text is streamed, usage reported. */
export function modelTask(source: ModelSource, options: { readonly retry?: RetryPolicy } = {}) {
  return defineTask<ModelTaskInput, ModelReply>({
    name: "model",
    description: "Ask a language model to continue a conversation",
    retry: { ...RETRY, ...options.retry },
    run: async (given, task) => {
      const { model: wanted, maxOutputTokens, ...request } = parseInput(given);
      const provider = typeof source === "function" ? await source(wanted) : source;
      const reply = await provider.generate(
        { ...request, ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }) },
        { signal: task.signal, onText: (text) => task.streamToken(text) },
      );
      task.reportUsage({ model: reply.model, ...reply.usage });
      return reply;
    },
  });
}

/** Here and not in the definition, whose schema would also be the type of what is scheduled: a reference. */
function parseInput(given: unknown): z.output<typeof modelInput> {
  const parsed = modelInput.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new HoldfastError(
    "invalid_input",
    `the input of the model task is not right: ${z.prettifyError(parsed.error)}`,
  );
}
