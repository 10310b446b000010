// `Compaction` keeps a conversation within the context window of its model, by boundaries.
//
//   full conversation ─► summary by the model ─► boundary: request, plan, steps, summary ─► newest entries ─► the work continues
//
//   - A boundary is made between turns, before the model call that would not fit. No call is parted from its
//     result.
//   - The entries before a boundary stay in the session. Logs, forks and exports show both sides.
//   - The request, the plan and the steps come from the session's state, and not from the summary. The texts
//     of skills that the session has read stay word for word, as far as there is room for them.
//   compaction-4. A boundary that frees too little, or follows another one without a tool call in between, is
//       fruitless. After two fruitless boundaries the session pauses, and its resume begins the count again.
//   compaction-5. If the model refuses a request as too long, one boundary is made and the request is
//       repeated. A second refusal in a row counts as fruitless. A conversation that cannot be read for a
//       summary continues without a summary.
//   compaction-6. Results leave room for the request of a summary. A larger result is cut, and its whole text
//       can be read again.

import { HoldfastError } from "@holdfast/core";
import type { AgentRecord } from "../../record/agent-record.ts";
import type { Tool } from "../tools/tool.ts";
import { askModel } from "../turn/model-call.ts";
import type { Turn, TurnDraft } from "../turn/turn-draft.ts";
import { contextLimit, conversationTail } from "./boundary-tasks.ts";
import {
  contextTokens,
  entryBytes,
  FITS_ALWAYS_TOKENS,
  isFull,
  NO_CONTEXT,
  tailBytes,
} from "./context-size.ts";
import { joinWork } from "./earlier-work.ts";
import type { ModelState } from "../model-state.ts";
import type { EarlierWork } from "./boundary-state.ts";

const FRUITLESS_MAX = 2;
const FREED_PART_MIN = 0.25;
const SUMMARY_CHARS_MAX = 24_000;
const TOO_LONG =
  /prompt is too long|context[ _]length|context window|maximum context|too many (?:input )?tokens|input is too long/i;

export class Compaction {
  readonly #draft: TurnDraft;
  readonly #agent: AgentRecord;
  readonly #system: string;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor(draft: TurnDraft, agent: AgentRecord, system: string, tools: ReadonlyMap<string, Tool>) {
    this.#draft = draft;
    this.#agent = agent;
    this.#system = system;
    this.#tools = tools;
  }

  get isDue(): boolean {
    const { context, boundaries } = this.#draft.state;
    if (boundaries.isForced) return true;
    const tokens = contextTokens(context, this.#frameBytes());
    return tokens > FITS_ALWAYS_TOKENS && isFull(tokens, this.#window());
  }

  /** Makes a boundary and ends the turn. */
  async make(): Promise<Turn> {
    const draft = this.#draft;
    const { boundaries } = draft.state;
    if (boundaries.fruitless >= FRUITLESS_MAX) {
      const model = draft.state.model ?? this.#agent.model;
      await draft.ctx.scheduleTask(contextLimit, { agent: this.#agent.name, model });
      draft.change({ boundaries: { ...boundaries, fruitless: 0 } });
    }
    const tokens = contextTokens(draft.state.context, this.#frameBytes());
    const tail = await draft.ctx.scheduleTask(conversationTail, {
      messages: draft.ctx.conversation(),
      bytes: tailBytes(this.#window()),
    });
    const summary = await this.#summarize();
    const leaf = draft.append("assistant", { text: summary ?? "(no summary)", toolCalls: [] });
    const earlier = joinWork(draft.state.earlier, tail, leaf);
    draft.change({ conversationTokens: 0, context: NO_CONTEXT, earlier });
    const text = boundaryText(draft.state, summary, earlier);
    const kept = entryBytes(text) + tail.entries.reduce((sum, { content }) => sum + entryBytes(content), 0);
    const tokensAfter = contextTokens({ counted: 0, addedBytes: kept }, this.#frameBytes());
    draft.append("user", { text, boundary: { number: boundaries.count + 1, tokens, tokensAfter } }, null);
    for (const { role, content } of tail.entries) draft.append(role, content);
    const isFruitless =
      tokens - tokensAfter < tokens * FREED_PART_MIN || (boundaries.count > 0 && boundaries.callsSince === 0);
    draft.change({
      boundaries: {
        count: boundaries.count + 1,
        fruitless: isFruitless ? draft.state.boundaries.fruitless + 1 : 0,
        callsSince: 0,
        isForced: false,
      },
    });
    return draft.next();
  }

  /** compaction-5. Ends the turn if the model has refused the conversation as too long. */
  afterFailure(error: unknown): Turn | undefined {
    if (!isTooLong(error)) return undefined;
    const { boundaries } = this.#draft.state;
    this.#draft.change({ boundaries: { ...boundaries, isForced: true } });
    return this.#draft.next();
  }

  /** @returns nothing when the model gives no text. */
  async #summarize(): Promise<string | undefined> {
    const draft = this.#draft;
    draft.append("user", SUMMARY_REQUEST);
    try {
      // The same beginning as in every other request: a provider charges less for it, and servers want the
      // tools of earlier calls.
      const { text } = await askModel(draft, this.#agent, this.#system, this.#tools);
      return text.trim() === "" ? undefined : text.slice(0, SUMMARY_CHARS_MAX);
    } catch (error) {
      if (isTooLong(error)) return undefined;
      throw error;
    }
  }

  #window(): number {
    return this.#draft.windowTokens(this.#agent);
  }

  #frameBytes(): number {
    return entryBytes(this.#system) + entryBytes([...this.#tools.values()].map(({ offered }) => offered));
  }
}

function isTooLong(error: unknown): boolean {
  if (!HoldfastError.is(error) || error.code !== "task_failed") return false;
  const { cause } = error;
  return HoldfastError.is(cause) && cause.code === "invalid_input" && TOO_LONG.test(cause.message);
}

const SUMMARY_REQUEST = [
  "(The conversation is about to become longer than you can read. Write a summary of it for yourself: it replaces all but the newest messages.",
  "Use these headings, and leave out what does not matter any more: Goal, Decided, Done, Open, Facts, Files. Name paths, commands, numbers and error texts",
  "exactly. Say what is done, so that it is not done again. Answer with the summary alone, and call no tool.)",
].join("\n");

const NO_SUMMARY = "(There is no summary: the conversation could not be read by the model any more.)";

/** The first message after the boundary. Its parts beside the summary come from the state of the session. */
function boundaryText(
  { request, plan, todos }: Pick<ModelState, "request" | "plan" | "todos">,
  summary: string | undefined,
  { files, calls }: EarlierWork,
): string {
  const steps = todos.map(({ text, status }) => `- [${status}] ${text}`).join("\n");
  const results = calls
    .map(({ id, name, about, chars }) => `- ${id}: ${[name, about].join(" ").trim()}, ${chars} characters`)
    .join("\n");
  return [
    section("The request", request),
    section("The plan, which a person has approved", plan ?? ""),
    section("Your list of steps", steps),
    section("Your summary of the conversation until here", summary ?? NO_SUMMARY),
    section("Files that you have written", files.map((file) => `- ${file}`).join("\n")),
    section("Earlier results that read_result can read again, by call_id", results),
    "The newest messages follow. Continue the work.",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function section(title: string, text: string): string {
  return text.trim() === "" ? "" : `# ${title}\n\n${text}`;
}
