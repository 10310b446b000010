// `givenBy`: the claims in the answer to a poll, as the runtime takes them.

import type { SessionSnapshot } from "@holdfast/core";
import type { Claim } from "@holdfast/proto";
import type { GivenClaim } from "@holdfast/runtime";
import type { CoordinatorTime } from "@holdfast/storage/remote";

/** The coordinator takes back a claim that is not acknowledged within this time. */
export const CLAIM_AGE_MS = 2_000;

const UTF8 = new TextDecoder();

/** The claim of an answer, with its time converted to this process's monotonic clock. */
export function givenBy(
  {
    token,
    before,
    snapshot,
    claimedAt,
    mayReturn,
  }: Pick<Claim, "token" | "snapshot" | "claimedAt"> & Partial<Claim>,
  time: Pick<CoordinatorTime, "monotonic" | "since">,
): GivenClaim {
  return {
    token: Number(token),
    ...(before === undefined ? {} : { before: Number(before) }),
    snapshot: JSON.parse(UTF8.decode(snapshot)) as SessionSnapshot,
    claimedAt: time.monotonic() - time.since(Number(claimedAt)),
    ...(mayReturn === true ? { mayReturn } : {}),
  };
}
