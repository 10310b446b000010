// `trimAudit`: the removal of old rows of the audit, which appends a row about itself (ST59).

import type { TrimAudit } from "../session/audit/audit.ts";
import { findAuditProblem, nextAuditRow, trimAuditOf, trimmable } from "../session/audit/audit-chain.ts";
import type { ChangeResult } from "../session/changes.ts";
import type { LedgerPort } from "./row-port.ts";

export function trimAudit(
  ledger: LedgerPort,
  { before, limit, actor }: TrimAudit,
  now: number,
): ChangeResult {
  const newest = ledger.lastAudit();
  const trimmed = newest === undefined ? [] : trimmable(ledger.oldestAudit(limit), newest, before);
  const last = trimmed.at(-1);
  if (newest === undefined || last === undefined) return { status: "trimmed", rows: 0 };
  const audit = trimAuditOf(actor, trimmed.length, last);
  const problem = findAuditProblem(audit);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  ledger.removeAudit(last.seq);
  ledger.appendAudit(nextAuditRow(newest, audit, { outcome: "trimmed", at: now, hash: ledger.hash }));
  return { status: "trimmed", rows: trimmed.length };
}
