// `CommandAnswers` asks runners by commands, and gives their answers to the callers.
//
//   - Nothing is stored: the caller of a coordinator that ends asks again.
//   - Only the runner that was asked can answer, and only while the caller waits.
//   - A command that its runner did not get in that time is withdrawn, so that nothing happens later.
//   - An error has the words of the runner, says so also of its advice, and has a code that such a question can
//     have.

import { defined, mintId, type Clock, type ErrorCode, type Random } from "@holdfast/core";
import { Refusal } from "../../call/refusal.ts";
import { valueOf } from "../../call/json-field.ts";
import type { Dispatcher } from "../../dispatch/dispatcher.ts";
import type { RunnerCommand } from "../../dispatch/poller.ts";

/** A large repository is slow to compare. */
const ANSWER_MS = 30_000;
const OPEN_MAX = 100;

/** The codes of a runner's own errors. Any other one is `unavailable`, so that a runner speaks for nobody else. */
const CODES: readonly string[] = [
  "conflict",
  "uncommitted_changes",
  "policy_denied",
  "not_found",
  "file_not_found",
  "invalid_input",
  "config_invalid",
  "limit_exceeded",
  "locked",
  "rate_limited",
  "not_implemented",
] satisfies readonly ErrorCode[];
const SAID_CHARS = 2_000;

interface Question {
  readonly runnerId: string;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** An answer as the runner sends it. */
interface Answer {
  readonly commandId: string;
  /** JSON. */
  readonly answer?: Uint8Array | undefined;
  /** A `RecordedError` in JSON. */
  readonly error?: Uint8Array | undefined;
}

interface AnswersHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly dispatcher: Pick<Dispatcher, "ask" | "withdraw">;
}

export class CommandAnswers {
  readonly #host: AnswersHost;
  readonly #open = new Map<string, Question>();

  constructor(host: AnswersHost) {
    this.#host = host;
  }

  /**
   * @throws Refusal `unavailable` when the runner does not poll here, or does not answer. Otherwise the
   *   runner's own error.
   */
  async ask(runnerId: string, command: Omit<RunnerCommand, "commandId">): Promise<unknown> {
    const { clock, random, dispatcher } = this.#host;
    if (this.#open.size >= OPEN_MAX)
      throw new Refusal("rate_limited", `${OPEN_MAX} questions to runners wait for their answers`, {
        fix: "try again soon",
        retryAfterMs: 1_000,
      });
    const commandId = mintId("cmd", clock.now(), () => random.u32());
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const cancel = clock.setTimer(() => {
      const isWithdrawn = dispatcher.withdraw(runnerId, commandId);
      reject(isWithdrawn ? silent(runnerId) : unanswered(runnerId, command.type));
    }, ANSWER_MS);
    this.#open.set(commandId, { runnerId, resolve, reject });
    try {
      if (!dispatcher.ask(runnerId, { commandId, ...command })) throw silent(runnerId);
      return await promise;
    } finally {
      cancel();
      this.#open.delete(commandId);
      dispatcher.withdraw(runnerId, commandId);
    }
  }

  /** Takes the answer of a runner, if somebody waits for it. */
  take(runnerId: string, { commandId, answer, error }: Answer): void {
    const question = this.#open.get(commandId);
    // mutant: answer-of-another-runner
    if (question === undefined || question.runnerId !== runnerId) return;
    if (error === undefined) question.resolve(valueOf(answer, "answer"));
    else question.reject(saidBy(runnerId, valueOf(error, "error")));
  }
}

function saidBy(runnerId: string, error: unknown): Refusal {
  const said = (typeof error === "object" && error !== null ? error : {}) as Readonly<
    Record<string, unknown>
  >;
  const text = (name: string): string | undefined => {
    const value = said[name];
    return typeof value === "string" ? value.slice(0, SAID_CHARS) : undefined;
  };
  const code = text("code") ?? "";
  const fix = text("fix");
  return new Refusal(
    CODES.includes(code) ? (code as ErrorCode) : "unavailable",
    `the runner ${runnerId} says: ${text("message") ?? "it failed"}`,
    defined({
      at: text("at"),
      got: text("got"),
      expected: text("expected"),
      fix: fix && `the runner says: ${fix}`,
    }),
  );
}

/** The runner has got the question, and may carry it out after all. */
export class Unanswered extends Refusal {}

function unanswered(runnerId: string, type: RunnerCommand["type"]): Refusal {
  return new Unanswered("unavailable", `the runner ${runnerId} has not answered within half a minute`, {
    fix:
      type === "merge_work"
        ? "read the work again before you repeat the merge: the runner may still carry this one out"
        : "try again",
  });
}

function silent(runnerId: string): Refusal {
  return new Refusal("unavailable", `the runner ${runnerId} does not answer this coordinator`, {
    expected: "a runner of this version that is at work, and polls this coordinator",
    fix: "use the commands `holdfast diff` and `holdfast merge` in the project on its machine, or try again when it is back",
  });
}
