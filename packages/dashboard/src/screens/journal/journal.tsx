// The journal of one session, record by record: what each holds, the states around it, and a fork from it. A
// second session, such as a fork, can stand beside it. The address names the record and the session beside,
// so that a link shows the same.

import { Link } from "@tanstack/react-router";
import { commonRows, type JournalRow } from "@holdfast/proto/view";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import type { LiveState } from "../../api/live-session.ts";
import type { Session } from "../../api/types.ts";
import { Command, Empty, Problem } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { brief, dateText } from "../../parts/text.ts";
import { useAbout, useLiveSession } from "../../parts/use-session.ts";
import { RecordPane, type JournalPlace } from "./record-pane.tsx";

export interface JournalProps extends JournalPlace {
  readonly live: LiveState;
  readonly session: Session;
  readonly onGo: (place: JournalPlace) => void;
}

export default function Journal(props: JournalProps) {
  const { beside } = props;
  return beside === undefined ? <Screen {...props} /> : <WithOther {...props} beside={beside} key={beside} />;
}

function WithOther(props: JournalProps & { readonly beside: string }) {
  const other = useLiveSession(props.beside);
  return <Screen {...props} other={other} />;
}

function Screen(props: JournalProps & { readonly other?: LiveState }) {
  const { live, session, at, beside, other, onGo } = props;
  const { rows } = live.journal;
  const others = other?.journal.rows ?? [];
  const common = other === undefined ? undefined : commonRows(rows, others);
  const count = Math.max(rows.length, others.length);
  const go = (next: number): void => {
    if (count > 0) onGo({ at: Math.max(0, Math.min(count - 1, next)), beside });
  };
  const checkpoint = (by: 1 | -1): void => {
    const { before, after } = live.journal.checkpointsAround(by === 1 ? (at ?? -1) + 1 : (at ?? count));
    const found = by === 1 ? after : before;
    if (found !== undefined) go(found);
  };
  useKeys({
    j: () => go((at ?? count - 2) + 1),
    ArrowDown: () => go((at ?? count - 2) + 1),
    k: () => go((at ?? count) - 1),
    ArrowUp: () => go((at ?? count) - 1),
    "]": () => checkpoint(1),
    "[": () => checkpoint(-1),
    Escape: () => onGo({ beside }),
  });
  if (count === 0)
    return (
      <Empty title="The journal has no record">
        <p>
          {session.persistence === "full" || session.persistence === undefined
            ? "A record is written for everything that the agent asks for and everything that happens to it, as soon as it is stored."
            : `This session is ${session.persistence}: it stores its result and no journal. Sessions are stored in full unless they are started otherwise.`}
        </p>
      </Empty>
    );
  return (
    <div className="flex h-full flex-col">
      {other === undefined ? null : (
        <Beside other={other} sessionId={beside!} common={common ?? 0} at={at} onClose={() => onGo({ at })} />
      )}
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <Rows
          rows={rows}
          others={other === undefined ? undefined : others}
          common={common}
          at={at}
          onGo={go}
        />
        {at === undefined ? null : (
          <RecordPane {...props} at={at} key={at} onClose={() => onGo({ beside })} />
        )}
      </div>
    </div>
  );
}

function Beside(props: {
  readonly other: LiveState;
  readonly sessionId: string;
  readonly common: number;
  readonly at: number | undefined;
  readonly onClose: () => void;
}) {
  const { other, sessionId, common, at, onClose } = props;
  const { session, error } = other;
  const isLocal = useAbout()?.isLocal ?? true;
  const isToResume =
    isLocal &&
    session !== undefined &&
    session.nextSeq <= common &&
    ["submitted", "working"].includes(session.status);
  return (
    <div className="border-b border-line px-3 py-2 text-sm">
      {error === undefined ? null : <Problem error={error} />}
      <p className="flex flex-wrap gap-x-3">
        <span>
          Left: this session. Right:{" "}
          <Link
            to="/sessions/$id"
            params={{ id: sessionId }}
            search={{ tab: "journal", ...(at === undefined ? {} : { at }) }}
            className="font-mono text-accent underline"
          >
            {brief(sessionId, 100)}
          </Link>
          {session === undefined ? "" : ` (${session.status.replace("_", " ")})`}
        </span>
        <span className="text-soft">
          {common === 0 ? "They have no record in common." : `Their first ${common} records are the same.`}
        </span>
        {isToResume ? (
          <span>
            It continues with <Command>{`holdfast resume ${sessionId}`}</Command>
          </span>
        ) : null}
        <button type="button" onClick={onClose} className="text-accent underline">
          show one side
        </button>
      </p>
    </div>
  );
}

