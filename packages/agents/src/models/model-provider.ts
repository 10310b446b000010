// The port for models (`ModelProvider`): one call, from a conversation to a reply.
//
// The port is narrow so that the library behind it can be replaced. Keys stay behind the port as well: a
// provider can be printed and put into JSON without showing a key.

import type { ConversationEntry } from "@holdfast/core";

/** A tool as it is offered to a model. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** A request to a model. */
export interface ModelRequest {
  readonly system: string;
  /** Entries of roles `user`, `assistant` and `tool`, and of EVENT_ROLE; their contents are the types below. */
  readonly messages: readonly Pick<ConversationEntry, "role" | "content">[];
  /** The tools that are offered to the model. */
  readonly tools: readonly ModelTool[];
  readonly maxOutputTokens?: number;
}

/** The role of entries for people and programs alone, such as the start of a script. No model reads them. */
export const EVENT_ROLE = "event";

/** Data of a provider that belongs to a part of a reply and is sent back with it, such as a signature. By provider. */
export type ProviderData = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A thought of a model. Its provider wants it back, unchanged, with the calls that followed from it. */
export interface ModelThought {
  readonly text: string;
  readonly data?: ProviderData;
}

/** Content of an entry of role `assistant`. */
export interface AssistantContent {
  readonly text: string;
  /** Absent where the model showed none. */
  readonly thoughts?: readonly ModelThought[];
  readonly toolCalls: readonly ModelToolCall[];
}

/** Content of an entry of role `tool`: the result of one call. */
export interface ToolContent {
  readonly toolCallId: string;
  readonly name: string;
  readonly text: string;
  readonly isError: boolean;
  /** The characters of the whole result, where `text` is a part of it. */
  readonly total?: number;
  /** Images of the result, which `text` names. */
  readonly images?: readonly ResultImage[];
}

/** An image in the result of a call. */
export interface ResultImage {
  /** Such as `image/png`. */
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** A call of a tool in the reply of a model. */
export interface ModelToolCall {
  /** Unique in its conversation, also where the server repeats its ids. */
  readonly id: string;
  /** As the model wrote it: it may be empty, or the name of no tool. */
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The arguments were no JSON object; `input` is empty. */
  readonly problem?: string;
  readonly data?: ProviderData;
}

/** Why a reply ended. `length`: it was cut off at `maxOutputTokens`. */
export type FinishReason = "stop" | "tool_calls" | "length" | "refusal" | "other";

/** The tokens of a call of a model, as integers. The cost is absent when the price of the model is not known. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costMicroUsd?: number;
}

/** The reply of a model. */
export interface ModelReply {
  readonly text: string;
  readonly thoughts?: readonly ModelThought[];
  readonly toolCalls: readonly ModelToolCall[];
  /** Why the reply ended. */
  readonly finishReason: FinishReason;
  readonly usage: ModelUsage;
  /** `provider/model`. */
  readonly model: string;
}

/** The surroundings of one request: the signal of its end, a place for its text, and the keys. */
export interface ModelObserver {
  readonly signal: AbortSignal;
  /** Called with the text while it comes. Must not throw. */
  readonly onText: (text: string) => void;
  /** The value of one of the provider's `secrets`, as `task.secret` gives it. Never stored by a provider. */
  readonly secret: (name: string) => string;
}

/** The port for models: one request, one reply. */
export interface ModelProvider {
  readonly provider: string;
  readonly model: string;
  /** Replies come from a script, not from a model. */
  readonly isScripted: boolean;
  /** Names of declared secrets that `generate` reads by `observer.secret`; a model task declares them. */
  readonly secrets?: readonly string[];
  /** Whether the cost of a call is known. */
  readonly isPriced: boolean;
  /** The cost of a call in millionths of a dollar, rounded up, if it is known. */
  costOf?(usage: Omit<ModelUsage, "costMicroUsd">): number | undefined;
  /** The model and the source of its key, for people. */
  describe(): string;
  /**
   * One attempt; retries are the task's.
   *
   * @throws HoldfastError `model_auth` (a wrong key; final), `model_unavailable` (worth another attempt, with
   *   `retryAfterMs` when the server named a time), `invalid_input` and `config_invalid` (the request cannot
   *   succeed).
   */
  generate(request: ModelRequest, observer: ModelObserver): Promise<ModelReply>;
}
