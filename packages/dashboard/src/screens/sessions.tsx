// All sessions, newest first, live. The filters are in the address.

import { costText, usdText, STATUSES } from "@holdfast/proto/view";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState, useSyncExternalStore, type RefObject } from "react";
import { call } from "../api/client.ts";
import { isSearch, listPath, SessionList, type ListQuery } from "../api/session-list.ts";
import type { Session, SessionPage } from "../api/types.ts";
import { Button, Command, Empty, Problem, StatusMark, useNow } from "../parts/parts.tsx";
import { useKeys } from "../parts/shell.tsx";
import { ago, brief, dateText, whyText } from "../parts/text.ts";
import { BulkActions } from "./sessions-bulk.tsx";
import { useChanges } from "../parts/use-changes.ts";
import { useAbout } from "../parts/use-session.ts";

const ROW_PX = 54;
/** Rows that are read again above and below the visible ones. */
const MARGIN = 20;

export interface SessionsSearch {
  readonly status?: string;
  readonly agent?: string;
  readonly owner?: string;
  /** A demand of the session: `name` or `name=value`. */
  readonly label?: string;
  readonly text?: string;
  /** The first and the last day of its end, as `2026-11-27`. */
  readonly endedFrom?: string;
  readonly endedTo?: string;
  /** The least that it has spent, in dollars. */
  readonly cost?: string;
}

const FILTERS = ["status", "agent", "owner", "label", "text", "endedFrom", "endedTo", "cost"] as const;

export function readSessionsSearch(search: Readonly<Record<string, unknown>>): SessionsSearch {
  return Object.fromEntries(
    FILTERS.flatMap((name) => {
      const value = search[name];
      const text = typeof value === "number" ? String(value) : value;
      return typeof text === "string" && text !== "" ? [[name, text.slice(0, 200)]] : [];
    }),
  );
}

