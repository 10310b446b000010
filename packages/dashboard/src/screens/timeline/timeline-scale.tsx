// The scale above the bars of a timeline: the time since the beginning at five places, and the places where idle
// time is folded.

import type { TimeScale } from "../../parts/time-scale.ts";
import { count, dateText, duration } from "../../parts/text.ts";

const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;

/** The columns of a row: its name, its bar, its time. */
export const COLUMNS =
  "grid grid-cols-[minmax(0,1fr)_auto] items-center gap-3 sm:grid-cols-[minmax(0,var(--container-sm))_minmax(0,1fr)_auto]";
export const BAR_COLUMN = "hidden min-w-0 sm:block";
export const TIME_COLUMN = "w-24 shrink-0 text-right text-sm text-soft";

export function ScaleHead(props: {
  readonly scale: TimeScale;
  readonly from: number;
  readonly isLive: boolean;
}) {
  const { scale, from, isLive } = props;
  const folded = scale.folds.reduce((sum, { ms }) => sum + ms, 0);
  return (
    <div className="sticky top-0 z-10 border-b border-line bg-ground px-3 py-1 text-xs text-soft">
      <div className={COLUMNS}>
        <span className="truncate pl-5">
          {folded === 0
            ? "since its beginning"
            : `${count(scale.folds.length, "idle time")} folded, ${duration(folded)} in all`}
        </span>
        <span className={BAR_COLUMN}>
          <span className="flex justify-between">
            {TICKS.map((tick) => {
              const at = scale.momentAt(tick);
              return (
                <span key={tick} title={dateText(at)}>
                  {tick === 1 && isLive ? "now" : duration(at - from)}
                </span>
              );
            })}
          </span>
        </span>
        <span className={TIME_COLUMN}>took</span>
      </div>
    </div>
  );
}

/** The lines of the scale behind a bar. */
export function ScaleLines({ scale }: { readonly scale: TimeScale }) {
  return (
    <>
      <line x1="0" x2="1000" y1="6" y2="6" stroke="var(--color-line)" />
      {TICKS.map((tick) => (
        <line
          key={tick}
          x1={tick * 1_000}
          x2={tick * 1_000}
          y1="0"
          y2="12"
          stroke="var(--color-line)"
          vectorEffect="non-scaling-stroke"
        />
      ))}
      {scale.folds.map(({ at, ms }) => (
        <line
          key={at}
          x1={at * 1_000}
          x2={at * 1_000}
          y1="0"
          y2="12"
          stroke="var(--color-soft)"
          strokeDasharray="2 2"
          vectorEffect="non-scaling-stroke"
        >
          <title>{duration(ms)} idle</title>
        </line>
      ))}
    </>
  );
}
