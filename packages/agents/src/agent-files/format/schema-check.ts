// `checkJsonSchema`: whether a value is a JSON Schema that can be used safely.

import { ajv } from "../../lazy-packages.ts";

/** A repeated group with a repetition inside, on which matching may take years. */
const ENDLESS_PATTERN = /\([^()]*[*+}][^()]*\)[*+{]/;
const SCHEMA_CHARS_MAX = 100_000;

/** @returns the problem, or `undefined` for a schema. */
export function checkJsonSchema(schema: Readonly<Record<string, unknown>>): string | undefined {
  const text = JSON.stringify(schema);
  if (text.length > SCHEMA_CHARS_MAX)
    return `the schema has ${text.length} characters, and ${SCHEMA_CHARS_MAX} is the limit`;
  const endless = patternsIn(schema).find((pattern) => ENDLESS_PATTERN.test(pattern));
  if (endless !== undefined)
    return `matching the pattern ${JSON.stringify(endless)} may never end: it repeats a repetition`;
  const { Ajv2020 } = ajv();
  const checker = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  try {
    if (checker.validateSchema(schema) !== true) {
      const [error] = checker.errors ?? [];
      return `${error?.instancePath || "the schema"}: ${error?.message ?? "is no JSON Schema"}`;
    }
    checker.compile(schema);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function patternsIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = name === "pattern" && typeof inner === "string" ? [inner] : [];
    const keys = name === "patternProperties" && typeof inner === "object" ? Object.keys(inner ?? {}) : [];
    return [...own, ...keys, ...patternsIn(inner)];
  });
}
