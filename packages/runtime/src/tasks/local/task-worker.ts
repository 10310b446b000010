// The thread of one attempt of a task with `inThread` (`task-thread.ts`).

import { workerData } from "node:worker_threads";
import { UsageError, type RemainingBudget, type Session, type TokenUsage } from "@holdfast/core";
import type { TaskContext, TaskDefinition, TaskSignalOptions } from "../../agents/define.ts";
import { isObject } from "../../agents/define-arguments.ts";
import { DeclaredSecrets } from "@holdfast/system";
import {
  markTaskThread,
  notCopied,
  receiveError,
  sendError,
  type CallMethod,
  type FromThread,
  type ReportMethod,
  type ThreadStart,
  type ToThread,
} from "./task-thread.ts";

const start = workerData as ThreadStart;
const { port } = start;

class ThreadContext implements TaskContext {
  readonly sessionId = start.sessionId;
  readonly taskId = start.taskId;
  readonly attempt = start.attempt;
  readonly idempotencyKey = start.idempotencyKey;
  readonly traceparent = start.traceparent;
  readonly overlaps = start.overlaps;
  readonly #controller = new AbortController();
  readonly #secrets = new DeclaredSecrets(start.secrets);
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  constructor() {
    port.on("message", (message: ToThread) => {
      if (message.type === "abort") this.#controller.abort(new DOMException(message.reason, "AbortError"));
      else this.#answered(message);
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  secret(name: string): string {
    return this.#secrets.of({ name: start.task, secrets: start.declared }, name);
  }

  signalSession(
    name: string,
    payload?: unknown,
    options?: TaskSignalOptions,
  ): Promise<RemainingBudget | undefined> {
    return this.#call("signalSession", [name, payload, options]) as Promise<RemainingBudget | undefined>;
  }

  readSession(sessionId?: string): Promise<Session | undefined> {
    return this.#call("readSession", [sessionId]) as Promise<Session | undefined>;
  }

  remainingBudget(): Promise<RemainingBudget | undefined> {
    return this.#call("remainingBudget", []) as Promise<RemainingBudget | undefined>;
  }

  streamToken(text: string): void {
    this.#report("streamToken", text);
  }

  progress(data: unknown): void {
    this.#report("progress", data);
  }

  reportUsage(usage: TokenUsage): void {
    this.#report("reportUsage", usage);
  }

  #report(method: ReportMethod, argument: unknown): void {
    send("report", { type: "report", method, argument });
  }

  // `async`, because a value that cannot be copied throws at once.
  async #call(method: CallMethod, given: readonly unknown[]): Promise<unknown> {
    const id = ++this.#lastId;
    const call = Promise.withResolvers<unknown>();
    send("report", { type: "call", id, method, given });
    this.#calls.set(id, call);
    return call.promise;
  }

  #answered({ id, value, error }: Extract<ToThread, { readonly type: "answer" }>): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(receiveError(error));
  }
}

function send(what: "output" | "report", message: FromThread): void {
  try {
    port.postMessage(message);
  } catch (error) {
    throw notCopied(what, start.task, error);
  }
}

/** The exported task, also one of an exported agent. */
async function findTask(): Promise<TaskDefinition> {
  for (const module of start.imports) await import(module);
  const exported = Object.values((await import(start.module)) as Readonly<Record<string, unknown>>);
  const ofAgents = exported.flatMap((each) =>
    isObject(each) && Array.isArray(each["tasks"]) ? each["tasks"] : [],
  );
  const found = [...exported, ...ofAgents].find(
    (each: unknown) => isObject(each) && each["name"] === start.task && typeof each["run"] === "function",
  );
  if (found !== undefined) return found as TaskDefinition;
  throw new UsageError(`task "${start.task}" is not exported by the module of its \`inThread\``, {
    at: start.module,
    expected: "an exported task of this name, or an exported agent that has it",
    fix: "export the task, with `inThread: import.meta.url` in the module that defines it",
  });
}

markTaskThread(start.task);
// Before the import: a thread whose module never loads waits for its abort.
const context = new ThreadContext();
try {
  const { run } = await findTask();
  const output: unknown = await run(start.input, context);
  send("output", { type: "done", output });
} catch (thrown) {
  send("output", { type: "failed", error: sendError(thrown) });
}
