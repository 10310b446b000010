// The rows of the sessions. Only those in view are in the page, and keys move the focus over all of them.

import { costText, usdText } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import type { Session } from "../../api/types.ts";
import { StatusMark, useNow } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { ago, brief, count, dateText, whyText } from "../../parts/text.ts";

const ROW_PX = 58;

/** The place of a person in the list, for when they come back. */
export interface Place {
  px: number;
  /** The session whose row had the focus last. */
  sessionId: string | undefined;
}

type VirtualRows = Virtualizer<HTMLDivElement, Element>;

/**
 * @param scroll the part of the page that scrolls.
 * @param place where it stood when the person was here last, in pixels.
 */
export function useVirtualRows(
  rows: readonly Session[],
  scroll: RefObject<HTMLDivElement | null>,
  place: number,
): VirtualRows {
  return useVirtualizer({
    initialOffset: place,
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    getItemKey: (at) => rows[at]?.sessionId ?? at,
  });
}

/**
 * Moves the focus over the rows by keys, also to a row that is not made yet.
 *
 * @returns the call that says which session's row has the focus.
 */
export function useRowKeys(
  rows: readonly Session[],
  scroll: RefObject<HTMLDivElement | null>,
  virtual: VirtualRows,
  place: Place,
): (sessionId: string) => void {
  /** The session whose row had the focus last. */
  const [selectedId, setSelectedId] = useState(place.sessionId);
  const wantsFocus = useRef(false);
  const go = (by: number): void => {
    const at = rows.findIndex(({ sessionId }) => sessionId === selectedId);
    const next = at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by));
    setSelectedId(rows[next]?.sessionId);
    virtual.scrollToIndex(next);
    wantsFocus.current = true;
  };
  useEffect(() => {
    if (!wantsFocus.current || selectedId === undefined) return;
    const row = scroll.current?.querySelector<HTMLElement>(`a[data-session="${CSS.escape(selectedId)}"]`);
    row?.focus({ preventScroll: true });
    wantsFocus.current = row === undefined || row === null; // Its row may not be made yet.
  });
  useKeys({
    j: () => go(1),
    ArrowDown: () => go(1),
    k: () => go(-1),
    ArrowUp: () => go(-1),
    PageDown: () => go(10),
    PageUp: () => go(-10),
  });
  return (sessionId) => {
    place.sessionId = sessionId;
    setSelectedId(sessionId);
  };
}

