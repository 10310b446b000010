// `blockedSessions`: the reasons why sessions at a coordinator are not taken by a runner. Storage does not
// have them; dispatch does.

import { RunService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";

const RUNS_MAX = 1_000;

/** @returns the reason for each blocked session among the first of the queue. */
export async function blockedSessions({
  url,
  token,
}: CoordinatorAccess): Promise<ReadonlyMap<string, string>> {
  const connection = new CoordinatorConnection({ url, token });
  try {
    const { runs } = await connection.ask(() =>
      connection.client(RunService).list({ status: "queued", limit: RUNS_MAX }),
    );
    return new Map(
      runs.flatMap(({ sessionId, blocked }) =>
        blocked === undefined ? [] : [[sessionId, blocked] as const],
      ),
    );
  } finally {
    connection.close();
  }
}
