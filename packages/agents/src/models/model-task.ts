// The durable task that calls a model.

import {
  HoldfastError,
  PauseError,
  type ConversationEntry,
  type RetryPolicy,
  type TaskCost,
} from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";
import { z } from "zod";

import { isUnbilled, outage } from "./model-errors.ts";
import { EVENT_ROLE, type ModelProvider, type ModelReply } from "./model-provider.ts";
import { entryTokens, frameTokens, MODEL_INPUT_TOKENS, MODEL_OUTPUT_TOKENS } from "./request-size.ts";

/**
 * A provider, or a function that finds one. `wanted` is the session's model so far, as `provider/model`. A
 * session that began with a real model must not continue with a scripted one because the key is missing in
 * another terminal. The function is called before each call, and for the call's worst case.
 */
export type ModelSource = ModelProvider | ((wanted: string | undefined) => ModelProvider);

type Message = Pick<ConversationEntry, "role" | "content">;

/** A schema of each entry would take a part of each turn that grows with the conversation. */
function areMessages(given: unknown): boolean {
  return Array.isArray(given) && given.length > 0 && given.every(isMessage);
}

function isMessage(given: unknown): boolean {
  return typeof given === "object" && given !== null && "role" in given && typeof given.role === "string";
}

const tool = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
});

export const modelInput = z.strictObject({
  system: z.string(),
  /** Schedule it with `ctx.conversation()`: a reference is recorded, and the handler finds the entries in its place. */
  messages: z.unknown().refine(areMessages, "expected entries with a `role` and a `content`, at least one"),
  tools: z.array(tool).default([]),
  maxOutputTokens: z.int().min(1).default(MODEL_OUTPUT_TOKENS),
  /**
   * The most tokens that `messages` may have (`entryTokens`). A budget reserves this many, and the task
   * refuses more before the call.
   */
  maxConversationTokens: z.int().min(1).default(MODEL_INPUT_TOKENS),
  /** The model of the session so far. */
  model: z.string().optional(),
  /** A usage limit or refused credentials fail the task. Without it they pause the session. */
  orFail: z.boolean().optional(),
  /** A session that is paused for a usage limit continues without a person when the limit is reset. */
  resumeAtReset: z.boolean().optional(),
});

/** The input of the task. `messages` may be a reference to the conversation. */
export type ModelTaskInput = Omit<z.input<typeof modelInput>, "messages"> & { readonly messages: unknown };

/**
 * Two minutes of back-off in all, in addition to the time that the server asks for. A task cannot pause its
 * session in its last attempt, so an outage pauses the session in the one before.
 */
const RETRY: RetryPolicy = {
  maxAttempts: 10,
  initialDelayMs: 500,
  maxDelayMs: 30_000,
  nonRetryable: ["model_auth", "quota_exceeded", "config_invalid", "invalid_input", "policy_denied", "usage"],
};

/** Options of `modelTask`. */
export interface ModelTaskOptions {
  readonly retry?: RetryPolicy;
  /** Names of the secrets that the providers of a `ModelSource` function need; a provider names its own. */
  readonly secrets?: readonly string[];
}

