// A timeline for people: each turn with what it waited for, a bar per task and wait, and what was used.
//
// A bar is drawn over its turn's time: `#` an attempt, `-` a wait or a back-off. On a narrow terminal there
// are no bars.

import type { Look } from "../frame/command.ts";
import { errorLine, moment, paintStatus, statusText } from "./describe-session.ts";
import { count, cutTo, duration, plainLine, table } from "../frame/plain-text.ts";
import {
  itemFacts,
  itemName,
  timelineFacts,
  turnFacts,
  usageFacts,
  type TimelineItem,
  type TimelineTurn,
} from "@holdfast/proto/view";
import type { Timeline } from "./session-timeline.ts";

/** The most turns that are shown; `--json` has all. */
const TURNS_SHOWN = 30;
const ITEMS_SHOWN = 60;
const CHILDREN_SHOWN = 60;
const COLUMNS = { unlimited: 120, forBars: 56, most: 160 };
const NAME_CHARS = 28;
const BAR = { least: 8, most: 60 };

export function timelineText(timeline: Timeline, look: Look, now: number): string {
  const { session, turns, until, usage } = timeline;
  const { paint } = look;
  const width = Math.min(look.columns === Infinity ? COLUMNS.unlimited : look.columns, COLUMNS.most);
  const cut = (text: string): string => plainLine(text, width - 2, look.symbols.cut);
  const lines = [
    `${paint.bold(plainLine(session.agent.name, 60))}  ${paintStatus(session, look)}`,
    paint.dim(cut(session.sessionId)),
    cut(`started ${moment(session.createdAt, now)}, ${duration(until - session.createdAt)} in all`),
  ];
  const shown = turns.slice(-TURNS_SHOWN);
  if (shown.length < turns.length)
    lines.push(paint.dim(cut(`${count(turns.length - shown.length, "earlier turn")}: --json has all`)));
  for (const turn of shown) lines.push("", ...turnLines(turn, { timeline, look, width }));
  lines.push("", ...totals(timeline, cut, paint.bold));
  if (usage === undefined)
    lines.push(
      paint.dim(cut(`no usage is recorded${timeline.children.length > 0 ? " of its own tasks" : ""}`)),
    );
  lines.push(...childLines(timeline, width, look));
  return lines.join("\n");
}

/** Those below it, each with what its own tasks used, and the sum of all. */
function childLines(
  { children, usageOfAll, until }: Timeline,
  width: number,
  { paint, symbols }: Look,
): string[] {
  if (children.length === 0) return [];
  const rows = children
    .slice(0, CHILDREN_SHOWN)
    .map(({ session, depth, usage }) => [
      `  ${"  ".repeat(depth)}${session.sessionId}`,
      plainLine(session.agent.name, NAME_CHARS),
      statusText(session),
      duration((session.endedAt ?? until) - session.createdAt),
      usageFacts(usage).join(", "),
    ]);
  const sum = usageFacts(usageOfAll).join(", ");
  return [
    "",
    paint.bold(count(children.length, "session below it", "sessions below it")),
    ...table(rows).map((row) => cutTo(row, width, symbols.cut)),
    ...(rows.length === children.length ? [] : [paint.dim(`  and ${children.length - rows.length} more`)]),
    ...(sum === "" ? [] : [paint.bold(cutTo(`in all ${sum}`, width, symbols.cut))]),
  ];
}

function turnLines(
  turn: TimelineTurn,
  { timeline, look, width }: { readonly timeline: Timeline; readonly look: Look; readonly width: number },
): string[] {
  const { paint, symbols } = look;
  const { until, session } = timeline;
  const { sessionId } = session;
  const end = turn.endedAt ?? until;
  const head = [duration(end - turn.startedAt), ...turnFacts(turn)].join(", ");
  const title = `turn ${turn.turn}`;
  const lines = [
    `${paint.bold(title)}  ${paint.dim(plainLine(head, Math.max(8, width - title.length - 2), symbols.cut))}`,
  ];
  const items = turn.items.slice(0, ITEMS_SHOWN);
  const columns = columnsFor(items, { until, width, sessionId });
  const drawnTo = turn.endedAt ?? lastMoment(turn, until);
  for (const item of items)
    lines.push(...itemLines(item, { turn, end: drawnTo, until, look, width, columns, sessionId }));
  if (items.length < turn.items.length)
    lines.push(paint.dim(`  and ${turn.items.length - items.length} more`));
  for (const { at, text, isWarning } of turn.marks) {
    const line = plainLine(
      `${isWarning ? symbols.warn : symbols.begin} ${text}  (after ${duration(at - turn.startedAt)})`,
      width - 2,
      symbols.cut,
    );
    lines.push(`  ${isWarning ? paint.yellow(line) : paint.dim(line)}`);
  }
  return lines;
}

