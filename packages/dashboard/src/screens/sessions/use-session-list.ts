// The sessions of the table: read as far as a person looks, and read again after changes.

import { useQueryClient } from "@tanstack/react-query";
import type { VirtualItem } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { call } from "../../api/client.ts";
import { isSearch, listPath, SessionList, type ListQuery } from "../../api/session-list.ts";
import type { SessionPage } from "../../api/types.ts";
import { useChanges } from "../../parts/use-changes.ts";
import type { Place } from "./session-rows.tsx";

/** Rows that are read again above and below the visible ones. */
const MARGIN = 20;

export type ReadSessions = ReturnType<typeof useSessionList>;

/** The most sessions that are read to select all. */
export const SELECT_MAX = 5_000;

/** A list that was read, and the place in it. It is kept with the answers of the server, and goes with them. */
interface KeptList {
  readonly list: SessionList;
  readonly place: Place;
}

/** The sessions for the filters, as far as they were read, also when the person comes back to them. */
export function useSessionList(query: ListQuery) {
  const asked = JSON.stringify(query);
  const queries = useQueryClient();
  const { list, place } = useMemo(() => {
    const known = queries.getQueryData<KeptList>(["sessions", asked]);
    return known ?? { list: newList(JSON.parse(asked) as ListQuery), place: { px: 0, sessionId: undefined } };
  }, [asked]);
  const rows = useSyncExternalStore(list.subscribe, () => list.rows);
  const searched = useSyncExternalStore(list.subscribe, () => list.searched);
  const [isSearching, setSearching] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isRead, setRead] = useState(list.rows.length > 0);
  useEffect(() => {
    const isKept = list.rows.length > 0;
    setRead(isKept);
    setError(undefined);
    const reading = isKept ? list.refresh(0, list.rows.length) : list.loadMore();
    reading.then(() => setRead(true), setError);
    return () => void queries.setQueryData<KeptList>(["sessions", asked], { list, place });
  }, [list]);
  const searchOn = (): void => {
    setSearching(true);
    list
      .loadMore()
      .catch(setError)
      .finally(() => setSearching(false));
  };
  /** Reads all that match, up to `SELECT_MAX`. @returns their ids. */
  const readAll = async (): Promise<readonly string[]> => {
    setSearching(true);
    try {
      while (list.hasMore && list.rows.length < SELECT_MAX) await list.loadMore();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setSearching(false);
    }
    return list.rows.slice(0, SELECT_MAX).map(({ sessionId }) => sessionId);
  };
  return {
    list,
    place,
    readAll,
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
