// `ClaudeMessages`: the messages of Claude Code's stream-json output as events of the port.
//
//   - A turn is judged by `is_error` and `terminal_reason`. A failed call of the API says `subtype:
//     "success"`.
//   - Usage is counted once: by message id while the turn runs, and at its end what the result reports beyond
//     that. `total_cost_usd` and `modelUsage` are sums over all turns of a session and are not used.
//   - Unknown messages are ignored (external-agent-protocol-6).
//   - A message with `parent_tool_use_id` is of the sub-agent that this call has started, and of nobody else.
//   - A program that opens another session than that of the turn does not know the session. The messages
//     before it opens one are the repeated history of an earlier turn.

import type { TokenUsage } from "@holdfast/core";

import type { Author, ExternalEnd } from "../../session/external-agent-protocol.ts";
import { epochMs } from "../../session/limits/agent-limit.ts";
import {
  countOf,
  fieldsOf,
  listOf,
  partsText,
  recordedResult,
  textOr,
  type Fields,
} from "../../session/fields.ts";
import type { DialogueTurn } from "../lines/line-dialogue.ts";
import { planStepsOf } from "../lines/plan-steps.ts";

/** The types of messages that say what the agent does. */
const CONVERSATION: ReadonlySet<string> = new Set(["assistant", "user", "stream_event"]);

export class ClaudeMessages {
  hasStarted = false;
  readonly #turn: Pick<DialogueTurn, "agentSessionId" | "unpriced" | "emit" | "end">;
  /** The last word of the program on the limits of its account. */
  #limit: Pick<Extract<ExternalEnd, { type: "error" }>, "cause" | "resetsAt"> = {};
  /** The messages that are being streamed, by the tool call of the sub-agent that writes it. */
  readonly #open = new Map<unknown, { readonly id: string; readonly model: string; usage: Fields }>();
  /** The messages since the last result whose usage was not streamed. */
  readonly #unstreamed = new Set<string>();
  /** The messages whose usage was reported. */
  readonly #counted = new Set<string>();
  /** The usage that was reported since the last result, by model. */
  readonly #reported = new Map<string, Counts>();

  constructor(turn: Pick<DialogueTurn, "agentSessionId" | "unpriced" | "emit" | "end">) {
    this.#turn = turn;
  }

  message(message: Fields): void {
    // These messages are the repeated history of an earlier turn.
    if (!this.hasStarted && CONVERSATION.has(textOr(message["type"], ""))) return;
    switch (message["type"]) {
      case "system":
        return this.#system(message);
      case "stream_event":
        return this.#streamed(fieldsOf(message["event"]), message);
      case "assistant":
        return this.#assistant(message);
      case "user":
        return this.#user(message);
      case "result":
        return this.#result(message);
      case "rate_limit_event":
        return this.#limited(fieldsOf(message["rate_limit_info"]));
      default: // Unknown messages are ignored.
    }
  }

