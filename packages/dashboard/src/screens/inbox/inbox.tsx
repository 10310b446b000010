// Everything that waits for a person, answered in place.
//
//   inbox-1. The command that is to be approved is shown whole and as it is. An agent's text stands apart from the text of
//       this page.
//   inbox-2. The selected item is the one with the focus, and only its keys act. An item that comes in selects nothing. When the selected
//       item is gone, nothing is selected until a person chooses again.
//       Another text under the same number is another item.

import { repeatsAction } from "@holdfast/proto/view";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { SESSIONS_MAX, type Inbox, type OpenItem } from "../../api/open-items.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Button, Command, Empty, Problem, useNow } from "../../parts/parts.tsx";
import { useRest, useSeen } from "./seen.ts";
import { useKeys } from "../../parts/shell.tsx";
import { ago, brief, dateText, json, shown } from "../../parts/text.ts";
import { useAbout } from "../../parts/use-session.ts";
import { Answer } from "./inbox-answer.tsx";
import { BulkAnswer } from "./inbox-bulk.tsx";
import { NotifyButton } from "./notifications.tsx";

const TITLES: Readonly<Record<OpenItem["kind"], string>> = {
  uncertain_effect: "Uncertain effect",
  approval: "Approval",
  question: "Question",
  pause: "Paused",
  answered: "Answered",
};

