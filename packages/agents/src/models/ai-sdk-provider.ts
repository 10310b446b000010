// A model provider over the provider packages of the Vercel AI SDK. Only this file calls them.
//
// It calls the language model interface (version 4) of these packages and not `streamText` of the package
// `ai`. Loops, retries and tools are durable ones of ours, and loading `ai` takes as long as starting Node.
//
//   - One request. Retries are recorded by the task and survive the process.
//   - Silence ends the attempt. The time-outs begin with the request, so that a server that never answers
//     cannot hold a call forever.
//   - A reply is complete or an error. An error in the stream, or a stream that ends early, never counts as a
//     short reply.
//   ai-sdk-provider-4. A reply is bounded: the provider closes the connection to a server that never stops.

import { clearTimeout, setTimeout } from "node:timers";
import { defined, encodeJson, LimitError, LIMITS, toError } from "@holdfast/core";
import type {
  LanguageModelV4,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";

import { modelError, unavailable, type ErrorSource } from "./model-errors.ts";
import { toPrompt } from "./model-messages.ts";
import type {
  FinishReason,
  ModelObserver,
  ModelProvider,
  ModelReply,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  ModelUsage,
  ProviderData,
} from "./model-provider.ts";
import { costMicroUsd, isPriced, type PriceList } from "./prices.ts";
import { MODEL_OUTPUT_TOKENS } from "./request-size.ts";

/** How long a model may take, in milliseconds. */
export interface ModelTimeouts {
  /** From the request to the first thing the model says. */
  readonly firstOutputMs: number;
  /** From one thing it says to the next. */
  readonly silenceMs: number;
  /** From the request to the end of the reply. */
  readonly totalMs: number;
}

const MODEL_TIMEOUTS: ModelTimeouts = { firstOutputMs: 120_000, silenceMs: 60_000, totalMs: 900_000 };

/** Options of `aiSdkProvider`. */
export interface AiSdkProviderOptions {
  /** `anthropic`, `openai`, …; decides nothing but names and provider options. */
  readonly provider: string;
  readonly model: string;
  /**
   * Loads the model with the first call, because loading a package takes time. With `secrets` it is called
   * for each call, and `secret` gives their values.
   */
  readonly load: (secret: (name: string) => string) => Promise<LanguageModelV4>;
  readonly description: string;
  readonly isScripted?: boolean;
  /** Where the prices of the model are found. */
  readonly prices?: PriceList;
  readonly keyVariable?: string;
  /** Names of declared secrets that `load` reads. */
  readonly secrets?: readonly string[];
  /** Texts that errors may not quote, such as a key that `load` has from elsewhere. */
  readonly redact?: readonly string[];
  readonly timeouts?: Partial<ModelTimeouts>;
}

/** Any model of the AI SDK as a provider of ours. */
export function aiSdkProvider(options: AiSdkProviderOptions): ModelProvider {
  return new AiSdkProvider(options);
}

class AiSdkProvider implements ModelProvider {
  readonly provider: string;
  readonly model: string;
  readonly isScripted: boolean;
  readonly secrets: readonly string[];
  readonly #options: AiSdkProviderOptions;
  readonly #timeouts: ModelTimeouts;
  #loading: Promise<LanguageModelV4> | undefined;

  constructor(options: AiSdkProviderOptions) {
    this.provider = options.provider;
    this.model = options.model;
    this.isScripted = options.isScripted === true;
    this.secrets = options.secrets ?? [];
    this.#options = options;
    this.#timeouts = { ...MODEL_TIMEOUTS, ...options.timeouts };
  }

  get isPriced(): boolean {
    const { prices, model } = this.#options;
    return prices !== undefined && isPriced(prices, model);
  }

  describe(): string {
    return this.#options.description;
  }

  costOf(usage: Omit<ModelUsage, "costMicroUsd">): number | undefined {
    const { prices, model } = this.#options;
    return prices === undefined ? undefined : costMicroUsd(prices, model, usage);
  }

  async generate(request: ModelRequest, observer: ModelObserver): Promise<ModelReply> {
    const keys = [...(this.#options.redact ?? [])];
    let silence: SilenceWatch | undefined;
    try {
      const model = await this.#load((name) => {
        const key = observer.secret(name);
        keys.push(key);
        return key;
      });
      silence = new SilenceWatch(this.#timeouts, observer.signal);
      return await this.#generate(model, request, observer.onText, silence);
    } catch (error) {
      silence?.hangUp(); // The connection may still have output, which nobody reads.
      observer.signal.throwIfAborted();
      if (silence?.reason !== undefined) throw unavailable(this.#source(keys), silence.reason);
      throw modelError(error, this.#source(keys));
    } finally {
      silence?.end();
    }
  }

  /** @param keys what the call has read, which no error may quote. */
  #source(keys: readonly string[]): ErrorSource {
    const { keyVariable } = this.#options;
    return { model: `${this.provider}/${this.model}`, keyVariable, secrets: keys };
  }

  async #generate(
    model: LanguageModelV4,
    request: ModelRequest,
    onText: ModelObserver["onText"],
    silence: SilenceWatch,
  ): Promise<ModelReply> {
    const tools = request.tools.map(functionTool);
    const { stream } = await model.doStream({
      prompt: markLast([
        { role: "system", content: request.system, ...CACHED },
        ...toPrompt(request.messages, TAKES_IMAGES.test(model.provider)),
      ]),
      ...(tools.length === 0 ? {} : { tools, toolChoice: { type: "auto" } }),
      maxOutputTokens: request.maxOutputTokens ?? MODEL_OUTPUT_TOKENS,
      abortSignal: silence.signal,
      // Conversations are ours to keep.
      providerOptions: { openai: { store: false } },
    });
    const collected = new ReplyCollector(request, onText);
    await readParts(stream, silence.signal, (part) => {
      if (part.type !== "stream-start") silence.received(); // It is the SDK's own and says nothing about the server.
      collected.add(part);
    });
    return this.#price(collected.reply());
  }

  async #load(secret: ModelObserver["secret"]): Promise<LanguageModelV4> {
    if (this.secrets.length > 0) return this.#options.load(secret); // No key is kept from one call to the next.
    this.#loading ??= this.#options.load(secret);
    try {
      return await this.#loading;
    } catch (error) {
      this.#loading = undefined; // It may be there the next time.
      throw error;
    }
  }

  #price(reply: Omit<ModelReply, "model">): ModelReply {
    const cost = this.costOf(reply.usage);
    const usage = cost === undefined ? reply.usage : { ...reply.usage, costMicroUsd: cost };
    return { ...reply, usage, model: `${this.provider}/${this.model}` };
  }
}

