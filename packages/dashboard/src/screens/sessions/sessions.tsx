// All sessions, newest first, live. The filters are in the address.

import { Link, useSearch } from "@tanstack/react-router";
import { useRef } from "react";
import { Button, Command, Empty, Problem, useChecked } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { useAbout } from "../../parts/use-session.ts";
import { Filters } from "./session-filters.tsx";
import { SessionRows, useRowKeys, useVirtualRows } from "./session-rows.tsx";
import { BulkActions } from "./sessions-bulk.tsx";
import { queryOf } from "./sessions-search.ts";
import { useSessionList, useVisibleRows, type ReadSessions } from "./use-session-list.ts";

export function Sessions() {
  const search = useSearch({ from: "/sessions" });
  const isLocal = useAbout()?.isLocal ?? true;
  const sessions = useSessionList(queryOf(search));
  const { list, rows, isRead, error } = sessions;
  const { checked, check, setChecked } = useChecked();
  const scroll = useRef<HTMLDivElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const virtual = useVirtualRows(rows, scroll);
  useVisibleRows(sessions, virtual.getVirtualItems());
  const onFocus = useRowKeys(rows, scroll, virtual);
  useKeys({ "/": () => searchBox.current?.focus() });
  useKeys({ x: () => check((document.activeElement as HTMLElement | null)?.dataset["session"]) }, scroll);
  return (
    <div className="flex h-full flex-col">
      <h1 className="sr-only">Sessions</h1>
      <Filters search={search} isLocal={isLocal} searchBox={searchBox}>
        <output className="self-center text-soft">
          {rows.length.toLocaleString()}
          {list.hasMore ? "+" : ""}
        </output>
      </Filters>
      <SearchedSessions sessions={sessions} />
      <BulkActions
        sessions={rows.filter(({ sessionId }) => checked.has(sessionId))}
        onDone={(left) => setChecked(new Set(left.map(({ sessionId }) => sessionId)))}
      />
      {error === undefined ? null : (
        <div className="p-3">
          <Problem error={error} />
        </div>
      )}
      {isRead && rows.length === 0 ? (
        <NoSessions isFiltered={Object.keys(search).length > 0} isAll={!list.hasMore} />
      ) : (
        <SessionRows
          rows={rows}
          hasMore={list.hasMore}
          virtual={virtual}
          scroll={scroll}
          isLocal={isLocal}
          checked={checked}
          onCheck={check}
          onFocus={onFocus}
        />
      )}
    </div>
  );
}

/** How far a search has come that no index serves. */
function SearchedSessions({ sessions }: { readonly sessions: ReadSessions }) {
  const { list, isNarrowed, isRead, searched, isSearching, searchOn } = sessions;
  if (!isNarrowed || !isRead) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 border-b border-line px-3 py-1.5 text-soft">
      <span role="status">
        Text, label, end and cost have no index: {searched.toLocaleString()} sessions were read, the newest
        first{list.hasMore ? "" : ", which is all"}.
      </span>
      {list.hasMore ? (
        <Button isDisabled={isSearching} onClick={searchOn}>
          Search on
        </Button>
      ) : null}
    </div>
  );
}

function NoSessions({ isFiltered, isAll }: { readonly isFiltered: boolean; readonly isAll: boolean }) {
  return isFiltered ? (
    <Empty title={isAll ? "No session is like that" : "No session that was read is like that"}>
      <p>
        <Link to="/sessions" search={{}} className="text-accent underline">
          Remove all filters
        </Link>{" "}
        to see the others.
      </p>
    </Empty>
  ) : (
    <Empty title="There is no session yet">
      <p>An agent at work is a session. Start one in a terminal, and it appears here:</p>
      <p className="mt-3">
        <Command>holdfast run FILE</Command>
      </p>
    </Empty>
  );
}
