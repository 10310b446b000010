// The headers by which a calling session names itself, what it demands, and the agents that it wants to see
// (`parentIn`, `demandsIn`, `tagsIn`).

import { UsageError } from "@holdfast/core";
import type { IncomingHttpHeaders } from "node:http";

const PARENT = "x-agent-session-id";
const DEMANDS = "x-additional-demands";
const TAGS = "x-agent-tags";

/** The tags that an agent must have, all of them. An empty list is no filter. */
export function tagsIn(headers: IncomingHttpHeaders): readonly string[] {
  const tags = headers[TAGS];
  return typeof tags === "string" ? splitTags(tags) : [];
}

/** `a,b` as tags. */
export function splitTags(text: string): readonly string[] {
  return text
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
}

export function parentIn(headers: IncomingHttpHeaders): string | undefined {
  const parent = headers[PARENT];
  return typeof parent === "string" && parent !== "" ? parent : undefined;
}

/** @throws UsageError */
export function demandsIn(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const text = headers[DEMANDS];
  if (typeof text !== "string" || text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = isObject ? Object.entries(value as object) : [];
  if (!isObject || entries.some(([, label]) => typeof label !== "string"))
    throw new UsageError("the demands are not an object of labels", {
      at: "X-Additional-Demands",
      got: text.slice(0, 100),
      expected: 'a JSON object of texts, such as {"gpu":"yes"}',
      fix: "correct the header",
    });
  return Object.fromEntries(entries);
}
