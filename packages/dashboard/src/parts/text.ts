// Texts of times and amounts, and agents' texts made visible.

import { whyText as viewWhyText } from "@holdfast/proto/view";
import type { Session } from "../api/types.ts";

/** Millionths of a US dollar in one dollar. */
export const MICRO = 1_000_000;

// Characters that steer a terminal, have no shape, or reorder text. React shows all others as text.
// oxlint-disable-next-line no-control-regex -- they are what is looked for.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A text of unknown origin in which nothing is hidden: characters without a shape are written as their numbers. */
export function shown(text: string): string {
  return text.replace(UNSEEN, (mark) =>
    mark === "\r" ? "" : `⟨${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** "1 call", "2,000 calls". */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

/** As `shown`, cut to a length. */
export function brief(text: string, charsMax = 200): string {
  const head = shown(text.slice(0, charsMax + 1).replace(/\s+/g, " "));
  return text.length > charsMax ? `${head.slice(0, charsMax)}…` : head;
}

/** As `brief`, of a path: its end has the name of the file. */
export function briefPath(path: string, charsMax = 300): string {
  return path.length > charsMax ? `…${brief(path.slice(-charsMax), charsMax)}` : brief(path, charsMax);
}

export function json(value: unknown): string {
  return value === undefined ? "" : (JSON.stringify(value, null, 2) ?? "");
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** "3 min ago", in the largest unit. */
export function ago(at: number, now: number): string {
  const s = Math.max(0, Math.round((now - at) / 1_000));
  if (s < 5) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ago`;
  if (s < 48 * 3_600) return `${Math.floor(s / 3_600)} h ago`;
  return `${Math.floor(s / 86_400)} days ago`;
}

/** "in 3 min", in the largest unit. */
export function until(at: number, now: number): string {
  const s = Math.round((at - now) / 1_000);
  if (s < 1) return "now";
  if (s < 60) return `in ${s} s`;
  if (s < 3_600) return `in ${Math.floor(s / 60)} min`;
  return s < 48 * 3_600 ? `in ${Math.floor(s / 3_600)} h` : `in ${Math.floor(s / 86_400)} days`;
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function dateText(at: number): string {
  return Number.isFinite(at) ? DATE.format(at) : "";
}

export function statusText({ status, pauseReason }: Pick<Session, "status" | "pauseReason">): string {
  const words = status === "input_required" ? "asks you" : status;
  return status === "paused" && pauseReason !== undefined
    ? `paused: ${pauseReason.replaceAll("_", " ")}`
    : words;
}

/** `whyText` of the view, with times as the page shows them. */
export function whyText(session: Session, isLocal: boolean): string {
  return viewWhyText(session, { isElsewhere: !isLocal, when: dateText });
}
