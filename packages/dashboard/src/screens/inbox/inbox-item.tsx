// One item of the inbox: the texts that an answer is about, and the answer.
//
// The command that is to be approved is shown whole and as it is. An agent's text stands apart from the text
// of this page.

import { repeatsAction } from "@holdfast/proto/view";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { canApprove, type OpenItem } from "../../api/open-items.ts";
import { THING } from "../../design/surfaces.tsx";
import { ChangeLines } from "../../parts/reading/change-lines.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { useNow } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { ago, brief, dateText, json, shown } from "../../parts/text.ts";
import { Answer } from "./inbox-answer.tsx";
import type { Notice } from "./notices.tsx";
import { useRest, useSeen } from "./seen.ts";

const TITLES: Readonly<Record<OpenItem["kind"], string>> = {
  uncertain_effect: "Uncertain effect",
  approval: "Approval",
  question: "Question",
  pause: "Paused",
  answered: "Answered",
};

/** Everything of an item that a person reads before an answer. */
export function textOf({ kind, what, tool, action, folder, askedBy, details }: OpenItem): string {
  return JSON.stringify([kind, what, tool, action, folder, askedBy, details]);
}

export function InboxItem(props: {
  readonly item: OpenItem;
  readonly isSelected: boolean;
  readonly isChecked: boolean;
  readonly onCheck: () => void;
  readonly onSelect: () => void;
  /** Called when the item was answered and has the focus. */
  readonly onAnswered: () => void;
  /** When the page gave it the focus; 0 for never. */
  readonly wantedAt: number;
  /** Where it stands on the screen. */
  readonly place: string;
  readonly onNotice: (notice: Notice) => void;
}) {
  const { item, isSelected, isChecked, onCheck, onSelect, onNotice, onAnswered, wantedAt, place } = props;
  const { kind, path, sessionId } = item;
  const card = useRef<HTMLElement>(null);
  const navigate = useNavigate();
  const { isSeen, onSeen } = useSeen(textsOf(item));
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
      className={`${THING} outline-offset-0 focus-within:border-accent focus:outline-2 focus:outline-accent`}
    >
      <ItemHeader item={item} isChecked={isChecked} onCheck={onCheck} />
      <ItemTexts item={item} onSeen={onSeen} />
      <Answer
        item={item}
        card={card}
        isSeen={isSeen}
        isAtRest={isAtRest}
        onNotice={onNotice}
        onAnswered={onAnswered}
      />
      <ItemFooter item={item} />
    </article>
  );
}

function ItemHeader(props: {
  readonly item: OpenItem;
  readonly isChecked: boolean;
  readonly onCheck: () => void;
}) {
  const { item, isChecked, onCheck } = props;
  const { kind, path, title, sessionId, since } = item;
  const now = useNow();
  return (
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
      {title === undefined ? null : <span className="min-w-0 truncate text-text">{brief(title)}</span>}
      <span className="ml-auto" title={dateText(since)}>
        {ago(since, now)}
      </span>
    </header>
  );
}

/** The names of the texts that a person must have seen before an approval. */
export function textsOf(item: OpenItem): readonly string[] {
  return [
    ...(repeatsAction(item) ? [] : ["what"]),
    ...(item.action === undefined ? [] : ["action"]),
    ...(item.details === undefined ? [] : ["details"]),
  ];
}

export function ItemTexts({
  item,
  onSeen,
}: {
  readonly item: OpenItem;
  readonly onSeen: (name: string) => void;
}) {
  const { what, action, details } = item;
  return (
    <>
      {repeatsAction(item) ? null : (
        <div className="mt-2 border-l-2 border-line pl-3">
          <LongText text={what} onSeen={() => onSeen("what")} />
        </div>
      )}
      {action === undefined ? null : <Action item={item} action={action} onSeen={() => onSeen("action")} />}
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
    </>
  );
}

/** The lines of a change that are shown beside the exact call. The call has all of them. */
const CHANGE_LINES = 200;

function Action(props: { readonly item: OpenItem; readonly action: string; readonly onSeen: () => void }) {
  const { item, action, onSeen } = props;
  const { tool, folder, askedBy, change, editable } = item;
  const path = editable?.["file_path"] ?? editable?.["path"];
  return (
    <div className="mt-3">
      <p className="wrap-anywhere text-soft">
        wants to call <span className="font-mono text-text">{shown(tool ?? "")}</span>
        {folder === undefined ? "" : " in "}
        {folder === undefined ? null : <span className="font-mono text-text">{shown(folder)}</span>}
        {askedBy === undefined ? "" : `, asked by the rule ${shown(askedBy)}`}
      </p>
      {change === undefined ? null : (
        <ChangeLines path={typeof path === "string" ? path : ""} lines={change.slice(0, CHANGE_LINES)} />
      )}
      <div data-testid="action" className="mt-1 rounded-md bg-raised p-3">
        <LongText text={action} onSeen={onSeen} />
      </div>
    </div>
  );
}

function ItemFooter({ item }: { readonly item: OpenItem }) {
  const { id, sessionId, until, principal } = item;
  return (
    <p className="mt-2 flex flex-wrap gap-x-3 wrap-anywhere text-xs text-soft">
      <span className="font-mono">{sessionId}</span>
      {until === undefined ? null : <span>until {dateText(until)}</span>}
      <span>for {principal}</span>
      <Link to="/inbox" search={{ item: id }} className="underline">
        link
      </Link>
    </p>
  );
}
