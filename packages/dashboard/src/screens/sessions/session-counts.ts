// `useSessionCounts`: how many sessions there are of each status, as the server counts them under the filters of
// the list that an index serves. Under any other filter nobody counts them.

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import { isSearch, type ListQuery } from "../../api/session-list.ts";

const REFRESH_MS = 3_000;

/** An answer of the server. */
export interface Counts {
  readonly counts: readonly {
    readonly status: string;
    readonly sessions: number;
    readonly isCut?: boolean;
  }[];
}

export type SessionCounts = (status?: string) => string | undefined;

/** @returns the number of a status, or of all; `undefined` while it is not known. */
export function useSessionCounts(query: ListQuery): SessionCounts {
  const { status: _, ...filters } = query;
  const isCounted = !isSearch(query);
  const { data } = useQuery({
    queryKey: ["session counts", filters],
    queryFn: () =>
      call<Counts>("GET", `/v1/session-counts?${new URLSearchParams(Object.entries(filters)).toString()}`),
    enabled: isCounted,
    refetchInterval: REFRESH_MS,
  });
  return (status) => (isCounted && data !== undefined ? countText(data, status) : undefined);
}

export function countText({ counts }: Counts, wanted?: string): string {
  const found = counts.filter(({ status }) => wanted === undefined || status === wanted);
  const sum = found.reduce((all, { sessions }) => all + sessions, 0);
  return `${sum.toLocaleString()}${found.some(({ isCut }) => isCut === true) ? "+" : ""}`;
}
