// `costAfter`: the cost of a session's own calls of models, which its row keeps so that a list needs no
// journal.
//
// The row counts the usage of each record once, when the record is committed. It is therefore the sum over
// the journal, and the journal is never read for it.

import type { SessionCost } from "../journal/amounts.ts";
import type { JournalRecord } from "../journal/record.ts";

/** @returns the cost with these records; the same object, or `undefined`, when none of them has usage. */
export function costAfter(
  cost: SessionCost | undefined,
  records: readonly JournalRecord[],
): SessionCost | undefined {
  let sum = cost;
  for (const record of records) {
    if (!("usage" in record) || record.usage === undefined) continue;
    const { costMicroUsd, inputTokens, outputTokens } = record.usage;
    sum = {
      calls: (sum?.calls ?? 0) + 1,
      unpriced: (sum?.unpriced ?? 0) + (costMicroUsd === undefined ? 1 : 0),
      costMicroUsd: (sum?.costMicroUsd ?? 0) + (costMicroUsd ?? 0),
      inputTokens: (sum?.inputTokens ?? 0) + (inputTokens ?? 0),
      outputTokens: (sum?.outputTokens ?? 0) + (outputTokens ?? 0),
    };
  }
  return sum;
}
