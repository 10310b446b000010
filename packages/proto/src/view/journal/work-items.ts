// `WorkItems`: a conversation as the work that was done in it. A call and its result are one item, and a plan
// that a later plan of the same author has replaced is gone. Built as entries come, so that a page can hold all.
//
//   - An item keeps the content of its entry as it is. Lines of changes and of outputs take time, and are
//     computed for the items that are looked at.

import { deliveryOf, planOf, type PlanStepView, subAgentCallOf } from "./entry.ts";
import { replyOf, resultOf } from "./reply.ts";

interface ItemBase {
  /** The same as long as the conversation is there. */
  readonly key: string;
  readonly at: number;
  /** The author is a sub-agent inside of the program of an external agent. */
  readonly isOfSubAgent: boolean;
}

export type WorkItem =
  /** A text of somebody, or the content of an entry that has none. */
  | (ItemBase & { readonly type: "said"; readonly role: string; readonly content: unknown })
  | (ItemBase & WorkCall)
  | (ItemBase & { readonly type: "plan"; readonly steps: readonly PlanStepView[] })
  /** The receipt of a message that was sent while the agent worked. */
  | (ItemBase & { readonly type: "receipt"; readonly delivery: "steer" | "queue" });

export interface WorkCall {
  readonly type: "call";
  readonly name: string;
  readonly input: unknown;
  /** The content of the entry with its result, and when that came. */
  result?: { readonly content: unknown; readonly at: number };
}

/** An entry of a conversation. */
interface PlainEntry {
  readonly id: number;
  readonly role: string;
  readonly content?: unknown;
  readonly createdAt: number;
}

/** Takes the entries of a session in their order. */
export class WorkItems {
  #items: WorkItem[] = [];
  readonly #open = new Map<string, ItemBase & WorkCall>();
  readonly #plans = new Map<string | undefined, WorkItem>();

  /** All items so far. Later entries give calls their results, and change nothing else of an item. */
  get items(): readonly WorkItem[] {
    return this.#items;
  }

  /** The call that was made last of those without a result. */
  get openCall(): WorkCall | undefined {
    return [...this.#open.values()].at(-1);
  }

  /** Whether a value, such as the output of the session, is the text that the agent said last. */
  said(value: unknown): boolean {
    const { text } = replyOf(value);
    if (text === "") return false;
    const last = this.#items.findLast(
      (item) => item.type === "said" && item.role === "assistant" && !item.isOfSubAgent,
    );
    return last?.type === "said" && replyOf(last.content).text === text;
  }

  add({ id, role, content, createdAt }: PlainEntry): void {
    const author = subAgentCallOf(content);
    const base = { key: String(id), at: createdAt, isOfSubAgent: author !== undefined };
    const steps = planOf(role, content);
    const delivery = role === "user" ? deliveryOf(content) : undefined;
    if (steps !== undefined) this.#plan(author, { ...base, type: "plan", steps });
    else if (delivery !== undefined) this.#items.push({ ...base, type: "receipt", delivery });
    else if (role === "tool") this.#result(base, content);
    else if (role === "assistant") this.#reply(base, content);
    else this.#items.push({ ...base, type: "said", role, content });
  }

  #plan(author: string | undefined, plan: WorkItem): void {
    const replaced = this.#plans.get(author);
    if (replaced !== undefined) this.#items = this.#items.filter((item) => item !== replaced);
    this.#plans.set(author, plan);
    this.#items.push(plan);
  }

  #reply(base: ItemBase, content: unknown): void {
    const { text, toolCalls } = replyOf(content);
    if (text !== "" || toolCalls.length === 0)
      this.#items.push({ ...base, type: "said", role: "assistant", content });
    toolCalls.forEach(({ id, name, input }, at) => {
      const call: ItemBase & WorkCall = { ...base, key: `${base.key}.${at}`, type: "call", name, input };
      this.#items.push(call);
      if (id !== undefined) this.#open.set(id, call);
    });
  }

  /** A result without a known call is shown under the name of its tool. */
  #result(base: ItemBase, content: unknown): void {
    const { callId, name } = resultOf(content);
    const result = { content, at: base.at };
    const call = this.#open.get(callId);
    this.#open.delete(callId);
    if (call !== undefined) call.result = result;
    else this.#items.push({ ...base, type: "call", name, input: undefined, result });
  }
}
