// Everything that waits for a person, answered in place.
//
// The selected item is the one with the focus, and only its keys act. An item that comes in selects nothing.
// When the selected item is gone, nothing is selected until a person chooses again. Another text under the
// same number is another item.

import { useSearch } from "@tanstack/react-router";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type RefObject } from "react";
import { canApprove, SESSIONS_MAX, type Inbox, type OpenItem } from "../../api/open-items.ts";
import { ScreenHead } from "../../design/surfaces.tsx";
import { Command, Empty, Problem, Reading, useChecked } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { BulkAnswer } from "./inbox-bulk.tsx";
import { InboxItem, textOf } from "./inbox-item.tsx";
import { Notices, withNotice, type Notice } from "./notices.tsx";
import { NotifyButton } from "./notifications.tsx";

export function readInboxSearch(search: Readonly<Record<string, unknown>>): { readonly item?: string } {
  const { item } = search;
  return typeof item === "string" && item !== "" ? { item: item.slice(0, 200) } : {};
}

export function InboxScreen({
  inbox,
  error,
}: {
  readonly inbox: Inbox | undefined;
  readonly error: unknown;
}) {
  const items = inbox?.items ?? [];
  const linked = useSearch({ from: "/inbox" }).item;
  const [notices, setNotices] = useState<readonly Notice[]>([]);
  const report = (notice: Notice): void => setNotices((before) => withNotice(before, notice));
  const { checked, check, setChecked } = useChecked();
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 190,
    overscan: 4,
    getItemKey: (at) => items[at]?.id ?? at,
  });
  const selection = useSelection(items, linked, inbox !== undefined, virtual);
  if (error !== undefined && error !== null && inbox === undefined)
    return (
      <div className="p-3">
        <Problem error={error} />
      </div>
    );
  if (inbox === undefined) return <Reading what="what waits for you" />;
  return (
    <div className="flex h-full flex-col">
      <div className="border-b border-line px-4 py-3 md:px-6">
        <ScreenHead
          title="Inbox"
          about={`${items.length.toLocaleString()}${inbox.cut.length > 0 ? "+" : ""}`}
        >
          <NotifyButton />
        </ScreenHead>
      </div>
      <BulkAnswer
        items={items.filter((item) => checked.has(item.id) && canApprove(item))}
        onDone={() => setChecked(new Set())}
        onNotice={report}
      />
      {notices.length === 0 ? null : (
        <div className="px-4 pt-3 md:px-6">
          <Notices notices={notices} hasLinks onClose={() => setNotices([])} />
        </div>
      )}
      <GoneItem items={items} linked={linked} selectedId={selection.selectedId} />
      {error === undefined || error === null ? null : (
        <div className="p-3">
          <Problem error={error} />
        </div>
      )}
      {items.length === 0 ? (
        <NoItems />
      ) : (
        <Items
          items={items}
          selection={selection}
          virtual={virtual}
          scroll={scroll}
          checked={checked}
          onCheck={check}
          shift={notices.length}
          onNotice={report}
        />
      )}
      {inbox.cut.length > 0 ? (
        <p className="border-t border-line p-2 text-soft">
          There are more: only the newest {SESSIONS_MAX} sessions of each status are read (
          {inbox.cut.map((status) => status.replace("_", " ")).join(", ")}).
        </p>
      ) : null}
    </div>
  );
}

type VirtualItems = Virtualizer<HTMLDivElement, Element>;
type Selection = ReturnType<typeof useSelection>;

/**
 * The selected item, and the item to which the page moves the focus: by a link, by keys, and when the inbox
 * is first read.
 *
 * @param linked the id of the item that the address names.
 */
