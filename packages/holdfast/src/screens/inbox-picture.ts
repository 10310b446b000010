// `inboxPicture`: the inbox as it is answered by keys, as lines of a terminal.
//
//   inbox-picture-1. The selected item is shown in full, wrapped and never cut, page by page. `isSeen` says
//       whether its last line was shown, because a person approves only what was shown.

import { stripVTControlCharacters } from "node:util";
import type { InboxItem } from "@holdfast/proto/view";
import type { Look } from "@holdfast/terminal/frame/command";
import { duration, plainLine } from "@holdfast/terminal/frame/plain-text";
import { answerKeys, type TypedText } from "./answer-keys.ts";
import { inboxLines } from "../sessions/inbox-text.ts";

export interface InboxState {
  readonly items: readonly InboxItem[];
  /** The id of the selected item. It may be gone: then no item is selected, and no key answers anything. */
  readonly selected: string | undefined;
  /** The first line of the selected item that is shown. */
  readonly top: number;
  /** The text that a person types, with its purpose. */
  readonly typing?: TypedText;
  /** The effect of the last key. */
  readonly message: string;
}

export interface InboxPicture {
  readonly lines: readonly string[];
  /** inbox-picture-1. */
  readonly isSeen: boolean;
  /** The lines of one page of the item. */
  readonly page: number;
}

/** The most lines of the list above the selected item. */
const LIST_LINES = 6;
const NAME_CHARS = 40;
const LIST_TITLE_CHARS = 24;
const KEYS = "j/k choose  a approve  d deny  s always  e answer  space more  q leaves";

export function inboxPicture(
  { items, selected, top, typing, message }: InboxState,
  look: Look,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  now: number,
): InboxPicture {
  const { paint, symbols } = look;
  const at = items.findIndex(({ id }) => id === selected);
  const from = Math.max(0, Math.min(at - LIST_LINES + 2, items.length - LIST_LINES));
  const list = items.slice(from, from + LIST_LINES).map((item) => {
    const mark = item.id === selected ? symbols.begin : " ";
    const age = duration(Math.max(0, now - item.since));
    const agent = plainLine(item.path.at(-1) ?? "", NAME_CHARS);
    const title = item.title === undefined ? "" : `${plainLine(item.title, LIST_TITLE_CHARS, symbols.cut)}  `;
    const line = `${mark} ${plainLine(`${item.kind.replace("_", " ")}  ${agent}  ${title}${age}  ${item.what}`, columns - 4, symbols.cut)}`;
    return item.id === selected ? paint.bold(line) : line;
  });
  const waiting = waitingIn(items).length;
  const answered = items.length - waiting;
  const count = `${waiting} ${waiting === 1 ? "waits" : "wait"} for a person`;
  const head = `${paint.bold(count)}${answered === 0 ? "" : `, ${answered} answered`}  ${at < 0 ? "" : `${at + 1} of ${items.length}`}`;
  const above = [head, ...list, paint.dim("-".repeat(columns))];
  const last = typing === undefined ? message : `${typing.label}: ${typing.text}_`;
  const below = [...wrap(last, columns), paint.dim(KEYS)];
  const item = items[at];
  const detail =
    item === undefined
      ? []
      : inboxLines([item], look, now, answerKeys(item).length > 0).flatMap((line) => wrap(line, columns));
  const page = Math.max(1, rows - above.length - below.length - 1);
  const shown = detail.slice(top, top + page);
  const left = detail.length - top - shown.length;
  return {
    lines: [...above, ...shown, left > 0 ? paint.yellow(`${left} more lines: space`) : "", ...below],
    isSeen: item !== undefined && left <= 0,
    page,
  };
}

/** The items that nobody has answered. */
export function waitingIn(items: readonly InboxItem[]): readonly InboxItem[] {
  return items.filter(({ kind }) => kind !== "answered");
}

/** A line in pieces of the terminal's width. A line that is too long loses its colours, and no character. */
export function wrap(line: string, columns: number): readonly string[] {
  const text = stripVTControlCharacters(line);
  if (text.length <= columns) return [line];
  const pieces: string[] = [];
  for (let from = 0; from < text.length; from += columns) pieces.push(text.slice(from, from + columns));
  return pieces;
}