export function InboxScreen({
  inbox,
  error,
}: {
  readonly inbox: Inbox | undefined;
  readonly error: unknown;
}) {
  const items = inbox?.items ?? [];
  const linked = useSearch({ from: "/" }).item;
  const [selectedId, setSelectedId] = useState(linked);
  const [unpaused, setUnpaused] = useState<readonly string[]>([]);
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const selected = items.findIndex(({ id }) => id === selectedId);
  /** The item to which the page moves the focus, and when it was told so. */
  const [wanted, setWanted] = useState<{ readonly id: string; readonly at: number }>();
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 190,
    overscan: 4,
    getItemKey: (at) => items[at]?.id ?? at,
  });
  const focus = (item: OpenItem | undefined): void => {
    if (item === undefined) return;
    setSelectedId(item.id);
    setWanted({ id: item.id, at: performance.now() });
    virtual.scrollToIndex(items.indexOf(item));
  };
  const go = (by: number): void =>
    focus(items[selected < 0 ? 0 : Math.max(0, Math.min(items.length - 1, selected + by))]);
  const isThere = items.some(({ id }) => id === linked);
  useEffect(() => {
    if (linked !== undefined && isThere) focus(items.find(({ id }) => id === linked));
  }, [linked, isThere]);
  const isRead = inbox !== undefined;
  useEffect(() => {
    const { activeElement } = document;
    if (isRead && linked === undefined && activeElement?.closest("main") == null) focus(items[0]);
  }, [isRead]);
  const check = (item: OpenItem | undefined): void => {
    if (item === undefined || !canApprove(item)) return;
    const next = new Set(checked);
    if (!next.delete(item.id)) next.add(item.id);
    setChecked(next);
  };
  useKeys({
    j: () => go(1),
    ArrowDown: () => go(1),
    k: () => go(-1),
    ArrowUp: () => go(-1),
  });
  if (error !== undefined && error !== null && inbox === undefined)
    return (
      <div className="p-3">
        <Problem error={error} />
      </div>
    );
  if (inbox === undefined) return <p className="p-6 text-soft">Reading what waits for you…</p>;
  return (
    <div className="flex h-full flex-col">
      <h1 className="sr-only">Inbox</h1>
      <NotifyButton />
      <BulkAnswer
        items={items.filter((item) => checked.has(item.id) && canApprove(item))}
        onDone={() => setChecked(new Set())}
      />
      <Unpaused sessionIds={unpaused} onClose={() => setUnpaused([])} />
      {linked === undefined || isThere ? null : (
        <p role="status" className="border-b border-line px-3 py-2 text-soft">
          The item of this link waits no longer: it was answered, or its session has ended.
        </p>
      )}
      {selectedId === undefined || selected >= 0 || linked !== undefined || items.length === 0 ? null : (
        <p role="status" className="border-b border-line px-3 py-2 text-soft">
          The selected item is gone: choose with j or k.
        </p>
      )}
      {error === undefined || error === null ? null : (
        <div className="p-3">
          <Problem error={error} />
        </div>
      )}
      {items.length === 0 ? (
        <Empty title="Nothing waits for you">
          <p>
            Questions, approvals, pauses and uncertain effects of all sessions appear here. An agent asks for
            approval with <Command>ctx.approve(…)</Command>, or because a rule of its permissions says{" "}
            <Command>ask</Command>.
          </p>
        </Empty>
      ) : (
        <div ref={scroll} className="min-h-0 flex-1 overflow-auto">
          <ul
            aria-label="Inbox"
            className="relative mx-auto max-w-4xl"
            style={{ height: virtual.getTotalSize() }}
          >
            {virtual.getVirtualItems().map(({ index, key, start }) => (
              <li
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="absolute inset-x-0 top-0 px-3 py-1.5"
                style={{ transform: `translateY(${start}px)` }}
              >
                <Item
                  key={textOf(items[index]!)}
                  item={items[index]!}
                  isSelected={index === selected}
                  wantedAt={wanted?.id === items[index]!.id ? wanted.at : 0}
                  place={start}
                  isChecked={checked.has(items[index]!.id)}
                  onCheck={() => check(items[index])}
                  onSelect={() => {
                    setSelectedId(items[index]!.id);
                    setWanted(undefined);
                  }}
                  onAnswered={() => focus(items[index + 1] ?? items[index - 1])}
                  onUnpaused={() =>
                    setUnpaused((before) => [...new Set([...before, items[index]!.sessionId])].slice(-5))
                  }
                />
              </li>
            ))}
          </ul>
        </div>
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

/** An unpaused session waits for nobody, so its item is gone. This line says what it still needs. */
function Unpaused(props: { readonly sessionIds: readonly string[]; readonly onClose: () => void }) {
  const { sessionIds, onClose } = props;
  const isLocal = useAbout()?.isLocal ?? false;
  if (sessionIds.length === 0) return null;
  return (
    <div role="status" className="flex flex-wrap items-center gap-2 border-b border-line bg-panel px-3 py-2">
      <div className="min-w-0 flex-1 space-y-1">
        {sessionIds.map((id) => (
          <p key={id} className="break-words">
            <Link to="/sessions/$id" params={{ id }} className="font-mono text-xs text-accent underline">
              {id}
            </Link>{" "}
            is unpaused.{" "}
            {isLocal ? (
              <>
                If no process runs it, continue it with <Command>{`holdfast resume ${id}`}</Command>
              </>
            ) : (
              "A matching runner continues it."
            )}
          </p>
        ))}
      </div>
      <Button onClick={onClose}>Close</Button>
    </div>
  );
}

interface ItemProps {
  readonly item: OpenItem;
  readonly isSelected: boolean;
  readonly isChecked: boolean;
  readonly onCheck: () => void;
  readonly onSelect: () => void;
  /** Called when the item was answered and has the focus. */
  readonly onAnswered: () => void;
  /** When the page gave it the focus; 0 for never. */
  readonly wantedAt: number;
  /** Where it stands in the list. */
  readonly place: number;
  readonly onUnpaused: () => void;
}

export function readInboxSearch(search: Readonly<Record<string, unknown>>): { readonly item?: string } {
  const { item } = search;
  return typeof item === "string" && item !== "" ? { item: item.slice(0, 200) } : {};
}

function canApprove({ wait }: OpenItem): boolean {
  return wait !== undefined && wait.answer !== "any";
}

/** Everything of an item that a person reads before an answer. */
function textOf({ kind, what, tool, action, folder, details }: OpenItem): string {
  return JSON.stringify([kind, what, tool, action, folder, details]);
}

function Item(props: ItemProps) {
  const { item, isSelected, isChecked, onCheck, onSelect, onUnpaused, onAnswered, wantedAt, place } = props;
  const { kind, path, sessionId, since, until, what, tool, action, folder, details, principal } = item;
  const now = useNow();
  const card = useRef<HTMLElement>(null);
  const navigate = useNavigate();
  const { isSeen, onSeen } = useSeen([
    ...(repeatsAction(item) ? [] : ["what"]),
    ...(action === undefined ? [] : ["action"]),
    ...(details === undefined ? [] : ["details"]),
  ]);
  const isAtRest = useRest(`${place} ${wantedAt}`);
  useEffect(() => {
    if (wantedAt === 0) return;
    card.current?.focus({ preventScroll: true });
    card.current?.scrollIntoView({ block: "nearest" });
    onSelect();
  }, [wantedAt]);
  useKeys({ x: onCheck }, card);
  return (
    <article
      ref={card}
      tabIndex={isSelected ? 0 : -1}
      aria-label={`${TITLES[kind]} of ${path.join(" > ")}`}
      aria-current={isSelected ? "true" : undefined}
      onFocus={onSelect}
      onKeyDown={({ key, repeat, target, currentTarget }) => {
        if (key === "Enter" && !repeat && target === currentTarget)
          void navigate({ to: "/sessions/$id", params: { id: sessionId } });
      }}
      className="rounded-lg border border-line bg-panel p-4 outline-offset-0 focus-within:border-accent focus:outline-2 focus:outline-accent"
    >
      <header className="flex flex-wrap items-baseline gap-x-3 text-soft">
        {canApprove(item) ? (
          <input
            type="checkbox"
            aria-label={`Select ${TITLES[kind].toLowerCase()} of ${path.join(" > ")}`}
            checked={isChecked}
            onChange={onCheck}
            className="size-6 self-center accent-accent"
          />
        ) : null}
        <span
          className={`font-semibold ${kind === "uncertain_effect" || kind === "pause" ? "text-bad" : "text-warn"}`}
        >
          {TITLES[kind]}
        </span>
        <Link to="/sessions/$id" params={{ id: sessionId }} className="font-medium text-text hover:underline">
          {path.map((name) => brief(name, 60)).join(" › ")}
        </Link>
        <span className="ml-auto" title={dateText(since)}>
          {ago(since, now)}
        </span>
      </header>
      {repeatsAction(item) ? null : (
        <div className="mt-2 border-l-2 border-line pl-3">
          <LongText text={what} onSeen={() => onSeen("what")} />
        </div>
      )}
      {action === undefined ? null : (
        <div className="mt-3">
          <p className="text-soft">
            wants to call <span className="font-mono text-text">{shown(tool ?? "")}</span>
            {folder === undefined ? "" : " in "}
            {folder === undefined ? null : <span className="font-mono text-text">{shown(folder)}</span>}
          </p>
          <div data-testid="action" className="mt-1 rounded-md bg-raised p-3">
            <LongText text={action} onSeen={() => onSeen("action")} />
          </div>
        </div>
      )}
      {details === undefined ? null : (
        <div className="mt-2">
          <p className="text-soft">Details</p>
          <div className="mt-1 rounded-md bg-raised p-3">
            <LongText
              text={typeof details === "string" ? details : json(details)}
              onSeen={() => onSeen("details")}
            />
          </div>
        </div>
      )}
      <Answer
        item={item}
        card={card}
        isSeen={isSeen}
        isAtRest={isAtRest}
        onUnpaused={onUnpaused}
        onAnswered={onAnswered}
      />
      <p className="mt-2 flex flex-wrap gap-x-3 text-xs text-soft">
        <span className="font-mono">{sessionId}</span>
        {until === undefined ? null : <span>until {dateText(until)}</span>}
        <span>for {principal}</span>
        <Link to="/" search={{ item: item.id }} className="underline">
          link
        </Link>
      </p>
    </article>
  );
}
