// `CommandAnswers` asks runners by commands, and gives their answers to the callers.
//
//   - Nothing is stored: the caller of a coordinator that ends asks again.
//   - Only the runner that was asked can answer, and only while the caller waits.
//   - A command that its runner did not get in that time is withdrawn, so that nothing happens later.

import { errorFrom, mintId, type Clock, type Random, type RecordedError } from "@holdfast/core";
import { Refusal } from "../../call/refusal.ts";
import { valueOf } from "../../call/json-field.ts";
import type { Dispatcher } from "../../dispatch/dispatcher.ts";
import type { RunnerCommand } from "../../dispatch/poller.ts";

/** A merge runs hooks of git, and a large repository is slow to compare. */
const ANSWER_MS = 30_000;
const OPEN_MAX = 100;

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
    const cancel = clock.setTimer(() => reject(silent(runnerId)), ANSWER_MS);
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
    else question.reject(errorFrom(valueOf(error, "error") as RecordedError));
  }
}

function silent(runnerId: string): Refusal {
  return new Refusal("unavailable", `the runner ${runnerId} does not answer this coordinator`, {
    expected: "a runner of this version that is at work, and polls this coordinator",
    fix: "use the commands `holdfast diff` and `holdfast merge` in the project on its machine, or try again when it is back",
  });
}
