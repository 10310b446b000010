// `ExecutorTurn`: one turn of an executor, for its session and for the routes of its gateway.

import { isDeepStrictEqual, stripVTControlCharacters } from "node:util";
import { HoldfastError } from "@holdfast/core";

import type { ExternalEnd, ExternalEvent, ExternalTurn } from "../../session/external-agent-protocol.ts";
import { AgentTurn } from "../../session/program/agent-turn.ts";
import { TurnFailure, type CompletedTurn, type ExecutorProcess } from "./executor-process.ts";
import type { ExecutorProfile } from "./profile.ts";
import type { ReportedResult, ServedTurn } from "./report-routes.ts";

export class ExecutorTurn extends AgentTurn implements ServedTurn {
  readonly turn: ExternalTurn;
  readonly executor: string;
  readonly projectDir: string;
  readonly over: Promise<never>;
  executorSessionId: string | null;
  readonly ended: Promise<ExternalEnd>;
  readonly #settle: (end: Promise<ExternalEnd>) => void;
  readonly #isPersistent: boolean;
  readonly #endReports: (error: HoldfastError) => void;
  #over: HoldfastError | undefined;
  #process: ExecutorProcess | undefined;
  #isAborted = false;
  #result: ReportedResult | undefined;
  #lastMessage: string | undefined;

  constructor({ name, lifecycle }: ExecutorProfile, turn: ExternalTurn, projectDir: string) {
    super();
    this.turn = turn;
    this.executor = name;
    this.projectDir = projectDir;
    this.executorSessionId = turn.boundId;
    this.#isPersistent = lifecycle === "persistent";
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {}); // Nobody may wait for it.
    this.over = promise;
    this.#endReports = reject;
    const { promise: ended, resolve } = Promise.withResolvers<ExternalEnd>();
    this.ended = ended;
    this.#settle = resolve;
  }

  /** @param keep takes a process that waits for the next turn. */
  work(process: ExecutorProcess, keep: (process: ExecutorProcess) => void): void {
    this.#process = process;
    this.#settle(this.#end(process, keep));
  }

  async report(event: ExternalEvent): Promise<void> {
    if (this.#over !== undefined) throw this.#over;
    if (event.type === "session_started") this.executorSessionId = event.boundId;
    if (event.type === "text" && event.text !== "") this.#lastMessage = event.text;
    this.give(event);
    await this.turn.stored();
  }

  takeResult(result: ReportedResult): void {
    if (this.#over !== undefined) throw this.#over;
    const earlier = this.#result;
    this.#result = result;
    // A report whose answer was lost is sent again. Another result counts in place of the earlier one, which is kept.
    if (earlier !== undefined && !isDeepStrictEqual(contentOf(earlier), contentOf(result)))
      this.#keep(earlier);
  }

  async abort(isUrgent = false): Promise<ExternalEnd> {
    this.#isAborted = true;
    await this.#process?.stop("its session was stopped", isUrgent);
    return this.ended;
  }

  async #end(process: ExecutorProcess, keep: (process: ExecutorProcess) => void): Promise<ExternalEnd> {
    try {
      const completed = await process.finishTurn();
      const end = this.#answer(completed);
      if (!this.#isPersistent) return end;
      if (end.type === "answered") keep(process);
      else await process.stop("its turn failed");
      return end;
    } catch (error) {
      if (!(error instanceof TurnFailure)) throw error;
      const { end } = await process.stop("its turn failed");
      // Its work may be done all the same.
      if (this.#result !== undefined) this.#keep(this.#result);
      if (this.#isAborted) return { type: "aborted", process: end };
      const kept = this.#result === undefined ? "" : ". It had reported a result, which its conversation has";
      return { type: "error", message: `${error.message}${kept}` };
    } finally {
      this.#over = new HoldfastError("run_terminal", "no turn of this session is under way", {
        fix: "report before the turn ends",
      });
      this.#endReports(this.#over);
    }
  }

  /** A result that is not that of the turn is an entry of the conversation. */
  #keep({ result_text: text, result_data: data }: ReportedResult): void {
    this.give({
      type: "text",
      text: typeof text === "string" && text !== "" ? text : JSON.stringify(data ?? null),
    });
  }

  /** executor-4. */
  #answer({ inline, output = "" }: CompletedTurn): ExternalEnd {
    const result = inline ?? this.#result;
    if (result !== undefined) {
      const { result_text: text, result_data: data } = result;
      return {
        type: "answered",
        text: typeof text === "string" ? text : "",
        ...(data === undefined || data === null ? {} : { data }),
      };
    }
    const text = this.#lastMessage ?? textIn(output);
    if (text !== "") return { type: "answered", text };
    return {
      type: "error",
      message:
        'it ended its turn without a result: it has to report an event { "event_type": "result", "result_text": … }',
    };
  }
}

function contentOf({ result_text: text, result_data: data }: ReportedResult): object {
  return { text: text ?? null, data: data ?? null };
}

/** The text in an output, without colours. Empty for an output that is no text: a program may write anything. */
function textIn(output: string): string {
  const text = stripVTControlCharacters(output).trim();
  return /(?!\s)\p{Cc}|\uFFFD/u.test(text) ? "" : text;
}
