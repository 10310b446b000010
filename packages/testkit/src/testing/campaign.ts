// For tests that `npm test` leaves to a campaign, wholly (`ofCampaign`) or in part (`isCampaign`, `sampled`).
// Decision 54 has the reasons.

/** Whether a campaign runs the tests. It sets `HOLDFAST_CAMPAIGN`. */
export const isCampaign = process.env["HOLDFAST_CAMPAIGN"] !== undefined;

/** The options of a test that `npm test` leaves out. The tag is declared in `vitest.config.ts`. */
export const ofCampaign = { tags: "campaign" } as const;

/**
 * The rows of `test.each` that this run plays.
 *
 * @param count how many rows `npm test` plays: they are evenly spread, and the first is among them.
 */
export function sampled<const T>(rows: readonly T[], count = 1): readonly T[] {
  if (isCampaign || count >= rows.length) return rows;
  return Array.from({ length: count }, (_, at) => rows[Math.floor((at * rows.length) / count)]!);
}