/** The end of bars in an unfinished turn. A wait of days would leave one character for all other items. */
function lastMoment({ startedAt, items }: TimelineTurn, until: number): number {
  if (items.some(({ type, outcome }) => type === "task" && outcome === "open")) return until;
  const last = Math.max(startedAt, ...items.map((item) => item.endedAt ?? item.startedAt));
  return Math.min(until, startedAt + (last - startedAt) * 1.25);
}

interface RowColumns {
  readonly name: number;
  readonly took: number;
  readonly facts: number;
  /** 0 where there is no room. */
  readonly bar: number;
}

/** As wide as what they hold; what is left is for bars. */
function columnsFor(
  items: readonly TimelineItem[],
  { until, width, sessionId }: { readonly until: number; readonly width: number; readonly sessionId: string },
): RowColumns {
  const longest = (texts: readonly string[]): number => Math.max(0, ...texts.map((text) => text.length));
  const name = Math.min(
    NAME_CHARS,
    longest(items.map((item) => nameOf(item, sessionId))),
    Math.max(8, Math.floor(width / 3)),
  );
  const took = longest(items.map((item) => duration((item.endedAt ?? until) - item.startedAt)));
  const facts = Math.min(
    longest(items.map((item) => itemFacts(item).join(", "))),
    Math.max(0, Math.floor(width / 3)),
  );
  const left = width - (4 + name + 2 + took + 2 + facts + 2);
  return {
    name,
    took,
    facts,
    bar: width < COLUMNS.forBars || left < BAR.least ? 0 : Math.min(left, BAR.most),
  };
}

interface Row {
  readonly turn: TimelineTurn;
  readonly end: number;
  readonly until: number;
  readonly look: Look;
  readonly width: number;
  readonly columns: RowColumns;
  readonly sessionId: string;
}

function itemLines(item: TimelineItem, row: Row): string[] {
  const { look, width, columns, until } = row;
  const { paint, symbols } = look;
  const name = plainLine(nameOf(item, row.sessionId), columns.name, symbols.cut).padEnd(columns.name);
  const took = duration((item.endedAt ?? until) - item.startedAt).padStart(columns.took);
  const facts = plainLine(itemFacts(item).join(", "), Math.max(0, columns.facts), symbols.cut);
  const bar = columns.bar === 0 ? "" : `  ${barOf(item, row)}`;
  const text = `${name}  ${took}  ${bar === "" ? facts : facts.padEnd(columns.facts)}`;
  const lines = [
    `  ${markOf(item, look)} ${bar === "" ? text.slice(0, width - 4).trimEnd() : text}${bar}`.trimEnd(),
  ];
  for (const attempt of item.attempts ?? []) {
    if (attempt.error === undefined) continue;
    const error = `attempt ${attempt.attempt}: ${errorLine(attempt.error)}`;
    lines.push(`      ${paint.red(plainLine(error, Math.max(10, width - 6), symbols.cut))}`);
  }
  return lines;
}

function nameOf(item: TimelineItem, sessionId: string): string {
  return plainLine(itemName(item, sessionId), NAME_CHARS * 2);
}

function markOf({ type, outcome }: TimelineItem, { paint, symbols }: Look): string {
  switch (outcome) {
    case "open":
      return type === "task" ? symbols.begin : type === "question" ? symbols.ask : symbols.wait.slice(0, 1);
    case "completed":
      return type === "task" ? paint.green(symbols.done) : paint.cyan(symbols.arrived);
    case "failed":
      return paint.red(symbols.failed);
    case "timed_out":
    case "cancelled":
      return paint.yellow(symbols.warn);
    case "withdrawn":
      return paint.dim(symbols.again);
  }
}

/** Every attempt and wait has at least one character: what took no time still happened. */
function barOf(item: TimelineItem, { turn, end, until, columns, look }: Row): string {
  const cells = Array.from({ length: columns.bar }, () => " ");
  const perCell = Math.max(1, end - turn.startedAt) / columns.bar;
  const cell = (at: number): number =>
    Math.min(columns.bar - 1, Math.max(0, Math.floor((at - turn.startedAt) / perCell)));
  const fill = (from: number, to: number, mark: string): void => {
    const last = Math.max(cell(from), Math.ceil((to - turn.startedAt) / perCell) - 1);
    cells.fill(mark, cell(from), Math.min(columns.bar, last + 1));
  };
  fill(item.startedAt, item.endedAt ?? until, "-");
  for (const { startedAt, endedAt } of item.attempts ?? [])
    fill(startedAt, endedAt ?? Math.max(startedAt, until), "#");
  const text = cells.join("").trimEnd();
  return item.outcome === "failed" ? look.paint.red(text) : look.paint.cyan(text);
}

function totals(timeline: Timeline, cut: (text: string) => string, bold: (text: string) => string): string[] {
  return [
    bold(cut(timelineFacts(timeline.turns, timeline.usage).join(", "))),
    ...timeline.models.map(({ model, ...usage }) => cut(`  ${model}: ${usageFacts(usage).join(", ")}`)),
  ];
}
