// `BeginWatch`: a check that a task that no attempt has begun is never uncertain (O16).
//
//   - An attempt whose handler was never called is not counted as lost, and fails no task, by the life that
//     asked for it. That life knows.
//   - Where another life held the session in between, or nobody received a claim, nobody can know, and
//     nothing is checked.

import type { JournalRecord, RecordedError } from "@holdfast/core";
import type { Violated } from "./account-checks.ts";

/** The errors of tasks whose attempt may have happened. */
const UNKNOWN_ENDS: ReadonlySet<string | undefined> = new Set(["AttemptLostError", "UncertainEffectError"]);

interface Claimed {
  readonly token: number;
  /** The life that received it. */
  readonly life: string | undefined;
}

export class BeginWatch {
  readonly #violated: Violated;
  readonly #begun = new Set<string>();
  /** The token of the claim under which an attempt was asked for. */
  readonly #asked = new Map<string, number>();
  /** The claims of each session, oldest first. */
  readonly #claims = new Map<string, Claimed[]>();

  constructor(violated: Violated) {
    this.#violated = violated;
  }

  /** A claim was stored. */
  claimed(sessionId: string, token: number): void {
    this.#claimsOf(sessionId).push({ token, life: undefined });
  }

  /** A life has received a claim. */
  received(sessionId: string, token: number, life: string): void {
    const claims = this.#claimsOf(sessionId);
    const at = claims.findLastIndex((claim) => claim.token === token);
    if (at >= 0) claims[at] = { token, life };
    else claims.push({ token, life }); // The claim of a creation.
  }

  /** The handler of an attempt was called. */
  began(sessionId: string, task: number, attempt: number): void {
    this.#begun.add(nameOf(sessionId, task, attempt));
  }

  /** A record was committed under a claim. */
  recorded(sessionId: string, token: number, record: JournalRecord): void {
    const asks = (task: number, attempt: number): void =>
      void this.#asked.set(nameOf(sessionId, task, attempt), token);
    switch (record.type) {
      case "schedule_task":
        return asks(record.id, 1);
      case "attempt_failed":
        return asks(record.task, record.handedOver === "waiting" ? record.attempt : record.attempt + 1);
      case "attempt_lost":
        if (record.begins === true) return asks(record.task, record.attempt);
        this.#lost(sessionId, token, record);
        return asks(record.task, record.attempt + 1);
      case "task_failed":
        return isUnknownEnd(record.payload) ? this.#lost(sessionId, token, record) : undefined;
      default:
    }
  }

  #lost(sessionId: string, token: number, { task, attempt }: { task: number; attempt: number }): void {
    const name = nameOf(sessionId, task, attempt);
    const askedUnder = this.#asked.get(name);
    if (this.#begun.has(name) || askedUnder === undefined) return;
    const since = this.#claimsOf(sessionId).filter(
      (claim) => claim.token >= askedUnder && claim.token <= token,
    );
    const [first] = since;
    if (first?.life === undefined || first.token !== askedUnder) return;
    if (since.some(({ life }) => life !== first.life)) return;
    this.#violated(
      "O16",
      `${sessionId}: attempt ${attempt} of task ${task} counts as lost, and ${first.life} never began it`,
    );
  }

  #claimsOf(sessionId: string): Claimed[] {
    let claims = this.#claims.get(sessionId);
    if (claims === undefined) this.#claims.set(sessionId, (claims = []));
    return claims;
  }
}

function isUnknownEnd(payload: string | undefined): boolean {
  if (payload === undefined) return false;
  const { name, cause } = JSON.parse(payload) as RecordedError;
  return UNKNOWN_ENDS.has(name) || UNKNOWN_ENDS.has(cause?.name);
}

function nameOf(sessionId: string, task: number, attempt: number): string {
  return `${sessionId}/${task} attempt ${attempt}`;
}
