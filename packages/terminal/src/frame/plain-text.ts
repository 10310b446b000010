// Text for terminals (`plain`). An agent's text is data: it may not move the cursor, set the title or hide
// the text after it.

import { stripVTControlCharacters } from "node:util";

// Everything that steers a terminal, but for line breaks and tabs: C0, DEL, C1. And the marks that reorder
// text, with which a question to a person could read otherwise than it is.
// oxlint-disable-next-line no-control-regex -- they are what is looked for.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Text of unknown origin, safe to show; its lines stay lines. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(STEERING, "");
}

// oxlint-disable-next-line no-control-regex -- it is what is looked for.
export const COLOUR = /(\u001b\[[\d;]*m)/;

/** A line of ours, with our colours: names of files and folders in it may hold anything. */
export function coloured(text: string): string {
  return text
    .split(COLOUR)
    .map((part, i) => (i % 2 === 1 ? part : plain(part)))
    .join("");
}

/** The same for a piece of a stream. A sequence may be cut anywhere, so only its characters go and its letters stay. */
export function plainPiece(text: string): string {
  return text.replace(STEERING, "");
}

/** The same on one line, cut to a length. */
export function plainLine(text: string, charsMax: number, cutMark = "..."): string {
  // Cut before it is cleaned: a task may return megabytes, and a line shows a hundred characters of them.
  const rough = charsMax === Infinity ? text : text.slice(0, Math.max(0, charsMax) * 4 + 64);
  return cutTo(plain(rough).replace(/\s+/g, " ").trim(), charsMax, cutMark);
}

/** A line of ours, such as a row of a table: cut, and its columns and its indentation kept. */
export function cutTo(line: string, charsMax: number, cutMark: string): string {
  if (line.length <= charsMax) return line;
  // Not through the middle of a character outside the basic plane.
  const end = Math.max(0, charsMax - cutMark.length);
  const head = line.slice(0, end);
  return (/[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head) + cutMark;
}

/**
 * A value as JSON on one line. Characters that steer terminals or that nothing draws are escaped, which
 * changes no value.
 */
export function jsonLine(value: unknown): string {
  return escapeSteering(JSON.stringify(value) ?? "null");
}

/** A value as JSON for people. */
export function jsonText(value: unknown): string {
  return escapeSteering(JSON.stringify(value, null, 2) ?? "null");
}

function escapeSteering(json: string): string {
  return json
    .replace(STEERING, escapeUnit)
    .replace(UNDRAWN, (mark) =>
      Array.from({ length: mark.length }, (_, at) => escapeUnit(mark[at]!)).join(""),
    );
}

/** Joiners between letters and in emojis stay. */
const UNDRAWN = /(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** A time span in the two units that matter. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / (24 * 60))} days`;
}

/** A time span in its largest unit, for a column. */
export function age(ms: number): string {
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  const hours = Math.floor(ms / 3_600_000);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

/** Local time, in a form that sorts. */
export function localTime(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "beyond any calendar";
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Date and time of day by the clock of a time zone, with the zone's name. */
export function zonedTime(at: number, timeZone: string): string {
  const time = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  return `${time.format(at)} ${timeZone}`;
}

/** Columns of text, each as wide as its widest cell; the last one is not filled up. */
export function table(
  rows: readonly (readonly string[])[],
  width: (text: string) => number = visibleLength,
): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, width(cell));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - width(cell))))
      .join("  ")
      .trimEnd(),
  );
}

/** The fewest characters of a column that gives way: an id, the last column, and any other. */
const ID_MIN = 10;
const LAST_MIN = 20;
const OTHER_MIN = 14;

/** How a table gives way to the width of its terminal. */
interface TableFit {
  readonly columns: number;
  /** The column of the ids. */
  readonly id: number;
  readonly cutMark: string;
  /** The fewest characters of other columns, by their places. They give way after the last one. */
  readonly least?: Readonly<Record<number, number>>;
  /** The columns that are left out where the others would be cut below their least widths, the first one first. */
  readonly dropped?: readonly number[];
}

/**
 * A table that is as wide as the terminal at most. Columns that may be dropped go first. Then the ids give way,
 * in their middle, because their ends tell them apart; then the last column, then the widest of the others. Each
 * cut shows the mark. Cells with colours are not cut.
 */
export function fittedTable(rows: readonly (readonly string[])[], fit: TableFit): string[] {
  const all = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => visibleLength(row[at] ?? ""))));
  const leastOf = (at: number): number =>
    at === fit.id ? ID_MIN : at === all.length - 1 ? LAST_MIN : (fit.least?.[at] ?? OTHER_MIN);
  let kept = all.map((_, at) => at);
  for (const drop of fit.dropped ?? []) {
    const needed = kept.reduce((sum, at) => sum + Math.min(all[at]!, leastOf(at)), 2 * (kept.length - 1));
    if (needed > fit.columns) kept = kept.filter((at) => at !== drop);
  }
  return cutTable(
    rows.map((row) => kept.map((at) => row[at] ?? "")),
    kept.map(leastOf),
    { ...fit, id: kept.indexOf(fit.id) },
  );
}

function cutTable(
  rows: readonly (readonly string[])[],
  least: readonly number[],
  { columns, id, cutMark }: Pick<TableFit, "columns" | "id" | "cutMark">,
): string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => visibleLength(row[at] ?? ""))));
  const last = widths.length - 1;
  let over = widths.reduce((sum, width) => sum + width, 2 * last) - columns;
  const give = (at: number, min = least[at]!): void => {
    const less = Math.max(0, Math.min(over, widths[at]! - min));
    widths[at]! -= less;
    over -= less;
  };
  give(id);
  give(last);
  const others = widths.map((width, at) => [width, at] as const).filter(([, at]) => at !== id && at !== last);
  for (const [, at] of others.toSorted(([a], [b]) => b - a)) give(at);
  give(last, 0);
  const cut = (cell: string, at: number): string => {
    const most = widths[at]!;
    if (visibleLength(cell) <= most || visibleLength(cell) < cell.length) return cell;
    if (at !== id) return cutTo(cell, most, cutMark);
    const tail = Math.floor((most - cutMark.length) / 2);
    return cutTo(cell, most - tail, cutMark) + cell.slice(cell.length - tail);
  };
  const lines = table(rows.map((row) => row.map(cut)));
  return lines.map((line) => (visibleLength(line) < line.length ? line : cutTo(line, columns, cutMark)));
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** A paragraph as lines, broken between words. A longer word has a line of its own. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= width) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line];
}

/** "1 task", "2 tasks". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** For a shell, so that what is printed can be pasted. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