/** The wires of the AI SDK that send images in results of calls. The others would send base64 as text. */
const TAKES_IMAGES = /^(?:anthropic|openai\.responses|google)/;

/** Anthropic bills what it has seen before at a tenth, where it is marked. Others do not read the mark. */
const CACHED = { providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } } as const;

function markLast(messages: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const last = messages.at(-1);
  return last === undefined ? messages : [...messages.slice(0, -1), { ...last, ...CACHED }];
}

function functionTool({ name, description, inputSchema }: ModelTool): LanguageModelV4FunctionTool {
  return {
    type: "function",
    name,
    description,
    inputSchema: inputSchema as LanguageModelV4FunctionTool["inputSchema"],
  };
}

/** Its signal fires when the task is aborted, or when nothing was heard for too long, and then says why. */
class SilenceWatch {
  readonly #controller = new AbortController();
  readonly #timeouts: ModelTimeouts;
  readonly #task: AbortSignal;
  readonly #total: NodeJS.Timeout;
  readonly #tooLong: string;
  readonly #endsAt: number;
  #timer: NodeJS.Timeout;
  #hasSpoken = false;
  #reason: string | undefined;

  /** @param task the signal of the task. */
  constructor(timeouts: ModelTimeouts, task: AbortSignal) {
    this.#timeouts = timeouts;
    this.#task = task;
    this.#endsAt = performance.now() + timeouts.totalMs;
    this.#tooLong = `its answer took longer than ${timeouts.totalMs} ms`;
    this.#total = this.#start(timeouts.totalMs, this.#tooLong);
    this.#timer = this.#start(timeouts.firstOutputMs, `it said nothing for ${timeouts.firstOutputMs} ms`);
    if (task.aborted) this.hangUp();
    else task.addEventListener("abort", this.hangUp, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  /** A flood may keep timers from firing, so the whole time is looked at here as well. */
  received(): void {
    if (performance.now() > this.#endsAt) this.#expire(this.#tooLong);
    if (this.#hasSpoken) return void this.#timer.refresh();
    this.#hasSpoken = true;
    clearTimeout(this.#timer);
    this.#timer = this.#start(
      this.#timeouts.silenceMs,
      `it fell silent for ${this.#timeouts.silenceMs} ms in its answer`,
    );
  }

  readonly hangUp = (): void => {
    this.#controller.abort(this.#task.reason);
  };

  end(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#total);
    this.#task.removeEventListener("abort", this.hangUp);
  }

  #start(ms: number, reason: string): NodeJS.Timeout {
    return setTimeout(() => this.#expire(reason), ms);
  }

  #expire(reason: string): void {
    this.#reason ??= reason;
    this.hangUp();
  }
}

/**
 * Reads the parts of a stream. An abort ends the reading even where the stream itself does not notice it.
 * The stream's iterator, with a race against the abort, would take five promises for a part.
 */
async function readParts<T>(
  stream: ReadableStream<T>,
  signal: AbortSignal,
  take: (part: T) => void,
): Promise<void> {
  const reader = stream.getReader();
  const onAbort = (): void => void reader.cancel(signal.reason).catch(() => {}); // Answers a reading that waits.
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return;
      take(value);
    }
  } catch (error) {
    onAbort();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Puts the parts of a stream together. */
class ReplyCollector {
  readonly #onText: (text: string) => void;
  readonly #knownIds: Set<string>;
  readonly #toolCalls: ModelToolCall[] = [];
  /** Thoughts by the id that the SDK gives them, in their order. */
  readonly #thoughts = new Map<string, { text: string; data?: ProviderData }>();
  #text = "";
  /**
   * All characters received, thoughts and partial tool calls included, because the SDK keeps the latter as
   * well.
   */
  #chars = 0;
  #finish: { readonly reason: FinishReason; readonly usage: ModelUsage } | undefined;

  constructor(request: ModelRequest, onText: (text: string) => void) {
    this.#onText = onText;
    this.#knownIds = new Set(request.messages.flatMap((entry) => toolCallIds(entry.content)));
  }

  add(part: LanguageModelV4StreamPart): void {
    this.#bound(part); // ai-sdk-provider-4.
    switch (part.type) {
      case "text-delta":
        this.#text += part.delta;
        if (part.delta !== "") this.#onText(part.delta);
        break;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#addThought(part);
        break;
      case "tool-call":
        this.#toolCalls.push({
          id: this.#uniqueId(part.toolCallId),
          name: part.toolName,
          ...readInput(part.input),
          ...defined({ data: part.providerMetadata }),
        });
        break;
      case "finish":
        this.#finish = { reason: finishReason(part.finishReason.unified), usage: readUsage(part.usage) };
        break;
      case "error":
        throw part.error;
      default: // Sources, beginnings and ends: nothing of a reply.
    }
  }

  /** A signature comes with any of the parts of its thought, mostly the last. */
  #addThought(
    part: Extract<LanguageModelV4StreamPart, { readonly type: `reasoning-${string}`; readonly id: string }>,
  ): void {
    const thought = this.#thoughts.get(part.id) ?? { text: "" };
    if (part.type === "reasoning-delta") thought.text += part.delta;
    if (part.providerMetadata !== undefined) thought.data = part.providerMetadata;
    this.#thoughts.set(part.id, thought);
  }

