// `rowsOf`: the turns of a timeline as rows. The last turns are open until a person folds them.

import type { TimelineItem, TimelineMark, TimelineTurn } from "@holdfast/proto/view";

export type TimelineRow =
  | { readonly type: "turn"; readonly key: string; readonly turn: TimelineTurn; readonly isOpen: boolean }
  | { readonly type: "item"; readonly key: string; readonly item: TimelineItem }
  | { readonly type: "mark"; readonly key: string; readonly mark: TimelineMark };

const OPEN_TURNS = 3;

/** @param toggled the turns that a person has opened or folded. */
export function rowsOf(turns: readonly TimelineTurn[], toggled: ReadonlySet<number>): readonly TimelineRow[] {
  return turns.flatMap((turn, at): TimelineRow[] => {
    const isOpen = at >= turns.length - OPEN_TURNS !== toggled.has(turn.turn);
    const head: TimelineRow = { type: "turn", key: `t${turn.turn}`, turn, isOpen };
    if (!isOpen) return [head];
    const items = turn.items.map((item): TimelineRow => ({ type: "item", key: `i${item.seq}`, item }));
    const marks = turn.marks.map((mark, n): TimelineRow => ({
      type: "mark",
      key: `m${turn.turn}-${n}`,
      mark,
    }));
    return [head, ...items, ...marks];
  });
}