export function SessionRows(props: {
  readonly rows: readonly Session[];
  readonly hasMore: boolean;
  readonly virtual: VirtualRows;
  readonly scroll: RefObject<HTMLDivElement | null>;
  readonly isLocal: boolean;
  readonly checked: ReadonlySet<string>;
  readonly onCheck: (sessionId: string) => void;
  readonly onFocus: (sessionId: string) => void;
  readonly onScroll: (px: number) => void;
}) {
  const { rows, hasMore, virtual, scroll, isLocal, checked, onCheck, onFocus, onScroll } = props;
  const now = useNow();
  return (
    <div
      ref={scroll}
      onScroll={(event) => onScroll(event.currentTarget.scrollTop)}
      className="min-h-0 flex-1 overflow-auto bg-panel"
      data-testid="sessions"
    >
      <ul aria-label="Sessions" className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const session = rows[item.index];
          return session === undefined ? null : (
            <li
              key={item.key}
              aria-setsize={hasMore ? -1 : rows.length}
              aria-posinset={item.index + 1}
              className={`absolute inset-x-0 top-0 flex items-stretch border-b border-line ${checked.has(session.sessionId) ? "bg-accent-ground" : ""}`}
              style={{ height: ROW_PX, transform: `translateY(${item.start}px)` }}
            >
              <label className="flex w-11 shrink-0 items-center justify-center md:pl-3">
                <input
                  type="checkbox"
                  aria-label={`Select ${brief(session.agent, 80)} ${session.sessionId}`}
                  checked={checked.has(session.sessionId)}
                  onChange={() => onCheck(session.sessionId)}
                  className="size-5 accent-accent"
                />
              </label>
              <Row session={session} onFocus={onFocus} isLocal={isLocal} now={now} />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** The columns, by the classes of their widths. */
const COLUMNS = {
  status: "w-44 shrink-0 truncate",
  agent: "w-28 shrink-0 truncate lg:w-32",
  title: "min-w-0 flex-1",
  cost: "w-24 shrink-0 truncate text-right",
  started: "w-20 shrink-0 text-right max-lg:hidden",
  changed: "w-20 shrink-0 text-right",
};

/** The names of the columns, over the rows of a wide window. */
export function ColumnNames(props: { readonly children: ReactNode }) {
  return (
    <div className="flex min-h-8 items-center border-b border-line text-sm text-soft">
      <label className="flex shrink-0 items-center justify-center gap-3 max-md:px-3 md:w-11 md:pl-3">
        {props.children}
        <span className="md:sr-only">Select all rows that are read</span>
      </label>
      <div aria-hidden className="flex min-w-0 flex-1 gap-3 px-3 py-1.5 max-md:hidden">
        <span className={COLUMNS.status}>State</span>
        <span className={COLUMNS.agent}>Agent</span>
        <span className={COLUMNS.title}>Title</span>
        <span className={COLUMNS.cost}>Cost</span>
        <span className={COLUMNS.started}>Started</span>
        <span className={COLUMNS.changed}>Changed</span>
      </div>
    </div>
  );
}

/** Rows of sessions that did not change are not rendered again. On a phone the title has a line of its own. */
const Row = memo(function Row(props: {
  readonly session: Session;
  readonly onFocus: (sessionId: string) => void;
  readonly isLocal: boolean;
  readonly now: number;
}) {
  const { session, onFocus, isLocal, now } = props;
  const { sessionId, title, agent, createdAt, updatedAt, depth, children } = session;
  const { cost, below } = spentTexts(session);
  const why = whyText(session, isLocal);
  const about = why === "" && children > 0 ? count(children, "child", "children") : brief(why, 300);
  return (
    <Link
      to="/sessions/$id"
      params={{ id: sessionId }}
      data-session={sessionId}
      onFocus={() => onFocus(sessionId)}
      className="flex h-full min-w-0 flex-1 items-center gap-x-3 px-3 -outline-offset-2 hover:bg-raised focus:bg-raised max-md:flex-wrap max-md:content-center max-md:pl-0"
    >
      <span className={`${COLUMNS.status} max-md:order-3 max-md:w-auto max-md:max-w-2/5`}>
        <StatusMark session={session} />
      </span>
      <span
        className={`${COLUMNS.agent} max-md:order-4 max-md:w-auto max-md:min-w-0 max-md:flex-1 max-md:text-soft`}
      >
        {depth > 0 ? <span className="text-soft">{"└ "}</span> : null}
        {brief(agent, 80)}
      </span>
      <span className={`${COLUMNS.title} max-md:order-1 max-md:basis-3/5`}>
        <span className="block truncate font-medium">
          {title === undefined ? about || sessionId : brief(title)}
        </span>
        <span className="flex gap-3 text-sm text-soft max-md:hidden">
          {title === undefined || about === "" ? null : <span className="min-w-0 truncate">{about}</span>}
          <span className="font-mono text-xs leading-5 max-xl:sr-only">{sessionId}</span>
        </span>
      </span>
      <span className={`${COLUMNS.cost} max-md:order-5 max-md:w-auto max-md:text-soft`}>
        {cost}
        {below === "" ? null : (
          <span className="block truncate text-xs text-soft max-md:hidden">{below} with those below</span>
        )}
      </span>
      <span className={`${COLUMNS.started} text-soft`} title={dateText(createdAt)}>
        {ago(createdAt, now)}
      </span>
      <span
        className={`${COLUMNS.changed} text-soft max-md:order-2 max-md:w-auto`}
        title={dateText(updatedAt)}
      >
        {ago(updatedAt, now)}
      </span>
    </Link>
  );
});

/** The cost of its own calls, and the amount that its budget has paid when that is more. */
function spentTexts({ cost, account }: Session): { readonly cost: string; readonly below: string } {
  const own = cost === undefined ? "" : costText(cost);
  const paid = account?.spent?.costMicroUsd ?? 0;
  if (paid <= (cost?.costMicroUsd ?? 0)) return { cost: own, below: "" };
  return own === ""
    ? { cost: `${usdText(paid)} of its budget`, below: "" }
    : { cost: own, below: usdText(paid) };
}
