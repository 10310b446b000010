// What was answered, over the network, to whoever asked: compared with what was answered before.
//
//   - H3: A poll that is asked again is given nothing that it was not given the first time, by a coordinator that has not answered a
//       later one since.
//   - L1: A result is a register that is written once: whoever asks after somebody has heard it hears the same.

import { isEnded, type Session } from "@holdfast/core";
import type { Violated } from "../world/watched-storage.ts";

interface Answered {
  readonly pollId: string;
  readonly claims: readonly { readonly sessionId: string }[];
}

export class History {
  readonly #violated: Violated;
  /** The last of each runner, by the coordinator's life. */
  readonly #polls = new Map<string, Answered>();
  readonly #results = new Map<string, { readonly heardAt: number; readonly result: string }>();

  constructor(violated: Violated) {
    this.#violated = violated;
  }

  /** H3. */
  pollAnswered(coordinator: string, runnerId: string, answer: Answered): void {
    const seat = `${coordinator} ${runnerId}`;
    const last = this.#polls.get(seat);
    if (last?.pollId !== answer.pollId) {
      this.#polls.set(seat, answer);
      return;
    }
    for (const { sessionId } of answer.claims)
      if (last.claims.every((claim) => claim.sessionId !== sessionId))
        this.#violated("H3", `poll ${last.pollId} was given ${sessionId} only when it was asked again`);
  }

  /** L1. @param askedAt, heardAt in simulated milliseconds. */
  resultRead({ sessionId, status, output, error }: Session, askedAt: number, heardAt: number): void {
    const known = this.#results.get(sessionId);
    const result = JSON.stringify([status, output, error]);
    if (known !== undefined && askedAt > known.heardAt && known.result !== result)
      this.#violated("L1", `${sessionId} was read as ${known.result}, and as ${result} after that`);
    if (isEnded(status)) this.#results.set(sessionId, known ?? { heardAt, result });
  }
}
