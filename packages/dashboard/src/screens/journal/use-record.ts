// `useRecord`: one record of a journal with its payload, read when it is looked at.

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import type { JournalRecord } from "../../api/types.ts";
import { sessionPath } from "../../parts/use-session.ts";

const RECORD_MS = 30_000;

/** A record never changes once it is stored. */
export function useRecord(sessionId: string, seq: number | undefined) {
  return useQuery({
    queryKey: ["record", sessionId, seq],
    queryFn: async () => {
      const path = sessionPath(sessionId, `events?fromSeq=${seq}&limit=1`);
      const { records = [] } = await call<{ readonly records?: readonly JournalRecord[] }>("GET", path);
      return records.find((record) => record.seq === seq) ?? null;
    },
    enabled: seq !== undefined,
    staleTime: Infinity,
    gcTime: RECORD_MS,
  });
}
