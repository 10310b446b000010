// All sessions, newest first, live. The filters are in the address.

import { Link, useSearch } from "@tanstack/react-router";
import { useRef } from "react";
import { ScreenHead } from "../../design/surfaces.tsx";
import { Button, Command, Empty, Problem, useChecked } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { useAbout } from "../../parts/use-session.ts";
import { Filters } from "./session-filters.tsx";
import { ColumnNames, SessionRows, useRowKeys, useVirtualRows } from "./session-rows.tsx";
import { useSessionCounts } from "./session-counts.ts";
import { SavedViews, SessionViews } from "./session-views.tsx";
import { BulkActions } from "./sessions-bulk.tsx";
import { queryOf } from "./sessions-search.ts";
import { SELECT_MAX, useSessionList, useVisibleRows, type ReadSessions } from "./use-session-list.ts";

export function Sessions() {
  const search = useSearch({ from: "/sessions" });
  const isLocal = useAbout()?.isLocal ?? true;
  const sessions = useSessionList(queryOf(search));
  const { list, place, rows, isRead, error } = sessions;
  const countOf = useSessionCounts(queryOf(search));
  const { checked, check, setChecked } = useChecked();
  const scroll = useRef<HTMLDivElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const virtual = useVirtualRows(rows, scroll, place.px);
  useVisibleRows(sessions, virtual.getVirtualItems());
  const onFocus = useRowKeys(rows, scroll, virtual, place);
  useKeys({ "/": () => searchBox.current?.focus() });
  useKeys({ x: () => check((document.activeElement as HTMLElement | null)?.dataset["session"]) }, scroll);
  return (
    <div className="flex h-full flex-col">
      <div className="px-4 pt-4 md:px-6">
        <ScreenHead
          title="Sessions"
          about={
            <output>
              {countOf(search.status) ?? `${rows.length.toLocaleString()}${list.hasMore ? "+" : ""}`}
            </output>
          }
        >
          <SavedViews search={search} />
        </ScreenHead>
      </div>
      <Filters search={search} isLocal={isLocal} searchBox={searchBox} />
      <SessionViews search={search} countOf={countOf} />
      <SearchedSessions sessions={sessions} />
      <BulkActions
        sessions={rows.filter(({ sessionId }) => checked.has(sessionId))}
        onDone={(left) => setChecked(new Set(left.map(({ sessionId }) => sessionId)))}
      >
        <SelectAll sessions={sessions} checked={checked} onSelect={(ids) => setChecked(new Set(ids))} />
      </BulkActions>
      {error === undefined ? null : (
        <div className="p-3">
          <Problem error={error} />
        </div>
      )}
      {isRead && rows.length === 0 ? (
        <NoSessions isFiltered={Object.keys(search).length > 0} isAll={!list.hasMore} />
      ) : (
        <>
          <ColumnNames>
            <input
              type="checkbox"
              checked={rows.length > 0 && checked.size >= rows.length}
              onChange={({ target }) =>
                setChecked(new Set(target.checked ? rows.map(({ sessionId }) => sessionId) : []))
              }
              className="size-5 accent-accent"
            />
          </ColumnNames>
          <SessionRows
            rows={rows}
            hasMore={list.hasMore}
            virtual={virtual}
            scroll={scroll}
            isLocal={isLocal}
            checked={checked}
            onCheck={check}
            onFocus={onFocus}
            onScroll={(px) => (place.px = px)}
          />
        </>
      )}
    </div>
  );
}

/** Selects what the filters find beyond the rows that are read. */
function SelectAll(props: {
  readonly sessions: ReadSessions;
  readonly checked: ReadonlySet<string>;
  readonly onSelect: (ids: readonly string[]) => void;
}) {
  const { sessions, checked, onSelect } = props;
  const { list, rows, readAll, isSearching } = sessions;
  const isCut = list.hasMore && rows.length >= SELECT_MAX;
  if (checked.size < rows.length || (!list.hasMore && !isCut)) return null;
  return isCut ? (
    <span className="text-soft">At most {SELECT_MAX.toLocaleString()} are selected at a time.</span>
  ) : (
    <Button isDisabled={isSearching} onClick={() => void readAll().then(onSelect)}>
      {isSearching ? `Reading: ${rows.length.toLocaleString()}…` : "Select all that the filters find"}
    </Button>
  );
}

/** How far a search has come that no index serves. */
function SearchedSessions({ sessions }: { readonly sessions: ReadSessions }) {
  const { list, isNarrowed, isRead, searched, isSearching, searchOn } = sessions;
  if (!isNarrowed || !isRead) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 border-b border-line px-4 py-1.5 text-sm text-soft md:px-6">
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
