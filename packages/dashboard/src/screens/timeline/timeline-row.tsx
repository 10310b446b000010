// One row of a timeline: a task or a wait with its bar, and what went in and came out when a person opens it.

import {
  itemFacts,
  itemName,
  type PlainError,
  type TimelineChildRef,
  type TimelineItem,
  type TimelineMark,
} from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import { Subject } from "../../parts/reading/call-words.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { Problem, RecordedErrorView, ScrollBox } from "../../parts/parts.tsx";
import { brief, dateText, duration, json } from "../../parts/text.ts";
import type { TimeScale } from "../../parts/time-scale.ts";
import { useRecord } from "../journal/use-record.ts";
import { BAR_COLUMN, COLUMNS, ScaleLines, TIME_COLUMN } from "./timeline-scale.tsx";

const COLOURS: Readonly<Record<TimelineItem["outcome"], string>> = {
  open: "var(--color-busy)",
  completed: "var(--color-good)",
  failed: "var(--color-bad)",
  timed_out: "var(--color-warn)",
  cancelled: "var(--color-soft)",
  withdrawn: "var(--color-soft)",
};

/** A timeline does not say what its subjects are. The end of one word with a slash says most. */
const PATH = /^\S*\/\S*$/;

export function ItemRow(props: {
  readonly item: TimelineItem;
  readonly sessionId: string;
  readonly scale: TimeScale;
  readonly until: number;
  readonly isPaused: boolean;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}) {
  const { item, sessionId, scale, until, isPaused, isOpen, onToggle } = props;
  const { startedAt, endedAt, outcome, attempts = [], subject, child } = item;
  const hasFailures = attempts.some(({ outcome: end }) => end === "failed" || end === "lost");
  const isHeld = isPaused && item.type === "task" && outcome === "open";
  const facts = itemFacts(item)
    .map((fact) => (isHeld && fact === "open" ? "waits: the session is paused" : fact))
    .join(", ");
  const isWarning = hasFailures || outcome === "failed";
  return (
    <div className="border-b border-line/50">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className={`${COLUMNS} w-full px-3 py-1 text-left hover:bg-raised`}
      >
        <span className="flex min-w-0 items-baseline gap-2">
          <span aria-hidden className="w-3 shrink-0 text-xs text-soft">
            {isOpen ? "▾" : "▸"}
          </span>
          <span className="min-w-0 truncate">{brief(itemName(item, sessionId), 160)}</span>
          {subject === undefined ? null : (
            <span className="flex min-w-0 shrink-[999] text-soft">
              <Subject subject={subject} isPath={PATH.test(subject)} />
            </span>
          )}
          {facts === "" ? null : (
            <span
              className={`min-w-0 shrink-[999] truncate text-sm ${isWarning ? "text-warn" : "text-soft"}`}
            >
              {facts}
            </span>
          )}
        </span>
        <span className={BAR_COLUMN}>{isHeld ? null : <Bar item={item} scale={scale} until={until} />}</span>
        <span className={TIME_COLUMN}>
          {outcome === "open" && !isHeld ? "… " : ""}
          {isHeld ? "" : duration(Math.max(0, (endedAt ?? until) - startedAt))}
        </span>
      </button>
      {child === undefined ? null : (
        <p className="px-3 pb-1 pl-8 text-sm text-soft">
          open <ChildLink child={child} />
        </p>
      )}
      {isOpen || outcome === "failed" ? <Details item={item} sessionId={sessionId} isOpen={isOpen} /> : null}
    </div>
  );
}

export function MarkRow({ mark }: { readonly mark: TimelineMark }) {
  const { text, isWarning, child, at } = mark;
  return (
    <p title={dateText(at)} className={`px-3 py-1 pl-8 text-sm ${isWarning ? "text-warn" : "text-soft"}`}>
      {child === undefined ? (
        brief(text, 300)
      ) : (
        <>
          {text.startsWith("hands") ? "hands over to" : "asks for"} <ChildLink child={child} />
        </>
      )}
    </p>
  );
}