const ROW_PX = 28;

function Rows(props: {
  readonly rows: readonly JournalRow[];
  readonly others: readonly JournalRow[] | undefined;
  readonly common: number | undefined;
  readonly at: number | undefined;
  readonly onGo: (at: number) => void;
}) {
  const { rows, others, common, at, onGo } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const count = Math.max(rows.length, others?.length ?? 0);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  const isAtEnd = useRef(true);
  const isThere = at !== undefined && at < count;
  useEffect(() => {
    if (isThere) virtual.scrollToIndex(at, { align: "auto" });
  }, [at, isThere]);
  useEffect(() => {
    if (at === undefined && isAtEnd.current) virtual.scrollToIndex(count - 1, { align: "end" });
  }, [count, at]);
  return (
    <div
      ref={scroll}
      role="region"
      aria-label="Journal"
      tabIndex={0}
      className="min-h-0 min-w-0 flex-1 overflow-auto"
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 2 * ROW_PX;
      }}
    >
      <ol className="relative font-mono text-xs" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => (
          <li
            key={index}
            aria-setsize={count}
            aria-posinset={index + 1}
            className="absolute inset-x-0 top-0 border-b border-line/50"
            style={{ height: ROW_PX, transform: `translateY(${start}px)` }}
          >
            <button
              type="button"
              aria-current={index === at ? "true" : undefined}
              onClick={() => onGo(index)}
              className={`flex h-full w-full items-center gap-3 px-3 text-left hover:bg-raised ${index === at ? "bg-raised shadow-mark" : ""}`}
            >
              <span className="w-10 shrink-0 text-right text-soft">{index}</span>
              <Cell
                row={rows[index]}
                isWide={others === undefined}
                hasTime={at === undefined}
                isSame={false}
              />
              {others === undefined ? null : (
                <Cell row={others[index]} isWide={false} hasTime={false} isSame={index < (common ?? 0)} />
              )}
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

const MARKED: Readonly<Partial<Record<JournalRow["type"], string>>> = {
  checkpoint: "text-accent font-semibold",
  task_failed: "text-bad",
  fail: "text-bad",
  attempt_failed: "text-warn",
  attempt_lost: "text-warn",
  warned: "text-warn",
  cancel_requested: "text-warn",
  complete: "text-good",
};

function Cell(props: {
  readonly row: JournalRow | undefined;
  readonly isWide: boolean;
  readonly hasTime: boolean;
  readonly isSame: boolean;
}) {
  const { row, isWide, hasTime, isSame } = props;
  if (row === undefined) return <span className="min-w-0 flex-1 text-soft">–</span>;
  if (isSame) return <span className="min-w-0 flex-1 truncate text-soft">the same</span>;
  const { type, about, at } = row;
  return (
    <span className={`flex min-w-0 flex-1 gap-3 ${isWide ? "" : "max-sm:flex-col max-sm:gap-0"}`}>
      <span className={`shrink-0 truncate ${isWide ? "w-36" : "sm:w-32"} ${MARKED[type] ?? ""}`}>
        {type.replaceAll("_", " ")}
      </span>
      <span className={`min-w-0 flex-1 truncate text-soft ${isWide ? "" : "max-sm:hidden"}`}>
        {brief(about, 300)}
      </span>
      {at === undefined || !isWide || !hasTime ? null : (
        <span className="hidden shrink-0 text-soft sm:inline">{dateText(at)}</span>
      )}
    </span>
  );
}