  #bound(part: LanguageModelV4StreamPart): void {
    if ("delta" in part) this.#chars += part.delta.length;
    if (this.#chars <= LIMITS.payloadChars) return;
    throw new LimitError("payloadChars", `the answer is longer than ${LIMITS.payloadChars} characters`, {
      fix: "ask for less, or use another model: this one does not stop",
    });
  }

  reply(): Omit<ModelReply, "model"> {
    if (this.#finish === undefined) throw new Error("the answer ended before it was complete");
    const { reason, usage } = this.#finish;
    const thoughts = [...this.#thoughts.values()].filter(
      ({ text, data }) => text !== "" || data !== undefined,
    );
    const shown = thoughts.length === 0 ? {} : { thoughts };
    return { text: this.#text, ...shown, toolCalls: this.#toolCalls, finishReason: reason, usage };
  }

  /** Some servers number the calls of every reply from the beginning, and others give calls no number. */
  #uniqueId(given: string): string {
    const base = given.trim() === "" ? "call" : given;
    let id = base;
    for (let n = 2; this.#knownIds.has(id); n++) id = `${base}_${n}`;
    this.#knownIds.add(id);
    return id;
  }
}

function toolCallIds(content: unknown): string[] {
  const calls = (content as { toolCalls?: unknown } | null | undefined)?.toolCalls;
  return Array.isArray(calls) ? calls.map((call: { id?: unknown }) => String(call.id)) : [];
}

/** @param text the JSON of the arguments; empty for a tool that takes none. */
function readInput(text: string): Pick<ModelToolCall, "input" | "problem"> {
  const input = text.trim() === "" ? {} : parseJson(text);
  if (typeof input === "object" && input !== null && !Array.isArray(input)) {
    const problem = depthProblem(input);
    return { input: problem === undefined ? (input as Record<string, unknown>) : {}, ...problem };
  }
  return { input: {}, problem: `the arguments are not a JSON object: ${text.slice(0, 200)}` };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The levels of JSON around the arguments: a reply, an entry, a task's input. */
const LEVELS_AROUND = 8;

/**
 * The problem goes to the model like any other mistake; recording such arguments would fail the task instead.
 */
function depthProblem(input: object): Pick<ModelToolCall, "problem"> | undefined {
  let value: unknown = input;
  for (let i = 0; i < LEVELS_AROUND; i++) value = [value];
  try {
    encodeJson(value, "the arguments");
    return undefined;
  } catch (error) {
    return { problem: toError(error).message };
  }
}

function finishReason(reason: string): FinishReason {
  switch (reason) {
    case "stop":
      return "stop";
    case "tool-calls":
      return "tool_calls";
    case "length":
      return "length";
    case "content-filter":
      return "refusal";
    case "error":
    case "interrupted":
      throw new Error("the answer ended before it was complete");
    default:
      return "other";
  }
}

/** The SDK's input tokens are all of them, those read from and written to a cache included. */
function readUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): ModelUsage {
  return {
    inputTokens: count(inputTokens.total),
    outputTokens: count(outputTokens.total),
    cacheReadTokens: count(inputTokens.cacheRead),
    cacheWriteTokens: count(inputTokens.cacheWrite),
  };
}

function count(tokens: number | undefined): number {
  return tokens === undefined || !Number.isFinite(tokens) ? 0 : Math.max(0, Math.round(tokens));
}