/** The task `model`: a conversation in, a reply out. Text is streamed, usage reported; what it may cost is told before. */
export function modelTask(source: ModelSource, options: ModelTaskOptions = {}) {
  const own = typeof source === "function" ? undefined : source.secrets;
  const retry = { ...RETRY, ...options.retry };
  return defineTask<ModelTaskInput, ModelReply>({
    name: "model",
    secrets: options.secrets ?? own ?? [],
    description: "Ask a language model to continue a conversation",
    retry,
    cost: (given) => worstCase(given, providerFor(source, given.model)),
    run: async (given, task) => {
      const { model: wanted, maxConversationTokens, orFail, resumeAtReset, ...parsed } = parseInput(given);
      const messages = (parsed.messages as readonly Message[])
        .filter(({ role }) => role !== EVENT_ROLE)
        .map(({ role, content }): Message => ({ role, content }));
      const request = { ...parsed, messages };
      refuseLonger(messages, maxConversationTokens);
      let provider: ModelProvider | undefined;
      try {
        provider = findProvider(source, wanted);
        const observer = {
          signal: task.signal,
          onText: (text: string) => task.streamToken(text),
          secret: (name: string) => task.secret(name),
        };
        const reply = await provider.generate(request, observer);
        task.reportUsage({ model: reply.model, ...reply.usage });
        return reply;
      } catch (error) {
        const model = provider === undefined ? (wanted ?? "") : nameOf(provider);
        if (provider === undefined || isUnbilled(error))
          task.reportUsage({ model, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 });
        const isOutage = HoldfastError.is(error) && error.code === "model_unavailable";
        const isPausing = isOutage && orFail !== true && task.attempt + 1 >= (retry.maxAttempts ?? Infinity);
        if (isPausing) throw outage(error, model);
        throw PauseError.is(error) ? asWanted(error, { orFail, resumeAtReset }) : error;
      }
    },
  });
}

interface AtPause {
  readonly orFail: boolean | undefined;
  readonly resumeAtReset: boolean | undefined;
}

/** A pause as the caller wants it: as a failure, or with what the user said of the reset. */
function asWanted(
  { code, message, fix, pause }: PauseError,
  { orFail, resumeAtReset }: AtPause,
): HoldfastError {
  const details = fix === undefined ? {} : { fix };
  if (orFail === true) return new HoldfastError(code, message, details);
  if (pause.reason !== "quota" || resumeAtReset !== true)
    return new PauseError(code, message, { ...details, pause });
  return new PauseError(code, message, { ...details, pause: { ...pause, resumeAtReset } });
}

/** The provider for an estimate. An attempt that finds none costs nothing, and says itself what is missing. */
function providerFor(source: ModelSource, wanted: string | undefined): ModelProvider | undefined {
  try {
    return findProvider(source, wanted);
  } catch {
    return undefined;
  }
}

function findProvider(source: ModelSource, wanted: string | undefined): ModelProvider {
  return typeof source === "function" ? source(wanted) : source;
}

function nameOf({ provider, model }: ModelProvider): string {
  return `${provider}/${model}`;
}

/** The worst case of one attempt: the largest input, and the longest reply. */
function worstCase(given: ModelTaskInput, provider: ModelProvider | undefined): TaskCost {
  if (provider === undefined) return { maxTokens: 0, maxCostMicroUsd: 0 };
  const { system, messages, tools = [], maxOutputTokens = MODEL_OUTPUT_TOKENS } = given;
  const { maxConversationTokens = MODEL_INPUT_TOKENS } = given;
  const conversation = Array.isArray(messages)
    ? (messages as Message[]).reduce((sum, message) => sum + entryTokens(message), 0)
    : maxConversationTokens;
  const inputTokens = frameTokens(system, tools) + conversation;
  const usage = { inputTokens, outputTokens: maxOutputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const costs = [usage, { ...usage, cacheWriteTokens: inputTokens }].flatMap(
    (one) => provider.costOf?.(one) ?? [],
  );
  return {
    model: nameOf(provider),
    maxTokens: inputTokens + maxOutputTokens,
    maxOutputTokens,
    ...(costs.length === 0 ? {} : { maxCostMicroUsd: Math.max(...costs) }),
  };
}

/** The reservation for an attempt must cover all that the attempt uses. */
function refuseLonger(messages: readonly Message[], max: number): void {
  const tokens = messages.reduce((sum, message) => sum + entryTokens(message), 0);
  if (tokens <= max) return;
  throw new HoldfastError("invalid_input", "the conversation is longer than the model task was told", {
    got: `up to ${tokens} tokens`,
    expected: `at most ${max} (maxConversationTokens)`,
    fix: "add up `entryTokens` of its entries, or leave maxConversationTokens out",
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
