// `useSessionCounts`: how many sessions there are of each status, as far as the server counts them.
//
//   - An admin of a coordinator reads its metrics. They count at most 1,000 unfinished sessions of a status, and
//     again every ten seconds.
//   - The inbox, which every screen has, counts failed sessions for everybody.

import type { Status } from "@holdfast/proto/view";
import { useQuery } from "@tanstack/react-query";
import { readText } from "../../api/client.ts";
import { SESSIONS_MAX } from "../../api/open-items.ts";
import { useAbout } from "../../parts/use-session.ts";
import { useInbox } from "../inbox/use-inbox.ts";

const COUNTED_MAX = 1_000;
const REFRESH_MS = 10_000;

export type SessionCounts = ReadonlyMap<Status, string>;

export function useSessionCounts(): SessionCounts {
  const about = useAbout();
  const { data: inbox } = useInbox();
  const { data: counted } = useQuery({
    queryKey: ["session counts"],
    queryFn: async () => countsIn(await readText("/metrics")),
    enabled: about?.isLocal === false && about.kind === "admin",
    refetchInterval: REFRESH_MS,
  });
  const failed = inbox?.failed.length;
  return new Map([
    ...(counted ?? []),
    ...(failed === undefined ? [] : [["failed", amount(failed, SESSIONS_MAX)] as const]),
  ]);
}

/** @param metrics in the text format of Prometheus. */
export function countsIn(metrics: string): SessionCounts {
  const lines = metrics.matchAll(/^holdfast_sessions\{status="(\w+)"\} (\d+)$/gm);
  return new Map(
    [...lines].map(([, status, sessions]) => [status as Status, amount(Number(sessions), COUNTED_MAX)]),
  );
}

function amount(number: number, max: number): string {
  return `${number.toLocaleString()}${number >= max ? "+" : ""}`;
}
