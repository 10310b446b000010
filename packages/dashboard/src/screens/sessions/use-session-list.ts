// The sessions of the table: read as far as a person looks, and read again after changes.

import type { VirtualItem } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { call } from "../../api/client.ts";
import { isSearch, listPath, SessionList, type ListQuery } from "../../api/session-list.ts";
import type { SessionPage } from "../../api/types.ts";
import { useChanges } from "../../parts/use-changes.ts";

/** Rows that are read again above and below the visible ones. */
const MARGIN = 20;

export type ReadSessions = ReturnType<typeof useSessionList>;

/** The sessions for the filters, as far as they were read. */
export function useSessionList(query: ListQuery) {
  const asked = JSON.stringify(query);
  const list = useMemo(() => newList(JSON.parse(asked) as ListQuery), [asked]);
  const rows = useSyncExternalStore(list.subscribe, () => list.rows);
  const searched = useSyncExternalStore(list.subscribe, () => list.searched);
  const [isSearching, setSearching] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isRead, setRead] = useState(false);
  useEffect(() => {
    setRead(false);
    setError(undefined);
    list.loadMore().then(() => setRead(true), setError);
  }, [list]);
  const searchOn = (): void => {
    setSearching(true);
    list
      .loadMore()
      .catch(setError)
      .finally(() => setSearching(false));
  };
  return {
    list,
    rows,
    searched,
    isNarrowed: isSearch(query),
    isSearching,
    searchOn,
    error,
    setError,
    isRead,
    setRead,
  };
}

/** Reads on before the last visible row, and reads the visible rows again after changes. */
export function useVisibleRows(sessions: ReadSessions, visible: readonly VirtualItem[]): void {
  const { list, rows, isNarrowed, isRead, setRead, setError } = sessions;
  const first = visible[0]?.index ?? 0;
  const last = visible.at(-1)?.index ?? 0;
  useEffect(() => {
    if (isRead && !isNarrowed && last >= rows.length - 2 * MARGIN && list.hasMore)
      list.loadMore().catch(setError);
  }, [list, isRead, last, rows.length, isNarrowed]);
  const range = useRef({ first, last });
  range.current = { first, last };
  useChanges({
    show: (changed) => list.show(changed),
    async read() {
      const from = isNarrowed ? 0 : Math.max(0, range.current.first - MARGIN);
      try {
        await list.refresh(from, range.current.last - from + MARGIN + 1);
        if (from > 0) await list.refresh(0, MARGIN); // New sessions come in above.
        setError(undefined);
        setRead(true);
      } catch (thrown) {
        setError(thrown);
      }
    },
  });
}

function newList(query: ListQuery): SessionList {
  return new SessionList((page) => call<SessionPage>("GET", listPath(page)), query);
}
