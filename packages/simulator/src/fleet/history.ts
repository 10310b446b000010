// `History`: compares the answers that callers received over the network with earlier answers.
//
//   - H3: A repeated poll receives no claim that its first answer did not contain, unless the coordinator has
//     answered a later poll.
//   - L1: A result is a register that is written once: a request that begins after an answer receives the
//     same result.

import { isEnded, type Session } from "@holdfast/core";
import type { Violated } from "../world/account-checks.ts";

interface Answered {
  readonly pollId: string;
  readonly claims: readonly { readonly sessionId: string }[];
}

export class History {
  readonly #violated: Violated;
  /** The last answer to each runner, by the coordinator's life and the runner. */
  readonly #polls = new Map<string, Answered>();
  readonly #results = new Map<string, { readonly receivedAt: number; readonly result: string }>();

  constructor(violated: Violated) {
    this.#violated = violated;
  }

  /** H3. */
  pollAnswered(coordinator: string, runnerId: string, answer: Answered): void {
    const key = `${coordinator} ${runnerId}`;
    const last = this.#polls.get(key);
    if (last?.pollId !== answer.pollId) {
      this.#polls.set(key, answer);
      return;
    }
    for (const { sessionId } of answer.claims)
      if (last.claims.every((claim) => claim.sessionId !== sessionId))
        this.#violated("H3", `poll ${last.pollId} was given ${sessionId} only when it was asked again`);
  }

  /** L1. @param askedAt, receivedAt in simulated milliseconds. */
  resultRead({ sessionId, status, output, error }: Session, askedAt: number, receivedAt: number): void {
    const known = this.#results.get(sessionId);
    const result = JSON.stringify([status, output, error]);
    if (known !== undefined && askedAt > known.receivedAt && known.result !== result)
      this.#violated("L1", `${sessionId} was read as ${known.result}, and as ${result} after that`);
    if (isEnded(status)) this.#results.set(sessionId, known ?? { receivedAt, result });
  }
}