  #system(message: Fields): void {
    if (message["subtype"] === "init") {
      if (this.hasStarted) return; // It comes again with every turn of the process.
      const { agentSessionId } = this.#turn;
      if (textOr(message["session_id"], agentSessionId) !== agentSessionId)
        return this.#turn.end({ type: "unknown_session" });
      this.hasStarted = true;
      this.#turn.emit({ type: "session_started", model: textOr(message["model"], "unknown"), boundId: null });
    } else if (message["subtype"] === "api_retry") {
      const { attempt, max_retries: max, error } = message;
      this.#turn.emit({
        type: "notice",
        text: `the model's API failed (${textOr(error, "no reason given")}); attempt ${String(attempt)} of ${String(max)}`,
      });
    } else if (message["subtype"] === "permission_denied") {
      this.#turn.emit({
        type: "notice",
        text: `permission denied for ${textOr(message["tool_name"], "a tool")}`,
      });
    } else if (message["subtype"] === "session_writes_lost") {
      this.#turn.emit({ type: "notice", text: "the agent could not write its own session file" });
    }
  }

  #streamed(event: Fields, { parent_tool_use_id: parent = null }: Fields): void {
    switch (event["type"]) {
      case "message_start": {
        const { id, model, usage } = fieldsOf(event["message"]);
        const message = { id: textOr(id, ""), model: textOr(model, "unknown"), usage: fieldsOf(usage) };
        this.#open.set(parent, message);
        return;
      }
      case "content_block_delta": {
        const { type, text } = fieldsOf(event["delta"]);
        // The text of a sub-agent is no answer.
        if (parent === null && type === "text_delta" && typeof text === "string")
          this.#turn.emit({ type: "text_delta", text });
        return;
      }
      case "message_delta": {
        const open = this.#open.get(parent);
        if (open !== undefined) open.usage = { ...open.usage, ...withoutNulls(fieldsOf(event["usage"])) };
        return;
      }
      case "message_stop": {
        const open = this.#open.get(parent);
        this.#open.delete(parent);
        if (open === undefined) return;
        this.#unstreamed.delete(open.id);
        this.#counted.add(open.id);
        this.#use(open.model, countsOf(open.usage), open.id === "" ? [] : [open.id]);
      }
    }
  }

  #assistant(message: Fields): void {
    const cause = CAUSES[textOr(message["error"], "")];
    if (cause !== undefined) this.#limit = { ...this.#limit, cause };
    const { id: messageId, content } = fieldsOf(message["message"]);
    if (typeof messageId === "string" && !this.#counted.has(messageId)) this.#unstreamed.add(messageId);
    const author = authorOf(message);
    for (const block of listOf(content)) {
      const { type, text, thinking, id, name, input } = block;
      if (type === "text" && typeof text === "string" && text !== "")
        this.#turn.emit({ type: "text", text, ...author });
      if (type === "thinking" && typeof thinking === "string" && thinking !== "")
        this.#turn.emit({ type: "thinking", text: thinking, ...author });
      if (type !== "tool_use" || typeof id !== "string") continue;
      this.#turn.emit({ type: "tool_call", id, name: textOr(name, ""), input: fieldsOf(input), ...author });
      const steps = name === "TodoWrite" ? planStepsOf(fieldsOf(input)["todos"], "content") : undefined;
      if (steps !== undefined) this.#turn.emit({ type: "plan", steps, ...author });
    }
  }

  #user(message: Fields): void {
    const { content } = fieldsOf(message["message"]);
    const author = authorOf(message);
    for (const block of listOf(content)) {
      const { type, tool_use_id: id, is_error: isError, content: result } = block;
      if (type !== "tool_result" || typeof id !== "string") continue;
      this.#turn.emit({
        type: "tool_result",
        id,
        text: typeof result === "string" ? recordedResult(result) : partsText(result),
        isError: isError === true,
        ...author,
      });
    }
  }

  #result(message: Fields): void {
    this.#countRest(message);
    if (message["queued_turn_count"] !== undefined && message["queued_turn_count"] !== 0) return;
    const end = endOf(message);
    this.#turn.end(end.type === "error" ? { ...end, ...this.#limit } : end);
  }

  /** A call that was permitted later, such as by another model, takes the refusal back. */
  #limited({ status, resetsAt }: Fields): void {
    this.#limit =
      status === "rejected"
        ? { cause: "quota", ...(typeof resetsAt === "number" ? { resetsAt: epochMs(resetsAt) } : {}) }
        : {};
  }

  #countRest(message: Fields): void {
    const rest = [...this.#unstreamed, ...[...this.#open.values()].map(({ id }) => id)];
    const delta = Object.entries(fieldsOf(message["model_usage_since_last_result"]));
    const names = new Set(delta.map(([model]) => model));
    // A model may have another name in the result than in its messages.
    let unnamed = [...this.#reported]
      .filter(([model]) => !names.has(model))
      .reduce((sum, [, one]) => sumOf(sum, one), NOTHING);
    for (const [model, usage] of delta) {
      const total = countsOf(fieldsOf(usage));
      const known = this.#reported.get(model);
      this.#use(model, restOf(total, known ?? unnamed), rest);
      if (known === undefined) unnamed = restOf(unnamed, total);
    }
    if (delta.length === 0 && this.#reported.size === 0)
      this.#use("unknown", countsOf(fieldsOf(message["usage"])), rest);
    this.#reported.clear();
    this.#counted.clear();
    this.#unstreamed.clear();
  }

  #use(model: string, counts: Counts, recordIds: readonly string[]): void {
    const usage = claudeUsage(model, counts, this.#turn.unpriced.length === 0);
    if (usage === undefined) return;
    this.#reported.set(model, sumOf(this.#reported.get(model) ?? NOTHING, counts));
    this.#turn.emit({ type: "usage", usage, recordIds });
  }
}

/** @returns `undefined` where nothing was used. */
export function claudeUsage(
  model: string,
  { input, output, cacheRead, cacheWrite }: Counts,
  isPriced: boolean,
): TokenUsage | undefined {
  if (input + output + cacheRead + cacheWrite === 0) return undefined;
  return {
    // Behind another server a name says nothing of a price.
    model: `${isPriced ? "anthropic" : "claude-code"}/${model}`,
    inputTokens: input + cacheRead + cacheWrite,
    outputTokens: output,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
  };
}

function authorOf({ parent_tool_use_id: parent }: Fields): Author {
  return typeof parent === "string" && parent !== "" ? { parentCallId: parent } : {};
}

/** The errors of a message that a person repairs. */
const CAUSES: Readonly<Record<string, "quota" | "auth_required">> = {
  authentication_failed: "auth_required",
  billing_error: "quota",
};

export interface Counts {
  /** Without those of the cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

const NOTHING: Counts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function sumOf(a: Counts, b: Counts): Counts {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

function restOf(total: Counts, known: Counts): Counts {
  return {
    input: Math.max(0, total.input - known.input),
    output: Math.max(0, total.output - known.output),
    cacheRead: Math.max(0, total.cacheRead - known.cacheRead),
    cacheWrite: Math.max(0, total.cacheWrite - known.cacheWrite),
  };
}

function endOf(message: Fields): ExternalEnd {
  const { result, is_error: isError, terminal_reason: reason, subtype, errors } = message;
  const texts = Array.isArray(errors) ? errors.filter((one) => typeof one === "string") : [];
  if (texts.some((text) => text.startsWith("No conversation found"))) return { type: "unknown_session" };
  if (reason === "aborted_streaming" || reason === "aborted_tools") return { type: "aborted" };
  // The limit that Holdfast gave to the program. Holdfast's own count says whether the budget is used up.
  if (reason === "budget_exhausted" || subtype === "error_max_budget_usd") return { type: "aborted" };
  // Some versions give the refusal as the answer.
  if (/^Claude AI usage limit reached\|\d+$/.test(textOr(result, "")))
    return { type: "error", message: textOr(result, "") };
  if (isError !== true && (reason === undefined || reason === "completed"))
    return { type: "answered", text: textOr(result, "") };
  const why = [textOr(reason, textOr(subtype, "error")), ...texts, textOr(result, "")].filter(
    (text) => text !== "",
  );
  return { type: "error", message: why.join(": ") };
}

/** Both forms: that of the API, and that of the sums by model. */
export function countsOf(usage: Fields): Counts {
  return {
    input: countOf(usage["input_tokens"] ?? usage["inputTokens"]),
    output: countOf(usage["output_tokens"] ?? usage["outputTokens"]),
    cacheRead: countOf(usage["cache_read_input_tokens"] ?? usage["cacheReadInputTokens"]),
    cacheWrite: countOf(usage["cache_creation_input_tokens"] ?? usage["cacheCreationInputTokens"]),
  };
}

/** Without the fields that are `null`: a later report leaves out what did not change. */
function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