function ChildLink({ child: { sessionId, agent } }: { readonly child: TimelineChildRef }) {
  return (
    <Link
      to="/sessions/$id"
      params={{ id: sessionId }}
      className="inline-block min-h-6 text-accent underline"
    >
      {brief(agent, 80)} #{brief(sessionId.slice(sessionId.lastIndexOf("-") + 1), 20)}
    </Link>
  );
}

/** The input and the output, each attempt that failed, and the way to the records. */
function Details(props: {
  readonly item: TimelineItem;
  readonly sessionId: string;
  readonly isOpen: boolean;
}) {
  const { item, sessionId, isOpen } = props;
  const { attempts = [], seq, endSeq } = item;
  const failed = attempts.filter(({ outcome }) => outcome === "failed" || outcome === "lost");
  // The last attempt says why; the ones before it are seen when the row is open.
  const failures = isOpen ? failed : failed.slice(-1);
  const of = `${itemName(item, sessionId)}, record ${seq}`;
  return (
    <div className="space-y-2 px-3 pt-1 pb-3 pl-8">
      {failures.map(({ attempt, outcome, error, startedAt }) => (
        <div key={attempt}>
          <p className="text-sm text-soft">
            Attempt {attempt} {outcome === "lost" ? "was lost with its process" : "failed"},{" "}
            {dateText(startedAt)}
          </p>
          {error === undefined ? null : <RecordedErrorView error={error} />}
        </div>
      ))}
      {isOpen ? (
        <>
          <Payload name="Input" of={of} sessionId={sessionId} seq={seq} />
          {endSeq === undefined ? null : <Payload name="Output" of={of} sessionId={sessionId} seq={endSeq} />}
          <p className="flex flex-wrap gap-x-3 text-sm text-soft">
            <span>began {dateText(item.startedAt)}</span>
            {item.endedAt === undefined ? null : <span>ended {dateText(item.endedAt)}</span>}
            {[seq, ...(endSeq === undefined ? [] : [endSeq])].map((at) => (
              <Link
                key={at}
                to="/sessions/$id"
                params={{ id: sessionId }}
                search={{ tab: "journal", at }}
                className="text-accent underline"
              >
                record {at}
              </Link>
            ))}
          </p>
        </>
      ) : null}
    </div>
  );
}

function Payload(props: {
  readonly name: "Input" | "Output";
  /** The row that it is of. */
  readonly of: string;
  readonly sessionId: string;
  readonly seq: number;
}) {
  const { name, of, sessionId, seq } = props;
  const { data, error } = useRecord(sessionId, seq);
  if (error !== null) return <Problem error={error} />;
  if (data === undefined) return <p className="text-sm text-soft">Reading the {name.toLowerCase()}…</p>;
  const value = data?.payload === undefined ? undefined : (JSON.parse(data.payload) as unknown);
  if (value === undefined || value === null) return <p className="text-sm text-soft">{name}: none</p>;
  // An error of a task stands with its attempt above.
  if (data?.type === "task_failed" && typeof (value as Partial<PlainError>).message === "string") return null;
  return (
    <div>
      <p className="text-sm text-soft">{name}</p>
      <ScrollBox label={brief(`${name} of ${of}`)}>
        <LongText text={typeof value === "string" ? value : json(value)} />
      </ScrollBox>
    </div>
  );
}

function Bar(props: { readonly item: TimelineItem; readonly scale: TimeScale; readonly until: number }) {
  const { item, scale, until } = props;
  const spans = item.attempts ?? [item];
  return (
    <svg className="block h-3 w-full" preserveAspectRatio="none" viewBox="0 0 1000 12" aria-hidden>
      <ScaleLines scale={scale} />
      {spans.map(({ startedAt, endedAt, outcome }, at) => {
        const from = scale.place(startedAt) * 1_000;
        const to = scale.place(endedAt ?? until) * 1_000;
        const isLost = outcome === "lost" || (outcome === "failed" && at < spans.length - 1);
        const colour = isLost ? "var(--color-warn)" : COLOURS[item.outcome];
        return (
          <rect key={at} x={from} y="1.5" rx="2" width={Math.max(4, to - from)} height="9" fill={colour} />
        );
      })}
    </svg>
  );
}
