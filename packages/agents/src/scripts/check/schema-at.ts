// `schemaAt`: the schema that a reference within a JSON Schema names.

import type { JsonSchema } from "@holdfast/core";

export type Schema = JsonSchema | boolean;

/** @returns `undefined` for a reference that leads to no schema of this document. */
export function schemaAt(root: JsonSchema, reference: string): Schema | undefined {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const part of reference.split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === "boolean" || (typeof found === "object" && found !== null && !Array.isArray(found))
    ? (found as Schema)
    : undefined;
}

/** The elements of a list, one value as a list of it, and nothing as an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly unknown[]) : [value];
}
