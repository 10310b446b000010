// Who did what to what, in a chain of hashes. What is asked for, and what is stored.

/** What a change is recorded as. */
export interface Audit {
  /** Who did it. */
  readonly actor: string;
  readonly action: string;
  /** What it was done to. */
  readonly object: string;
  readonly requestId?: string;
  /** What became of it, where no change says so; `done` when absent. */
  readonly outcome?: string;
}

export interface AuditRow extends Omit<Audit, "outcome"> {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly at: number;
  /** The result's `status`. */
  readonly outcome: string;
  /** Of the hash of the row before, a line break and this row (`session/audit-chain.ts`). */
  readonly hash: string;
}
