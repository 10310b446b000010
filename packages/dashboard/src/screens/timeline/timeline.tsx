// The timeline of one session: turns, and in them tasks with their attempts, waits and moments. It begins at its
// end, which is now, and follows it. Older turns are folded. A row opens what went in and what came out.

import { timelineFacts, turnFacts, type TimelineTurn } from "@holdfast/proto/view";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useState } from "react";
import type { LiveState } from "../../api/live-session.ts";
import { isEnded } from "../../api/types.ts";
import { Empty, useNow } from "../../parts/parts.tsx";
import { dateText, duration } from "../../parts/text.ts";
import { useFollowEnd } from "../../parts/reading/use-follow-end.ts";
import { timeScale, type TimeScale } from "../../parts/time-scale.ts";
import { ItemRow, MarkRow } from "./timeline-row.tsx";
import { ScaleHead } from "./timeline-scale.tsx";
import { rowsOf } from "./timeline-rows.ts";

const ROW_PX = 34;

export function Timeline({ live }: { readonly live: LiveState }) {
  const { timeline, session } = live;
  const now = useNow(1_000);
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const { scroll, content, onScroll } = useFollowEnd();
  // A paused session runs nothing: a task that it has asked for waits.
  const isPaused = session?.status === "paused";
  const until = session?.endedAt ?? (isPaused ? session.updatedAt : now);
  const { turns } = timeline;
  const rows = useMemo(() => rowsOf(turns, toggled), [live, toggled]);
  const scale = useMemo(() => scaleOf(turns, until), [live, until]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
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
    <div
      ref={scroll}
      className="h-full overflow-auto"
      tabIndex={0}
      aria-label="Timeline"
      role="region"
      onScroll={onScroll}
    >
      <div ref={content}>
        <p className="px-3 pt-1 text-sm text-soft">{timelineFacts(turns, timeline.usage).join(", ")}</p>
        <ScaleHead scale={scale} from={turns[0]!.startedAt} isLive={!isEnded(session)} />
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
                    onToggle={() => setToggled(toggle(toggled, row.turn.turn))}
                  />
                ) : row.type === "mark" ? (
                  <MarkRow mark={row.mark} />
                ) : (
                  <ItemRow
                    {...{ item: row.item, scale, until, isPaused }}
                    sessionId={session.sessionId}
                    isOpen={opened.has(row.item.seq)}
                    onToggle={() => setOpened(toggle(opened, row.item.seq))}
                  />
                )}
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

function toggle(set: ReadonlySet<number>, one: number): ReadonlySet<number> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
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

function scaleOf(turns: readonly TimelineTurn[], until: number): TimeScale {
  const tasks = turns.flatMap(({ items }) => items.filter(({ type }) => type === "task"));
  const busy = tasks.map(({ startedAt, endedAt }) => ({ from: startedAt, to: endedAt ?? until }));
  return timeScale(busy, { from: turns[0]?.startedAt ?? until, to: until });
}
