// `A2aClient`: the calls of A2A 1.0 over JSON-RPC that an agent of ours makes, and a task in our words.
//
// A request, its answer and the time of both have limits. Only calls that read are tried again.

import { setTimeout } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";
import { defined, MIB } from "@holdfast/core";

import { fieldsOf, isFields, listOf, textOr, type Fields } from "../../session/fields.ts";

const LIMITS = {
  requestMs: 60_000,
  cancelMs: 5_000,
  bodyBytes: 16 * MIB,
  reads: 5,
  messageChars: 2_000,
} as const;
const VERSION = "1.0";
const TASK_NOT_FOUND = -32_001;

export interface A2aTask {
  /** Empty for the answer of an agent that makes no tasks. */
  readonly id: string;
  readonly contextId: string;
  readonly state: "working" | "input_required" | "auth_required" | "completed" | "failed" | "cancelled";
  /** The result of a completed task, and else the message with its state. */
  readonly text: string;
  /** Names the message with its state; empty without one. */
  readonly messageId: string;
}

export class TaskUnknownError extends Error {
  override name = "TaskUnknownError";
}

const STATES: Readonly<Record<string, A2aTask["state"]>> = {
  TASK_STATE_SUBMITTED: "working",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input_required",
  TASK_STATE_AUTH_REQUIRED: "auth_required",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "failed",
  TASK_STATE_CANCELED: "cancelled",
};

interface Message {
  readonly messageId: string;
  readonly text: string;
  readonly contextId?: string;
  readonly taskId?: string;
}

export class A2aClient {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #signal: AbortSignal | undefined;
  #endpoint: string | undefined;
  #count = 0;

  constructor({
    url,
    token,
    signal,
  }: {
    readonly url: string;
    readonly token: string | undefined;
    readonly signal?: AbortSignal;
  }) {
    this.#url = url;
    this.#token = token;
    this.#signal = signal;
  }

  /** The card of the agent. @throws Error when there is none that can be used. */
  async card(signal?: AbortSignal): Promise<{ readonly version: string; readonly endpoint: string }> {
    const base = this.#url.endsWith("/") ? this.#url : `${this.#url}/`;
    const card = await this.#fetch(new URL(".well-known/agent-card.json", base).href, undefined, signal);
    const wanted = listOf(card["supportedInterfaces"]).find(
      ({ protocolBinding, protocolVersion }) =>
        protocolBinding === "JSONRPC" && textOr(protocolVersion, "").startsWith("1."),
    );
    const endpoint = textOr(wanted?.["url"], "");
    if (URL.parse(endpoint)?.origin !== new URL(this.#url).origin)
      throw new Error("the card of the agent names no interface JSONRPC of version 1 at its own address");
    return { version: textOr(card["version"], "unknown"), endpoint };
  }

  async send({ messageId, text, contextId, taskId }: Message): Promise<A2aTask> {
    const message = { messageId, role: "ROLE_USER", parts: [{ text }], contextId, taskId };
    const configuration = { returnImmediately: true };
    const answer = await this.#call("SendMessage", { message, configuration }, this.#afterAbort());
    if (isFields(answer["task"])) return taskOf(answer["task"]);
    const said = fieldsOf(answer["message"]); // An agent without tasks answers at once.
    const context = textOr(said["contextId"], contextId ?? "");
    return {
      id: "",
      contextId: context,
      state: "completed",
      text: partsText(said["parts"]),
      messageId: textOr(said["messageId"], ""),
    };
  }

  /** @throws TaskUnknownError */
  async task(id: string): Promise<A2aTask> {
    for (let left: number = LIMITS.reads; ; left--) {
      try {
        return taskOf(await this.#call("GetTask", { id }));
      } catch (error) {
        if (left <= 1 || error instanceof TaskUnknownError || this.#signal?.aborted === true) throw error;
        await delay(1_000);
      }
    }
  }

  /** The task a little later. An abort cancels it. */
  async next({ id }: A2aTask, pollMs: number): Promise<A2aTask> {
    try {
      await delay(pollMs, undefined, { signal: this.#signal });
      return await this.task(id);
    } catch (error) {
      if (this.#signal?.aborted === true) await this.cancel(id).catch(() => {}); // It may have ended.
      throw error;
    }
  }

  /** An aborted turn waits a little for the id of its task, which it cancels then. */
  #afterAbort(): AbortSignal {
    const late = new AbortController();
    const wait = (): void => void setTimeout(() => late.abort(), LIMITS.cancelMs).unref();
    this.#signal?.addEventListener("abort", wait, { once: true });
    if (this.#signal?.aborted === true) wait();
    return late.signal;
  }

  /** Also after an abort. @throws where the task has ended, or is not known. */
  async cancel(id: string): Promise<void> {
    await this.#call("CancelTask", { id }, AbortSignal.timeout(LIMITS.cancelMs));
  }

  async #call(method: string, params: Fields, signal?: AbortSignal): Promise<Fields> {
    this.#endpoint ??= (await this.card(signal)).endpoint;
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++this.#count, method, params });
    const { error, result } = await this.#fetch(this.#endpoint, body, signal);
    if (error === undefined) return fieldsOf(result);
    const { code, message } = fieldsOf(error);
    const text = `${method}: ${textOr(message, "no reason given").slice(0, LIMITS.messageChars)}`;
    throw code === TASK_NOT_FOUND ? new TaskUnknownError(text) : new Error(text);
  }

  async #fetch(url: string, body: string | undefined, given = this.#signal): Promise<Fields> {
    const timeout = AbortSignal.timeout(LIMITS.requestMs);
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      ...defined({ body }),
      redirect: "error",
      signal: given === undefined ? timeout : AbortSignal.any([given, timeout]),
      headers: {
        accept: "application/json",
        "A2A-Version": VERSION,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
      },
    });
    const text = await readBody(response);
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${text.slice(0, 200)}`);
    return fieldsOf(JSON.parse(text));
  }
}

async function readBody({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > LIMITS.bodyBytes) throw new Error(`the answer has more than ${LIMITS.bodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function taskOf(task: Fields): A2aTask {
  const { state, message } = fieldsOf(task["status"]);
  const known = STATES[textOr(state, "")];
  if (known === undefined)
    throw new Error(`a task has the unknown state ${textOr(state, "none").slice(0, 100)}`);
  const artifacts = listOf(task["artifacts"]).map(({ parts }) => partsText(parts));
  const said = partsText(fieldsOf(message)["parts"]);
  const ids = { id: textOr(task["id"], ""), contextId: textOr(task["contextId"], "") };
  const text = known === "completed" && artifacts.length > 0 ? artifacts.join("\n") : said;
  return { ...ids, state: known, text, messageId: textOr(fieldsOf(message)["messageId"], "") };
}

function partsText(parts: unknown): string {
  return listOf(parts)
    .flatMap(({ text }) => (typeof text === "string" ? [text] : []))
    .join("\n");
}
