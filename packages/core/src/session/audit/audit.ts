// `Audit`, `AuditRow`: the record of an action of a user or a process, as it is asked for and as it is
// stored.
//
// Stored rows are a chain of hashes (`audit-chain.ts`).

import type { JsonText } from "../../json/json.ts";

/** The description of an action. */
export interface Audit {
  /** The person or the process that acted. */
  readonly actor: string;
  readonly action: string;
  /** The thing that the action was for. */
  readonly object: string;
  readonly requestId?: string;
  /** The subject of the action, such as a question and its answer (`AnswerDetails`). */
  readonly details?: JsonText;
  /** The outcome, where no change has a result; `done` when absent. */
  readonly outcome?: string;
}

/** One row of the audit, with the hash that covers it and the row before it. */
export interface AuditRow extends Omit<Audit, "outcome"> {
  /** From 1. Rows are missing only at the beginning, where old ones were removed (ST59). */
  readonly seq: number;
  readonly at: number;
  /** The result's `status`. */
  readonly outcome: string;
  /** Hash of the hash of the row before, a line break and this row (`session/audit/audit-chain.ts`). */
  readonly hash: string;
}

/**
 * Remove the oldest rows of the audit as far as they are older than a time, and append a row that says so
 * (ST59).
 */
export interface TrimAudit {
  readonly type: "trim_audit";
  /** Epoch milliseconds. */
  readonly before: number;
  /** The most rows to remove. */
  readonly limit: number;
  /** The person or the process that the new row names. */
  readonly actor: string;
}
