// `timeScale`: places of moments on a line on which idle times are folded, because agents wait for days.
//
//   - A later moment is never left of an earlier one.
//   - Time in which nothing ran takes at most `GAP_MS` on the line; the scale says where it was folded.

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface TimeScale {
  /** The place of a moment, from 0 to 1. */
  readonly place: (at: number) => number;
  /** The moment at a place. */
  readonly momentAt: (place: number) => number;
  /** The idle times that were folded, by their places. */
  readonly folds: readonly { readonly at: number; readonly ms: number }[];
}

const GAP_MS = 1_000;

/** @param busy when something ran, in any order. */
export function timeScale(busy: readonly Span[], whole: Span): TimeScale {
  const sorted = [...busy].sort((a, b) => a.from - b.from);
  const points: { readonly at: number; readonly length: number }[] = [{ at: whole.from, length: 0 }];
  const folded: { readonly at: number; readonly ms: number }[] = [];
  let at = whole.from;
  let length = 0;
  const go = (to: number, isIdle: boolean): void => {
    if (to <= at) return;
    const ms = to - at;
    if (isIdle && ms > GAP_MS) folded.push({ at: length + GAP_MS / 2, ms });
    length += isIdle ? Math.min(ms, GAP_MS) : ms;
    at = to;
    points.push({ at, length });
  };
  for (const { from, to } of sorted) {
    go(from, true);
    go(to, false);
  }
  go(whole.to, true);
  const total = Math.max(1, length);
  const place = (moment: number): number => {
    let low = 0;
    let high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle]!.at < moment) low = middle + 1;
      else high = middle;
    }
    const after = points[low]!;
    const before = points[low - 1] ?? after;
    const part = after.at === before.at ? 1 : (moment - before.at) / (after.at - before.at);
    const there = before.length + (after.length - before.length) * Math.max(0, Math.min(1, part));
    return Math.max(0, Math.min(1, there / total));
  };
  const momentAt = (there: number): number => {
    const wanted = there * total;
    const after = points.findIndex((point) => point.length >= wanted);
    const end = points[after] ?? points.at(-1)!;
    const begin = points[after - 1] ?? end;
    const part = end.length === begin.length ? 1 : (wanted - begin.length) / (end.length - begin.length);
    return begin.at + (end.at - begin.at) * part;
  };
  return { place, momentAt, folds: folded.map((fold) => ({ at: fold.at / total, ms: fold.ms })) };
}
