// The rows of the sessions. Only those in view are in the page, and keys move the focus over all of them.

import { costText, usdText } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef, useState, type RefObject } from "react";
import type { Session } from "../../api/types.ts";
import { StatusMark, useNow } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { ago, brief, count, dateText, whyText } from "../../parts/text.ts";

const ROW_PX = 54;

type VirtualRows = Virtualizer<HTMLDivElement, Element>;

/** @param scroll the part of the page that scrolls. */
export function useVirtualRows(
  rows: readonly Session[],
  scroll: RefObject<HTMLDivElement | null>,
): VirtualRows {
  return useVirtualizer({
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
): (sessionId: string) => void {
  /** The session whose row had the focus last. */
  const [selectedId, setSelectedId] = useState<string>();
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
  return setSelectedId;
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
}) {
  const { rows, hasMore, virtual, scroll, isLocal, checked, onCheck, onFocus } = props;
  const now = useNow();
  return (
    <div ref={scroll} className="min-h-0 flex-1 overflow-auto" data-testid="sessions">
      <ul aria-label="Sessions" className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const session = rows[item.index];
          return session === undefined ? null : (
            <li
              key={item.key}
              aria-setsize={hasMore ? -1 : rows.length}
              aria-posinset={item.index + 1}
              className="absolute inset-x-0 top-0 flex items-stretch border-b border-line"
              style={{ height: ROW_PX, transform: `translateY(${item.start}px)` }}
            >
              <label className="flex shrink-0 items-center px-2">
                <input
                  type="checkbox"
                  aria-label={`Select ${brief(session.agent, 80)} ${session.sessionId}`}
                  checked={checked.has(session.sessionId)}
                  onChange={() => onCheck(session.sessionId)}
                  className="size-6 accent-accent"
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

/** Rows of sessions that did not change are not rendered again. */
const Row = memo(function Row(props: {
  readonly session: Session;
  readonly onFocus: (sessionId: string) => void;
  readonly isLocal: boolean;
  readonly now: number;
}) {
  const { session, onFocus, isLocal, now } = props;
  const { sessionId, title, agent, updatedAt, depth, children } = session;
  const { cost, below } = spentTexts(session);
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
        <span className="w-52 shrink-0 truncate max-sm:w-auto max-sm:max-w-2/5">
          <StatusMark session={session} />
        </span>
        <span className="max-w-2/5 shrink-0 truncate font-medium">
          {depth > 0 ? <span className="text-soft">{"└ "}</span> : null}
          {brief(agent, 80)}
        </span>
        {title === undefined ? null : <span className="truncate">{brief(title)}</span>}
        <span className="hidden truncate font-mono text-xs text-soft lg:inline">{sessionId}</span>
        <span className="ml-auto shrink-0 text-soft" title={dateText(updatedAt)}>
          {cost === "" ? "" : `${cost} · `}
          {below === "" ? null : <span className="max-sm:hidden">{below} with those below · </span>}
          {ago(updatedAt, now)}
        </span>
      </span>
      <span className="block truncate text-sm text-soft sm:pl-55">
        {why === "" ? (children > 0 ? count(children, "child", "children") : " ") : brief(why, 300)}
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