function useSelection(
  items: readonly OpenItem[],
  linked: string | undefined,
  isRead: boolean,
  virtual: VirtualItems,
) {
  const [selectedId, setSelectedId] = useState(linked);
  /** The item to which the page moves the focus, and when it was told so. */
  const [wanted, setWanted] = useState<{ readonly id: string; readonly at: number }>();
  const selected = items.findIndex(({ id }) => id === selectedId);
  const focus = (item: OpenItem | undefined): void => {
    if (item === undefined) return;
    setSelectedId(item.id);
    setWanted({ id: item.id, at: performance.now() });
    virtual.scrollToIndex(items.indexOf(item));
  };
  const select = (item: OpenItem): void => {
    setSelectedId(item.id);
    setWanted(undefined);
  };
  const isThere = items.some(({ id }) => id === linked);
  useEffect(() => {
    if (linked !== undefined && isThere) focus(items.find(({ id }) => id === linked));
  }, [linked, isThere]);
  useEffect(() => {
    const { activeElement } = document;
    if (isRead && linked === undefined && activeElement?.closest("main") == null) focus(items[0]);
  }, [isRead]);
  const go = (by: number): void =>
    focus(items[selected < 0 ? 0 : Math.max(0, Math.min(items.length - 1, selected + by))]);
  useKeys({
    j: () => go(1),
    ArrowDown: () => go(1),
    k: () => go(-1),
    ArrowUp: () => go(-1),
  });
  return { selectedId, selected, wanted, focus, select };
}

/** Says that the item of the link, or the selected one, is not there any more. */
function GoneItem(props: {
  readonly items: readonly OpenItem[];
  readonly linked: string | undefined;
  readonly selectedId: string | undefined;
}) {
  const { items, linked, selectedId } = props;
  const isThere = (wanted: string): boolean => items.some(({ id }) => id === wanted);
  if (linked !== undefined)
    return isThere(linked) ? null : (
      <p role="status" className="border-b border-line px-3 py-2 text-soft">
        The item of this link waits no longer: it was answered, or its session has ended.
      </p>
    );
  return selectedId === undefined || isThere(selectedId) || items.length === 0 ? null : (
    <p role="status" className="border-b border-line px-3 py-2 text-soft">
      The selected item is gone: choose with j or k.
    </p>
  );
}

function NoItems() {
  return (
    <Empty title="Nothing waits for you">
      <p>
        Questions, approvals, pauses and uncertain effects of all sessions appear here. A coding agent or an
        agent file asks before each call that its permissions do not allow. An agent of code asks with{" "}
        <Command>ctx.requestInput(…)</Command>.
      </p>
    </Empty>
  );
}

function Items(props: {
  readonly items: readonly OpenItem[];
  readonly selection: Selection;
  readonly virtual: VirtualItems;
  readonly scroll: RefObject<HTMLDivElement | null>;
  readonly checked: ReadonlySet<string>;
  readonly onCheck: (id: string) => void;
  /** The number of notices above the list, which move it. */
  readonly shift: number;
  readonly onNotice: (notice: Notice) => void;
}) {
  const { items, selection, virtual, scroll, checked, onCheck, shift, onNotice } = props;
  const { selected, wanted, focus, select } = selection;
  return (
    <div ref={scroll} className="min-h-0 flex-1 overflow-auto">
      <ul
        aria-label="Inbox"
        className="relative mx-auto max-w-4xl"
        style={{ height: virtual.getTotalSize() }}
      >
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const item = items[index]!;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className="absolute inset-x-0 top-0 px-3 py-1.5"
              style={{ transform: `translateY(${start}px)` }}
            >
              <InboxItem
                key={textOf(item)}
                item={item}
                isSelected={index === selected}
                wantedAt={wanted?.id === item.id ? wanted.at : 0}
                place={`${shift} ${start}`}
                isChecked={checked.has(item.id)}
                onCheck={() => canApprove(item) && onCheck(item.id)}
                onSelect={() => select(item)}
                onAnswered={() => focus(items[index + 1] ?? items[index - 1])}
                onNotice={onNotice}
              />
            </li>
          );
        })}
      </ul>
    </div>
  );
}
