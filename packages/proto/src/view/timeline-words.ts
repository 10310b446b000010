// `itemName`, `itemFacts`, `turnFacts`: the words of a timeline, as `holdfast trace` and the page show it.
// Names in them are untrusted.

import { costText, type Cost } from "./cost.ts";
import type { TimelineItem, TimelineTurn } from "./timeline.ts";
import { signalText } from "./wait.ts";

export function itemName({ type, name, child }: TimelineItem, sessionId: string): string {
  switch (type) {
    case "task":
      return name;
    case "signal":
      // Children of one session differ at the end of their ids alone, which a short line cuts.
      return child === undefined
        ? signalText(name, sessionId)
        : `the end of ${child.agent} #${child.sessionId.slice(child.sessionId.lastIndexOf("-") + 1)}`;
    case "timer":
      return "timer";
    case "question":
      return `question: ${name}`;
  }
}

/** The end of an item where it is not the usual one, its attempts, and what it used. */
export function itemFacts({ outcome, attempts = [], usage }: TimelineItem): readonly string[] {
  const lost = attempts.filter((attempt) => attempt.outcome === "lost").length;
  return [
    ...(outcome === "completed" ? [] : [outcome.replace("_", " ")]),
    ...(attempts.length > 1 ? [counted(attempts.length, "attempt")] : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
    ...usageFacts(usage),
  ];
}

export function turnFacts({ deliveries, items, usage }: TimelineTurn): readonly string[] {
  const tasks = items.filter(({ type }) => type === "task").length;
  return [
    deliveries === 1 ? "1 delivery" : `${deliveries} deliveries`,
    ...(tasks === 0 ? [] : [counted(tasks, "task")]),
    ...usageFacts(usage),
  ];
}

/** Turns, tasks, attempts and waits of a whole session, and what it used. */
export function timelineFacts(turns: readonly TimelineTurn[], usage: Cost | undefined): readonly string[] {
  const items = turns.flatMap((turn) => turn.items);
  const tasks = items.filter(({ type }) => type === "task");
  const attempts = tasks.reduce((total, { attempts: tries = [] }) => total + tries.length, 0);
  const waits = items.length - tasks.length;
  return [
    counted(turns.length, "turn"),
    counted(tasks.length, "task"),
    ...(attempts > tasks.length ? [counted(attempts, "attempt")] : []),
    ...(waits > 0 ? [counted(waits, "wait")] : []),
    ...usageFacts(usage),
  ];
}

/** Nothing for what called no model. */
export function usageFacts(usage: Cost | undefined): readonly string[] {
  if (usage === undefined || usage.calls === 0) return [];
  const { inputTokens, outputTokens, calls, unpriced, uncounted } = usage;
  if (uncounted === calls) return ["usage unknown"];
  return [`${inputTokens}+${outputTokens} tokens`, unpriced === calls ? "cost unknown" : costText(usage)];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
