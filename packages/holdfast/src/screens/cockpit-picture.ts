// `cockpitPicture`: many sessions with one of them in full, as lines of a terminal.
//
//   - The question of the selected session is shown in full, wrapped and never cut, page by page. `isSeen`
//     says whether its last line was shown, because a person approves only what was shown.
//   - Every size has the head, the selected session, the last message and the keys.

import type { InboxItem } from "@holdfast/proto/view";
import type { Look } from "@holdfast/terminal/frame/command";
import { wrapped } from "@holdfast/terminal/frame/plain-text";
import { answerKeys, type TypedText } from "./answer-keys.ts";
import { wrap } from "./inbox-picture.ts";
import { liveSummary, topLines, type LiveSession } from "./live-sessions.ts";

/** The part of the picture for the selected session. */
export interface CockpitDetail {
  readonly lines: readonly string[];
  /** Whether its end is shown first, as of work that goes on. */
  readonly isFollowed: boolean;
}

export interface CockpitState {
  /** The live sessions, and behind them those that have ended. */
  readonly sessions: readonly LiveSession[];
  readonly liveCount: number;
  readonly isCut: boolean;
  readonly where: string;
  /** The id of the selected session. It may be gone: then none is selected. */
  readonly selected: string | undefined;
  /** The sessions that the next message goes to. */
  readonly marked: ReadonlySet<string>;
  /** The question of the selected session. */
  readonly item: InboxItem | undefined;
  readonly hasWorktree: boolean;
  /** Whether the selected session has the whole screen. */
  readonly isOpen: boolean;
  readonly detail: CockpitDetail;
  /** The first line of the detail that is shown; `undefined` for its usual place. */
  readonly top: number | undefined;
  readonly typing?: TypedText | undefined;
  /** The effect of the last key. */
  readonly message: string;
}

export interface CockpitPicture {
  readonly lines: readonly string[];
  /** Whether the last line of the selected session is shown. */
  readonly isSeen: boolean;
  /** The lines of one page of the detail, and the one that is shown first. */
  readonly page: number;
  readonly top: number;
}

const LIST_SHARE = 0.35;
const LIST_LEAST = 4;
/** A terminal of so many columns has room for ids. */
const WIDE = 110;

export function cockpitPicture(
  state: CockpitState,
  look: Look,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  now: number,
): CockpitPicture {
  const { paint } = look;
  const { sessions, selected, typing, message, detail, marked } = state;
  const at = sessions.findIndex(({ session }) => session.sessionId === selected);
  const live = { sessions: sessions.slice(0, state.liveCount), isCut: state.isCut };
  const head = `${paint.bold(liveSummary(live))}  ${paint.dim(state.where)}`;
  const last = typing === undefined ? message : `${typing.label}: ${typing.text}_`;
  const keys = wrapped(keysOf(state, sessions[at]).join("  "), columns).map((line) => paint.dim(line));
  const below = [...wrap(last, columns), ...keys];
  const share = Math.max(LIST_LEAST, Math.floor((rows - below.length - 2) * LIST_SHARE));
  const listRows = state.isOpen ? 1 : share;
  const [columnHead = "", ...table] = topLines({ sessions }, look, now, columns - 2, columns < WIDE);
  const from = state.isOpen ? at : Math.max(0, Math.min(at - listRows + 2, table.length - listRows));
  const list = table.slice(from, from + listRows).map((line, index) => {
    const { sessionId } = sessions[from + index]!.session;
    const mark = `${sessionId === selected ? look.symbols.begin : " "}${marked.has(sessionId) ? "*" : " "}`;
    return sessionId === selected ? paint.bold(mark + line) : mark + line;
  });
  const hidden = table.length - list.length;
  const more = hidden > 0 && !state.isOpen ? [paint.dim(`  ${hidden} more: j and k`)] : [];
  const above = [
    head,
    ...(table.length === 0 ? [] : [`  ${columnHead}`]),
    ...list,
    ...more,
    paint.dim("-".repeat(columns)),
  ];
  const all = detail.lines.flatMap((line) => wrap(line, columns));
  const page = Math.max(1, rows - above.length - below.length - 1);
  const end = Math.max(0, all.length - page);
  const top = Math.min(state.top ?? (detail.isFollowed ? end : 0), Math.max(0, all.length - 1));
  const shown = all.slice(top, top + page);
  const left = all.length - top - shown.length;
  const space = Array.from({ length: Math.max(0, page - shown.length) }, () => "");
  return {
    lines: [
      ...above,
      ...shown,
      ...space,
      left > 0 ? paint.yellow(`${left} more lines: space`) : "",
      ...below,
    ],
    isSeen: at >= 0 && left <= 0,
    page,
    top,
  };
}

/** The keys that do something now, the most needed first. */
function keysOf(
  { item, hasWorktree, marked, isOpen: isWhole }: CockpitState,
  selected: LiveSession | undefined,
): readonly string[] {
  const general = isWhole
    ? ["j/k next", "q or Escape: back to the list"]
    : ["j/k choose", "n new", "q leaves"];
  if (selected === undefined) return general;
  const { status } = selected.session;
  const hasEnded = status === "completed" || status === "failed" || status === "cancelled";
  const isOpen = selected.isDriven && !hasEnded;
  const to = marked.size === 0 ? "m message" : `m message to ${marked.size}`;
  return [
    ...(item === undefined ? [] : answerKeys(item)),
    ...(isWhole ? [] : ["Enter open"]),
    ...(hasEnded ? [] : [to, "t mark", "x stop"]),
    ...(isOpen || hasEnded ? [] : ["r resume"]),
    ...(hasWorktree ? ["c changes", "M merge"] : []),
    "space more",
    ...general,
  ];
}
