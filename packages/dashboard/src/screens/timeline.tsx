// The timeline of one session: turns, and in them tasks with their attempts, waits and moments. Older turns
// are folded.

import {
  itemFacts,
  itemName,
  timelineFacts,
  turnFacts,
  type TimelineItem,
  type TimelineMark,
  type TimelineTurn,
} from "@holdfast/proto/view";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import type { LiveState } from "../api/live-session.ts";
import { isEnded } from "../api/types.ts";
import { Empty, RecordedErrorView, useNow } from "../parts/parts.tsx";
import { brief, dateText, duration } from "../parts/text.ts";
import { timeScale, type TimeScale } from "../parts/time-scale.ts";

type Row =
  | { readonly type: "turn"; readonly key: string; readonly turn: TimelineTurn; readonly isOpen: boolean }
  | { readonly type: "item"; readonly key: string; readonly item: TimelineItem }
  | { readonly type: "mark"; readonly key: string; readonly mark: TimelineMark };

const OPEN_TURNS = 3;

export function Timeline({ live }: { readonly live: LiveState }) {
  const { timeline, session } = live;
  const now = useNow(1_000);
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const scroll = useRef<HTMLDivElement>(null);
  // A paused session runs nothing: a task that it has asked for waits.
  const isPaused = session?.status === "paused";
  const until = session?.endedAt ?? (isPaused ? session.updatedAt : now);
  const { turns } = timeline;
  const rows = useMemo(() => rowsOf(turns, toggled), [live, toggled]);
  const scale = useMemo(() => scaleOf(turns, until), [live, until]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 34,
    overscan: 15,
    getItemKey: (at) => rows[at]!.key,
  });
  if (session === undefined) return null;
  if (rows.length === 0)
    return (
      <Empty title={isEnded(session) ? "It did nothing that was recorded" : "It has not begun yet"}>
        <p>Every task, wait and checkpoint of the agent appears here as soon as it is stored.</p>
      </Empty>
    );
  return (
    <div ref={scroll} className="h-full overflow-auto" tabIndex={0} aria-label="Timeline" role="region">
      <p className="px-3 py-1 text-sm text-soft">{timelineFacts(turns, timeline.usage).join(", ")}</p>
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index]!;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              {row.type === "turn" ? (
                <TurnRow
                  turn={row.turn}
                  isOpen={row.isOpen}
                  until={until}
                  onToggle={() =>
                    setToggled((before) => new Set(before).symmetricDifference(new Set([row.turn.turn])))
                  }
                />
              ) : row.type === "item" ? (
                <ItemRow
                  item={row.item}
                  sessionId={session.sessionId}
                  scale={scale}
                  until={until}
                  isPaused={isPaused}
                />
              ) : (
                <p className={`px-3 py-1 pl-8 text-sm ${row.mark.isWarning ? "text-warn" : "text-soft"}`}>
                  {brief(row.mark.text, 300)}
                </p>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function TurnRow(props: {
  readonly turn: TimelineTurn;
  readonly isOpen: boolean;
  readonly until: number;
  readonly onToggle: () => void;
}) {
  const { turn, isOpen, until, onToggle } = props;
  return (
    <button
      type="button"
      onClick={onToggle}
      aria-expanded={isOpen}
      className="flex w-full items-baseline gap-3 border-b border-line bg-raised px-3 py-1 text-left hover:underline"
    >
      <span aria-hidden className="w-3 text-soft">
        {isOpen ? "▾" : "▸"}
      </span>
      <span className="shrink-0 font-medium">Turn {turn.turn}</span>
      <span className="text-soft">{turnFacts(turn).join(", ")}</span>
      <span className="ml-auto shrink-0 text-soft" title={dateText(turn.startedAt)}>
        {duration((turn.endedAt ?? until) - turn.startedAt)}
      </span>
    </button>
  );
}

const COLOURS: Readonly<Record<TimelineItem["outcome"], string>> = {
  open: "var(--color-busy)",
  completed: "var(--color-good)",
  failed: "var(--color-bad)",
  timed_out: "var(--color-warn)",
  cancelled: "var(--color-soft)",
  withdrawn: "var(--color-soft)",
};

function ItemRow({
  item,
  sessionId,
  scale,
  until,
  isPaused,
}: {
  readonly item: TimelineItem;
  readonly sessionId: string;
  readonly scale: TimeScale;
  readonly until: number;
  readonly isPaused: boolean;
}) {
  const { startedAt, endedAt, outcome, attempts = [] } = item;
  const failures = attempts.filter(({ outcome: end }) => end === "failed" || end === "lost");
  const isHeld = isPaused && item.type === "task" && outcome === "open";
  const facts = itemFacts(item)
    .map((fact) => (isHeld && fact === "open" ? "waits: the session is paused" : fact))
    .join(", ");
  const ms = Math.max(0, (endedAt ?? until) - startedAt);
  const head = (
    <span className="flex items-center gap-3">
      <span className="w-3/5 min-w-0 truncate sm:w-96">
        {brief(itemName(item, sessionId), 160)}
        {facts === "" ? null : (
          <span className={`ml-2 ${failures.length > 0 ? "text-warn" : "text-soft"}`}>{facts}</span>
        )}
      </span>
      {isHeld ? <span className="flex-1" /> : <Bar item={item} scale={scale} until={until} />}
      <span className="w-24 shrink-0 text-right text-sm text-soft">
        {outcome === "open" && endedAt === undefined && !isHeld ? "… " : ""}
        {isHeld ? "" : duration(ms)}
      </span>
    </span>
  );
  const row = "block px-3 py-1 pl-8 border-b border-line/50";
  if (failures.length === 0) return <div className={row}>{head}</div>;
  return (
    <details className={row} open={outcome === "failed"}>
      <summary className="list-none">{head}</summary>
      <ol className="space-y-2 py-2 pl-3">
        {failures.map(({ attempt, outcome: end, error, startedAt: at }) => (
          <li key={attempt}>
            <p className="text-soft">
              Attempt {attempt} {end === "lost" ? "was lost with its process" : "failed"}, {dateText(at)}
            </p>
            {error === undefined ? null : <RecordedErrorView error={error} />}
          </li>
        ))}
      </ol>
    </details>
  );
}

function Bar({
  item,
  scale,
  until,
}: {
  readonly item: TimelineItem;
  readonly scale: TimeScale;
  readonly until: number;
}) {
  const spans = item.attempts ?? [item];
  return (
    <svg className="h-3 min-w-0 flex-1" preserveAspectRatio="none" viewBox="0 0 1000 12" aria-hidden>
      <line x1="0" x2="1000" y1="6" y2="6" stroke="var(--color-line)" />
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

function rowsOf(turns: readonly TimelineTurn[], toggled: ReadonlySet<number>): readonly Row[] {
  return turns.flatMap((turn, at): Row[] => {
    const isOpen = at >= turns.length - OPEN_TURNS !== toggled.has(turn.turn);
    const head: Row = { type: "turn", key: `t${turn.turn}`, turn, isOpen };
    if (!isOpen) return [head];
    const items = turn.items.map((item): Row => ({ type: "item", key: `i${item.id}`, item }));
    const marks = turn.marks.map((mark, n): Row => ({ type: "mark", key: `m${turn.turn}-${n}`, mark }));
    return [head, ...items, ...marks];
  });
}

function scaleOf(turns: readonly TimelineTurn[], until: number): TimeScale {
  const tasks = turns.flatMap(({ items }) => items.filter(({ type }) => type === "task"));
  const busy = tasks.map(({ startedAt, endedAt }) => ({ from: startedAt, to: endedAt ?? until }));
  return timeScale(busy, { from: turns[0]?.startedAt ?? until, to: until });
}
