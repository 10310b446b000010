// The headers by which a calling session names itself and what it demands (`parentIn`, `demandsIn`).

import { UsageError } from "@holdfast/core";
import type { IncomingHttpHeaders } from "node:http";

const PARENT = "x-agent-session-id";
const DEMANDS = "x-additional-demands";
const TAGS = "x-agent-tags";

/** @throws UsageError for a header that has no meaning here, because ignoring a filter would show too much. */
export function parentIn(headers: IncomingHttpHeaders): string | undefined {
  const tags = headers[TAGS];
  if (typeof tags === "string" && tags.trim() !== "")
    throw new UsageError("agents have no tags here", {
      at: "X-Agent-Tags",
      got: tags.slice(0, 100),
      fix: "leave the header out, and choose agents by their name",
    });
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
