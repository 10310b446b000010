// `WaitAsks`: the timers, signals and questions that an agent waits for, and the signals that it takes at
// once.
//
//   K2a. While a consuming wait for a name is open, no other ask may wait for, take or probe that name.

import { callerLine, laterCallerLine } from "../errors/author-line.ts";
import type { AnswerShape } from "../journal/approval.ts";
import { answerSignalName, isReservedName } from "../journal/signal-names.ts";
import { decodeJson } from "../json/json.ts";
import { signalIsSpokenFor } from "../replay/faults.ts";
import { DurableFuture } from "../replay/future.ts";
import { signalPattern } from "../replay/pending-signals.ts";
import type { KernelParts } from "../replay/turn.ts";
import { checkMoment, momentAfter, refuseUnlessText } from "./checks.ts";
import type { SessionRelations } from "./session-relations.ts";

export class WaitAsks {
  readonly #parts: KernelParts;
  readonly #relations: SessionRelations;

  constructor(parts: KernelParts, relations: SessionRelations) {
    this.#parts = parts;
    this.#relations = relations;
  }

  startTimer(fireAt: number, sheltered: boolean): DurableFuture<void> {
    this.#parts.turn.guard();
    const at = this.#parts.faults.check(checkMoment, fireAt);
    const id = this.#parts.turn.ask({ type: "start_timer", fireAt: at });
    const future = new DurableFuture<void>(this.#parts.turn, "timer", id, "the timer");
    this.#parts.open.add({ future, at, sheltered });
    return future;
  }

  waitSignal(
    name: string,
    mode: "consume" | "ready",
    timeoutMs: number | undefined,
    sheltered: boolean,
    what = `signal "${name}"`,
  ): DurableFuture<unknown> {
    this.#parts.turn.guard();
    const lineOf = this.#parts.options.development ? laterCallerLine() : undefined;
    this.refuseIfConsuming(name);
    const timeoutAt = momentAfter(this.#parts, timeoutMs);
    const id = this.#parts.turn.ask({
      type: "wait_signal",
      name,
      mode,
      ...(timeoutAt === undefined ? {} : { timeoutAt }),
      ...(mode === "consume" ? this.#relations.listening() : {}),
    });
    const type = mode === "consume" ? "signal" : "signal_ready";
    const future = new DurableFuture<unknown>(this.#parts.turn, type, id, `the wait for ${what}`);
    this.#parts.open.add({ future, name, at: timeoutAt, sheltered, lineOf });
    return future;
  }

  requestInput(
    question: { prompt: string; details?: unknown },
    answer: AnswerShape,
    { timeoutMs, ttlMs }: { readonly timeoutMs?: number | undefined; readonly ttlMs?: number | undefined },
    sheltered: boolean,
  ): DurableFuture<unknown> {
    this.#parts.turn.guard();
    refuseUnlessText(this.#parts.faults, question.prompt, "the prompt of a question", Infinity);
    const asked = this.#parts.turn.encode(question, "question");
    const payload = this.#parts.turn.encode({ ...question, answer }, "question");
    const expiresAt = momentAfter(this.#parts, timeoutMs);
    const cancelAt = momentAfter(this.#parts, ttlMs);
    const id = this.#parts.turn.ask({
      type: "request_input",
      // Without the shape of the answer, so that records from before shapes existed replay.
      hash: this.#parts.options.hash(asked ?? ""),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(cancelAt === undefined ? {} : { cancelAt }),
      payload,
    });
    const future = new DurableFuture<unknown>(
      this.#parts.turn,
      "input",
      id,
      `the question "${question.prompt}"`,
    );
    const { life } = this.#parts.options.relations;
    this.#parts.open.add({
      future,
      name: answerSignalName(id),
      at: expiresAt,
      cancelAt,
      prompt: question.prompt,
      answer,
      ...(life === undefined ? {} : { life }),
      sheltered,
    });
    return future;
  }

  /** Consume signals that are pending, without waiting; at most one for a plain name, all for `drain`. */
  takeSignals(pattern: string, how: "one" | "all"): { name: string; payload: unknown }[] {
    this.#parts.turn.guard();
    this.refuseIfConsuming(pattern);
    if (this.#parts.cursor.slice === "replay") {
      const recorded = this.#parts.cursor.ahead(
        (record) => record.type === "take_signals" && record.pattern === pattern,
      );
      if (recorded?.type !== "take_signals") return [];
      this.#parts.cursor.passCommand();
      this.#parts.turn.tookSignals = true;
      const payloads = decodeJson(recorded.payload) as unknown[];
      return recorded.names.map((name, i) => ({ name, payload: payloads[i] }));
    }
    const one = how === "one" ? this.#parts.pending.take(pattern) : undefined;
    const taken = how === "all" ? this.#parts.pending.drain(pattern) : one === undefined ? [] : [one];
    if (taken.length === 0) return [];
    this.#parts.turn.tookSignals = true;
    this.#parts.turn.ask({
      type: "take_signals",
      pattern,
      signalIds: taken.map((signal) => signal.signalId),
      names: taken.map((signal) => signal.name),
      payload: `[${taken.map((signal) => signal.payload ?? "null").join(",")}]`,
      ...this.#relations.listening(),
    });
    for (const { signalId } of taken) this.#parts.segment.consume(signalId);
    return taken.map(({ name, payload }) => ({ name, payload: decodeJson(payload ?? "null") }));
  }

  /** K2a. Refuse a name that an open consuming wait has reserved. */
  refuseIfConsuming(pattern: string): void {
    const { open, faults } = this.#parts;
    if (open.waitCount === 0) return;
    const matches = signalPattern(pattern);
    for (const item of pattern.includes("*") ? open.values() : open.named(pattern)) {
      // No ask can name the answers to questions, and no pattern drains signals between sessions.
      // mutant: second-consumer-allowed
      if (item.future.type !== "signal" || item.name === undefined || !matches(item.name)) continue;
      if (item.name !== pattern && isReservedName(item.name)) continue;
      throw faults.fail(signalIsSpokenFor(pattern, item, callerLine()));
    }
  }
}