export function Sessions() {
  const search = useSearch({ from: "/sessions" });
  const navigate = useNavigate({ from: "/sessions" });
  const isLocal = useAbout()?.isLocal ?? true;
  const { status, agent, owner, label = "", text = "", endedFrom = "", endedTo = "", cost = "" } = search;
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const asked = JSON.stringify(queryOf(search));
  const list = useMemo(() => newList(JSON.parse(asked) as ListQuery), [asked]);
  const rows = useSyncExternalStore(list.subscribe, () => list.rows);
  const searched = useSyncExternalStore(list.subscribe, () => list.searched);
  const isNarrowed = isSearch(queryOf(search));
  const [isSearching, setSearching] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isRead, setRead] = useState(false);
  /** The session whose row had the focus last. */
  const [selectedId, setSelectedId] = useState<string>();
  const scroll = useRef<HTMLDivElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const now = useNow();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    getItemKey: (at) => rows[at]?.sessionId ?? at,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;

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
  useEffect(() => {
    if (isRead && !isNarrowed && last >= rows.length - 2 * MARGIN && list.hasMore)
      list.loadMore().catch(setError);
  }, [list, isRead, last, rows.length, isNarrowed]);

  const range = useRef({ first, last });
  range.current = { first, last };
  useChanges({
    show: (sessions) => list.show(sessions),
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

  const go = (by: number): void => {
    const at = rows.findIndex(({ sessionId }) => sessionId === selectedId);
    const next = at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by));
    setSelectedId(rows[next]?.sessionId);
    virtual.scrollToIndex(next);
    wantsFocus.current = true;
  };
  const wantsFocus = useRef(false);
  useEffect(() => {
    if (!wantsFocus.current || selectedId === undefined) return;
    const row = scroll.current?.querySelector<HTMLElement>(`a[data-session="${CSS.escape(selectedId)}"]`);
    row?.focus({ preventScroll: true });
    wantsFocus.current = row === undefined || row === null; // Its row may not be made yet.
  });
  const check = (sessionId: string | undefined): void => {
    if (sessionId === undefined) return;
    const next = new Set(checked);
    if (!next.delete(sessionId)) next.add(sessionId);
    setChecked(next);
  };
  useKeys({
    j: () => go(1),
    ArrowDown: () => go(1),
    k: () => go(-1),
    ArrowUp: () => go(-1),
    PageDown: () => go(10),
    PageUp: () => go(-10),
    "/": () => searchBox.current?.focus(),
  });
  useKeys({ x: () => check((document.activeElement as HTMLElement | null)?.dataset["session"]) }, scroll);
  const set = (change: SessionsSearch): void =>
    void navigate({ search: readSessionsSearch({ ...search, ...change }), replace: true });

  const field = "rounded-md border border-line bg-panel px-2 py-1.5";
  return (
    <div className="flex h-full flex-col">
      <h1 className="sr-only">Sessions</h1>
      <div role="search" className="flex flex-wrap gap-2 border-b border-line px-3 py-2">
        <select
          aria-label="Status"
          value={status ?? ""}
          onChange={(event) => set({ status: event.target.value })}
          className={field}
        >
          <option value="">every status</option>
          {STATUSES.map((each) => (
            <option key={each} value={each}>
              {each.replace("_", " ")}
            </option>
          ))}
        </select>
        <FilterBox label="Agent" value={agent ?? ""} onChange={(value) => set({ agent: value })} />
        {isLocal ? null : (
          <FilterBox label="Owner" value={owner ?? ""} onChange={(value) => set({ owner: value })} />
        )}
        <FilterBox label="Label" value={label} onChange={(value) => set({ label: value })} />
        <FilterBox
          label="Search"
          placeholder="Search ( / )"
          box={searchBox}
          className="min-w-32 flex-1"
          value={text}
          onChange={(value) => set({ text: value })}
        />
        <DayBox label="Ended from" value={endedFrom} onChange={(value) => set({ endedFrom: value })} />
        <DayBox label="to" value={endedTo} onChange={(value) => set({ endedTo: value })} />
        <FilterBox label="Spent from, $" value={cost} onChange={(value) => set({ cost: value })} />
        <output className="self-center text-soft">
          {rows.length.toLocaleString()}
          {list.hasMore ? "+" : ""}
        </output>
      </div>
      {isNarrowed && isRead ? (
        <div className="flex flex-wrap items-center gap-x-3 border-b border-line px-3 py-1.5 text-soft">
          <span role="status">
            Text, label, end and cost have no index: {searched.toLocaleString()} sessions were read, the
            newest first{list.hasMore ? "" : ", which is all"}.
          </span>
          {list.hasMore ? (
            <Button isDisabled={isSearching} onClick={searchOn}>
              Search on
            </Button>
          ) : null}
        </div>
      ) : null}
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
        <div ref={scroll} className="min-h-0 flex-1 overflow-auto" data-testid="sessions">
          <ul aria-label="Sessions" className="relative" style={{ height: virtual.getTotalSize() }}>
            {items.map((item) => {
              const session = rows[item.index];
              return session === undefined ? null : (
                <li
                  key={item.key}
                  aria-setsize={list.hasMore ? -1 : rows.length}
                  aria-posinset={item.index + 1}
                  className="absolute inset-x-0 top-0 flex items-stretch border-b border-line"
                  style={{ height: ROW_PX, transform: `translateY(${item.start}px)` }}
                >
                  <label className="flex shrink-0 items-center px-2">
                    <input
                      type="checkbox"
                      aria-label={`Select ${brief(session.agent, 80)} ${session.sessionId}`}
                      checked={checked.has(session.sessionId)}
                      onChange={() => check(session.sessionId)}
                      className="size-6 accent-accent"
                    />
                  </label>
                  <Row session={session} onFocus={setSelectedId} isLocal={isLocal} now={now} />
                </li>
              );
            })}
          </ul>
        </div>
      )}
    </div>
  );
}

