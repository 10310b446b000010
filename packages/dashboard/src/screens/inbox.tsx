// Everything that waits for a person, answered in place.
//
//   inbox-1. The command that is to be approved is shown whole and as it is. An agent's text stands apart from the text of
//       this page.
//   inbox-2. A key answers only the item that is selected, and only once.

import { Link, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { SESSIONS_MAX, type Inbox, type OpenItem } from "../api/open-items.ts";
import { call } from "../api/client.ts";
import { LongText } from "../parts/long-text.tsx";
import { Button, Command, Empty, Problem, useNow } from "../parts/parts.tsx";
import { useKeys } from "../parts/shell.tsx";
import { ago, brief, dateText, json, shown } from "../parts/text.ts";
import { sessionPath, useRequest } from "../parts/use-session.ts";

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
  const [selectedId, setSelectedId] = useState<string>();
  const selected = Math.max(
    0,
    items.findIndex(({ id }) => id === selectedId),
  );
  const scroll = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 190,
    overscan: 4,
    getItemKey: (at) => items[at]?.id ?? at,
  });
  const go = (by: number): void => {
    const next = Math.max(0, Math.min(items.length - 1, selected + by));
    setSelectedId(items[next]?.id);
    virtual.scrollToIndex(next);
  };
  useKeys({
    j: () => go(1),
    ArrowDown: () => go(1),
    k: () => go(-1),
    ArrowUp: () => go(-1),
    Enter: () => {
      const item = items[selected];
      if (item !== undefined) void navigate({ to: "/sessions/$id", params: { id: item.sessionId } });
    },
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
                  item={items[index]!}
                  isSelected={index === selected}
                  onSelect={() => setSelectedId(items[index]!.id)}
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

interface ItemProps {
  readonly item: OpenItem;
  readonly isSelected: boolean;
  readonly onSelect: () => void;
}

function Item({ item, isSelected, onSelect }: ItemProps) {
  const { kind, path, sessionId, since, until, what, tool, action, folder, details, principal } = item;
  const now = useNow();
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isSelected && document.activeElement === document.body) card.current?.focus({ preventScroll: true });
  }, [isSelected]);
  return (
    <article
      ref={card}
      tabIndex={isSelected ? 0 : -1}
      aria-label={`${TITLES[kind]} of ${path.join(" > ")}`}
      aria-current={isSelected ? "true" : undefined}
      onFocus={onSelect}
      onClick={onSelect}
      className={`rounded-lg border bg-panel p-4 outline-offset-0 ${isSelected ? "border-accent" : "border-line"}`}
    >
      <header className="flex flex-wrap items-baseline gap-x-3 text-soft">
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
      <div className="mt-2 border-l-2 border-line pl-3">
        <LongText text={what} />
      </div>
      {action === undefined ? null : (
        <div className="mt-3">
          <p className="text-soft">
            wants to call <span className="font-mono text-text">{shown(tool ?? "")}</span>
            {folder === undefined ? "" : " in "}
            {folder === undefined ? null : <span className="font-mono text-text">{shown(folder)}</span>}
          </p>
          <div data-testid="action" className="mt-1 rounded-md bg-raised p-3">
            <LongText text={action} />
          </div>
        </div>
      )}
      {details === undefined ? null : (
        <details className="mt-2">
          <summary className="text-soft">Details</summary>
          <div className="mt-1 max-h-96 overflow-auto rounded-md bg-raised p-3">
            <LongText text={typeof details === "string" ? details : json(details)} />
          </div>
        </details>
      )}
      <Answer item={item} isSelected={isSelected} />
      <p className="mt-2 flex flex-wrap gap-x-3 text-xs text-soft">
        <span className="font-mono">{sessionId}</span>
        {until === undefined ? null : <span>until {dateText(until)}</span>}
        <span>for {principal}</span>
      </p>
    </article>
  );
}

function Answer({ item, isSelected }: Pick<ItemProps, "item" | "isSelected">) {
  const { wait, sessionId, kind, commands, session } = item;
  const { run, isBusy, error } = useRequest();
  const [done, setDone] = useState<string>();
  const [text, setText] = useState("");
  const [isWriting, setWriting] = useState(wait?.answer === "any");
  const box = useRef<HTMLTextAreaElement>(null);
  const queries = useQueryClient();
  const send = async (said: string, path: string, body?: unknown): Promise<void> => {
    if (isBusy || done !== undefined) return; // inbox-2.
    if (!(await run(() => call("POST", path, body)))) return;
    setDone(said);
    void queries.invalidateQueries({ queryKey: ["inbox"] });
  };
  const answer = (said: string, value: unknown): Promise<void> =>
    send(said, sessionPath(sessionId, "answer"), { question: String(wait?.id), answer: value });
  const reason = text.trim() === "" ? {} : { reason: text };
  const approve = (): void => void answer("Approved", { approved: true, ...reason });
  const deny = (): void => void answer("Denied", { approved: false, ...reason });
  const write = (): void => {
    setWriting(true);
    setTimeout(() => box.current?.focus());
  };
  const unpause = (): void => void send("It continues", sessionPath(sessionId, "unpause"));
  const canApprove = wait !== undefined && wait.answer !== "any";
  useKeys(
    isSelected && done === undefined
      ? {
          ...(canApprove ? { a: approve, d: deny } : {}),
          ...(wait === undefined ? {} : { e: write }),
          ...(kind === "pause" ? { u: unpause } : {}),
        }
      : {},
  );
  if (done !== undefined)
    return (
      <p role="status" className="mt-3 font-medium text-good">
        {done}
        {session.status === "input_required" ? ". The session takes it when it runs." : ""}
      </p>
    );
  const value = readAnswer(text);
  return (
    <div className="mt-3 space-y-2">
      {isWriting ? (
        <textarea
          ref={box}
          aria-label={canApprove ? "Reason" : "Answer"}
          placeholder={canApprove ? "Reason, which the agent reads" : "Answer: text, or JSON"}
          value={text}
          rows={2}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !canApprove && text !== "")
              void answer("Answered", value);
          }}
          className="w-full rounded-md border border-line bg-ground px-3 py-2"
        />
      ) : null}
      <div className="flex flex-wrap items-center gap-2">
        {canApprove ? (
          <>
            <Button kind="main" hint="a" isDisabled={isBusy} onClick={approve}>
              Approve
            </Button>
            <Button kind="danger" hint="d" isDisabled={isBusy} onClick={deny}>
              Deny
            </Button>
            {isWriting ? null : (
              <Button hint="e" onClick={write}>
                With a reason
              </Button>
            )}
          </>
        ) : null}
        {wait !== undefined && !canApprove ? (
          <Button
            kind="main"
            hint="Ctrl Enter"
            isDisabled={isBusy || text === ""}
            onClick={() => void answer("Answered", value)}
          >
            {typeof value === "string" ? "Answer" : "Answer as JSON"}
          </Button>
        ) : null}
        {kind === "pause" ? (
          <Button kind="main" hint="u" isDisabled={isBusy} onClick={unpause}>
            Unpause
          </Button>
        ) : null}
        <details className="text-soft">
          <summary>In a terminal</summary>
          {commands.map((command) => (
            <div key={command}>
              <Command>{command}</Command>
            </div>
          ))}
        </details>
      </div>
      {error === undefined ? null : <Problem error={error} />}
    </div>
  );
}

/** JSON is taken as such, and anything else as text. */
function readAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
