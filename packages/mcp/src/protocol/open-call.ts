// `OpenCall`: one call of a tool, from its request to its result, with the questions that the server asks in
// between.
//
// A person may answer hours later, so a call goes on in steps. A step ends with the result or with a
// question. The next step gives the answer, and continues the same call as long as this process and the
// server live.
//
//   - A step has a limit of time without progress, and all steps one together. The time of a person does not
//     count.
//   - A question that was answered before, in a call that a crash cut off, is answered in the same way at
//     once.
//   - A server that asks more often than the limit ends its call.
//   - A call that no step continues for too long is cancelled.

import { createHash } from "node:crypto";
import { clearTimeout, setTimeout } from "node:timers";
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/client";

import { CallLostError } from "./call-errors.ts";
import { MCP_LIMITS } from "./limits.ts";
import { taskOf, type ServerTask } from "./server-tasks.ts";
import {
  questionOf,
  questionsOf,
  type Elicitation,
  type ServerAnswer,
  type ServerQuestion,
} from "./server-questions.ts";

/** The end of a step. */
export type CallStep =
  | { readonly type: "result"; readonly result: CallToolResult }
  /** The server goes on with the call as a task. */
  | { readonly type: "task"; readonly task: ServerTask }
  | {
      readonly type: "asks";
      readonly questions: readonly ServerQuestion[];
      /** The server's own note, for the next request. It is absent while the call stays open. */
      readonly state?: string;
      /** The call waits for the answer in this process. */
      readonly isOpen: boolean;
    };

/** The process or person that waits for a step. */
export interface StepContext {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: unknown) => void;
}

export interface CallRequest {
  /** Sends the request. */
  readonly send: (
    signal: AbortSignal,
    onProgress: (progress: unknown) => void,
  ) => Promise<CallToolResult | InputRequiredResult>;
  /** Answers by `questionHash`. */
  readonly known: Readonly<Record<string, ServerAnswer>>;
  readonly callMs: number;
}

interface Asked {
  readonly question: ServerQuestion;
  readonly answer: (answer: ServerAnswer) => void;
}

/** Two questions of one hash ask for the same. */
export function questionHash(question: ServerQuestion): string {
  const { key: _key, ...asked } = question;
  return createHash("sha256").update(JSON.stringify(asked)).digest("base64url").slice(0, 22);
}

export class OpenCall {
  readonly #request: CallRequest;
  readonly #ending = new AbortController();
  readonly #result: Promise<CallStep>;
  readonly #asked: Asked[] = [];
  #count = 0;
  #isOver = false;
  #spentMs = 0;
  #onProgress: (progress: unknown) => void = () => {};
  #onAsked: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;

  constructor(request: CallRequest) {
    this.#request = request;
    this.#result = this.#send().finally(() => {
      this.#isOver = true;
      clearTimeout(this.#timer);
    });
    this.#result.catch(() => {}); // It may fail between two steps. The next step then gets the error.
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async #send(): Promise<CallStep> {
    const result = await this.#request.send(this.#ending.signal, (progress) => this.#onProgress(progress));
    if (!isInputRequired(result)) {
      const task = taskOf(result);
      return task === undefined ? { type: "result", result } : { type: "task", task };
    }
    const { inputRequests = {}, requestState } = result;
    const questions = questionsOf(inputRequests);
    const state = requestState === undefined ? {} : { state: requestState };
    return { type: "asks", questions, isOpen: false, ...state };
  }

  /** A question of the server while the call runs. */
  ask(elicitation: Elicitation): Promise<ServerAnswer> {
    if (++this.#count > MCP_LIMITS.questions) {
      this.end(new CallLostError(`it asked more than ${MCP_LIMITS.questions} questions in one call`));
      return Promise.resolve({ action: "cancel" });
    }
    const question = questionOf(String(this.#count), elicitation);
    const known = this.#request.known[questionHash(question)];
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((answer) => {
      this.#asked.push({ question, answer });
      this.#onAsked();
    });
  }

  /**
   * Goes on until the result or the next question.
   *
   * @param answers by the keys of the last questions.
   * @throws the error of the call, or the reason of the signal.
   */
  async next(
    answers: Readonly<Record<string, ServerAnswer>>,
    { signal, onProgress }: StepContext,
  ): Promise<CallStep> {
    const abort = (): void => this.end(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const since = performance.now();
    this.#watch(since);
    this.#onProgress = (progress) => {
      this.#watch(since);
      onProgress(progress);
    };
    for (const { question, answer } of this.#asked.splice(0))
      answer(answers[question.key] ?? { action: "cancel" });
    const { promise: asked, resolve } = Promise.withResolvers<CallStep>();
    this.#onAsked = () => {
      const questions = this.#asked.map(({ question }) => question);
      resolve({ type: "asks", questions, isOpen: true });
    };
    try {
      return await Promise.race([this.#result, asked]);
    } catch (error) {
      throw this.#ending.signal.aborted ? this.#ending.signal.reason : error;
    } finally {
      signal.removeEventListener("abort", abort);
      this.#onProgress = () => {};
      this.#onAsked = () => {};
      this.#spentMs += performance.now() - since;
      clearTimeout(this.#timer);
      if (!this.#isOver) this.#endAfter(MCP_LIMITS.answerMs, "nobody answered its question");
    }
  }

  /** Cancels the call. */
  end(reason: unknown): void {
    this.#ending.abort(reason);
    for (const { answer } of this.#asked.splice(0)) answer({ action: "cancel" });
  }

  #watch(since: number): void {
    const spent = this.#spentMs + performance.now() - since;
    this.#endAfter(
      Math.min(this.#request.callMs, MCP_LIMITS.callTotalMs - spent),
      "it was silent for too long",
    );
  }

  #endAfter(ms: number, why: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(new CallLostError(why)), Math.max(0, ms)).unref();
  }
}

function isInputRequired(result: CallToolResult | InputRequiredResult): result is InputRequiredResult {
  return "resultType" in result && result.resultType === "input_required";
}
