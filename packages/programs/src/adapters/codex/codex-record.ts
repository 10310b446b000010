// `codexRecordedCalls`: the usage in the rollout of a Codex thread. Pure. Observed with 0.171.
//
//   - A call is named by its thread and the tokens that the thread has used with it, which only grow. It is
//     so named in the rollout, twice, and in the report to us, which comes when the tools of the call have
//     ended.
//   - A request follows a prompt, and the last result of the tools of a call. It is open until its usage is
//     recorded. The results of an interrupted turn are followed by none.
//   - A sub-agent has a rollout of its own, which is not read: its calls are not known.

import type { RecordedCalls } from "../../session/external-agent-protocol.ts";
import { HELD_OPENAI } from "../../session/keys/codex-keys.ts";
import { countOf, fieldsOf, textOr, type Fields } from "../../session/fields.ts";

/** The tools that start a sub-agent. */
const SUB_AGENTS: readonly unknown[] = ["spawn_agent", "spawn_agents_on_csv"];

/** A model by the name that our table of prices knows. */
export function codexModel(provider: unknown, model: unknown, unpriced: readonly string[]): string {
  // Behind another server a name says nothing of a price.
  const held = unpriced.length === 0 ? "openai" : "other";
  const name = textOr(provider, "codex");
  return `${name === HELD_OPENAI ? held : name}/${textOr(model, "unknown")}`;
}

export function codexRecordId(threadId: string, inputTokens: unknown, outputTokens: unknown): string {
  return `${threadId}:${countOf(inputTokens) + countOf(outputTokens)}`;
}

export function codexRecordedCalls(
  lines: readonly Fields[],
  from: number,
  unpriced: readonly string[],
): RecordedCalls {
  const record = new Rollout(unpriced);
  lines.forEach((line, at) => record.line(textOr(line["type"], ""), fieldsOf(line["payload"]), at >= from));
  const { calls, isAsked, hasSubAgents } = record;
  return { calls, isComplete: !isAsked && !hasSubAgents };
}

class Rollout {
  readonly calls: RecordedCalls["calls"][number][] = [];
  /** A request may be open. */
  isAsked = false;
  hasSubAgents = false;
  readonly #unpriced: readonly string[];
  readonly #known = new Set<string>();
  readonly #tools = new Set<unknown>();
  #threadId = "";
  #provider: unknown;
  #model: unknown;

  constructor(unpriced: readonly string[]) {
    this.#unpriced = unpriced;
  }

  /** @param isNew whether its calls are asked for. Lines before say which thread and model it is. */
  line(type: string, payload: Fields, isNew: boolean): void {
    if (type === "session_meta") {
      this.#threadId = textOr(payload["id"], "");
      this.#provider = payload["model_provider"];
    }
    if (type === "turn_context") this.#model = payload["model"];
    if (type === "token_usage_record") this.#use(payload["thread_token_usage"], payload["usage"], isNew);
    if (type === "response_item" && isNew) this.#item(payload);
    if (type !== "event_msg") return;
    if (payload["type"] === "thread_settings_applied")
      this.#provider = fieldsOf(payload["thread_settings"])["model_provider_id"] ?? this.#provider;
    const { total_token_usage: total, last_token_usage: last } = fieldsOf(payload["info"]);
    if (payload["type"] === "token_count") this.#use(total, last, isNew);
  }

  #use(total: unknown, used: unknown, isNew: boolean): void {
    const { input_tokens: input, output_tokens: output, cached_input_tokens: cached } = fieldsOf(used);
    const sum = fieldsOf(total);
    const recordId = codexRecordId(this.#threadId, sum["input_tokens"], sum["output_tokens"]);
    if (countOf(input) + countOf(output) === 0 || this.#known.has(recordId)) return;
    this.#known.add(recordId);
    if (!isNew) return;
    this.isAsked = false;
    const usage = {
      model: codexModel(this.#provider, this.#model, this.#unpriced),
      inputTokens: countOf(input),
      outputTokens: countOf(output),
      cacheReadTokens: countOf(cached),
    };
    this.calls.push({ recordId, usage });
  }

  #item({ type, role, name, output, content, call_id: id }: Fields): void {
    const kind = textOr(type, "");
    if (kind === "message") {
      const isAbort = JSON.stringify(content ?? "").includes("<turn_aborted>");
      if (role !== "assistant" && !isAbort) this.isAsked = this.#tools.size === 0;
    } else if (kind.endsWith("_output")) {
      this.#tools.delete(id);
      const isAbort = /aborted by user\W*$/.test(JSON.stringify(output ?? ""));
      if (!isAbort) this.isAsked = this.#tools.size === 0;
    } else if (kind.endsWith("_call") && id !== undefined) {
      this.#tools.add(id);
      this.hasSubAgents ||= SUB_AGENTS.includes(name);
    }
  }
}