/** Rows of sessions that did not change are not rendered again. */
const Row = memo(function Row(props: {
  readonly session: Session;
  readonly onFocus: (sessionId: string) => void;
  readonly isLocal: boolean;
  readonly now: number;
}) {
  const { session, onFocus, isLocal, now } = props;
  const { sessionId, agent, updatedAt, depth, children } = session;
  const cost = spentText(session);
  const why = whyText(session, isLocal);
  return (
    <Link
      to="/sessions/$id"
      params={{ id: sessionId }}
      data-session={sessionId}
      onFocus={() => onFocus(sessionId)}
      className="block h-full min-w-0 flex-1 px-3 py-1.5 -outline-offset-2 hover:bg-raised focus:bg-raised"
    >
      <span className="flex items-baseline gap-3">
        <span className="w-40 shrink-0 truncate max-sm:w-auto max-sm:max-w-[38%]">
          <StatusMark session={session} />
        </span>
        <span className="truncate font-medium">
          {depth > 0 ? <span className="text-soft">{"└ "}</span> : null}
          {brief(agent, 80)}
        </span>
        <span className="hidden truncate font-mono text-xs text-soft md:inline">{sessionId}</span>
        <span className="ml-auto shrink-0 text-soft" title={dateText(updatedAt)}>
          {cost === "" ? "" : `${cost} · `}
          {ago(updatedAt, now)}
        </span>
      </span>
      <span className="block truncate text-[13px] text-soft sm:pl-43">
        {why === "" ? (children > 0 ? `${children} children` : " ") : brief(why, 300)}
      </span>
    </Link>
  );
});

/** The cost of its own calls, and the amount that its budget has paid when that is more. */
function spentText({ cost, account }: Session): string {
  const own = cost === undefined ? "" : costText(cost);
  const paid = account?.spent?.costMicroUsd ?? 0;
  if (paid <= (cost?.costMicroUsd ?? 0)) return own;
  return own === "" ? `${usdText(paid)} of its budget` : `${own}, ${usdText(paid)} with those below`;
}

/** A filter that is applied when its typing is done. */
function FilterBox(props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly className?: string;
  readonly box?: RefObject<HTMLInputElement | null>;
}) {
  const { label, value, onChange, placeholder = label, className = "w-32", box } = props;
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      ref={box}
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => text !== value && onChange(text)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onChange(text);
        if (event.key === "Escape") event.currentTarget.blur();
      }}
      className={`rounded-md border border-line bg-panel px-2 py-1.5 ${className}`}
    />
  );
}

function DayBox(props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const { label, value, onChange } = props;
  return (
    <label className="flex items-center gap-1.5 text-soft">
      {label}
      <input
        type="date"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="rounded-md border border-line bg-panel px-2 py-1 text-text"
      />
    </label>
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

function newList(query: ListQuery): SessionList {
  return new SessionList((page) => call<SessionPage>("GET", listPath(page)), query);
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MICRO = 1_000_000;

/** The request for the filters in the address. A filter that cannot be read is none. */
function queryOf(search: SessionsSearch): ListQuery {
  const { status, agent, owner, label, text, endedFrom, endedTo, cost } = search;
  const micro = Math.round(Number(cost) * MICRO);
  return Object.fromEntries(
    Object.entries({
      status,
      agent,
      owner,
      label,
      text,
      endedFrom: dayBegin(endedFrom, 0),
      endedBefore: dayBegin(endedTo, 1),
      costFromMicroUsd:
        cost !== undefined && Number.isSafeInteger(micro) && micro >= 0 ? String(micro) : undefined,
    }).filter(([, value]) => value !== undefined),
  );
}

/** The begin of a day of this browser's time zone, some days later. */
function dayBegin(day: string | undefined, daysLater: number): string | undefined {
  if (day === undefined || !DAY.test(day)) return undefined;
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return String(Math.max(0, new Date(year, month - 1, date + daysLater).getTime()));
}
