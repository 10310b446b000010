// `useRunners`, `useRunnerName`: the runners of a coordinator, for an admin.

import { useQuery } from "@tanstack/react-query";
import { call } from "./client.ts";
import type { Runner } from "./types.ts";

/** Registrations, drains and changes of the catalogue are no changes of sessions. */
export const REFRESH_MS = 2_000;
const RUNNERS_MAX = 1_000;

export function useRunners(isEnabled: boolean) {
  return useQuery({
    queryKey: ["runners"],
    queryFn: () =>
      call<{ readonly runners: readonly Runner[]; readonly nextCursor?: string }>(
        "GET",
        `/v1/runners?limit=${RUNNERS_MAX}`,
      ),
    enabled: isEnabled,
    refetchInterval: REFRESH_MS,
  });
}

/** The name of a runner, read once for each. Only admins see runners. */
export function useRunnerName(runnerId: string | undefined, isAdmin: boolean): string | undefined {
  const { data } = useQuery({
    queryKey: ["runner", runnerId],
    queryFn: () => call<Runner>("GET", `/v1/runners/${encodeURIComponent(runnerId ?? "")}`),
    enabled: isAdmin && runnerId !== undefined,
    staleTime: Infinity,
  });
  return data?.name;
}
