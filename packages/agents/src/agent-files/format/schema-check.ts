// `checkJsonSchema`: whether a value is a JSON Schema that can be used safely.

import { ajv } from "../../lazy-packages.ts";

const SCHEMA_CHARS_MAX = 100_000;

/** @returns the problem, or `undefined` for a schema. */
export function checkJsonSchema(schema: Readonly<Record<string, unknown>>): string | undefined {
  const text = JSON.stringify(schema);
  if (text.length > SCHEMA_CHARS_MAX)
    return `the schema has ${text.length} characters, and ${SCHEMA_CHARS_MAX} is the limit`;
  const endless = patternsIn(schema).find(isEndless);
  if (endless !== undefined)
    return `matching the pattern ${JSON.stringify(endless)} may never end: it repeats a group that has a repetition, or two alternatives that begin alike`;
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

/** An escaped character, a class of characters, the beginning of a group, or one character. */
const PARTS = /\\.|\[(?:\\.|[^\]])*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|[^]/g;
const REPETITION = /^(?:[*+]|\{\d+,)/;

/** Whether a group is repeated that can match one text in more than one way, on which matching may take years. */
function isEndless(pattern: string): boolean {
  const open: { alternatives: string[]; isRepeating: boolean }[] = [];
  for (const { 0: part, index } of pattern.matchAll(PARTS)) {
    const group = open.at(-1);
    if (part.startsWith("(")) open.push({ alternatives: [""], isRepeating: false });
    else if (part === ")" && group !== undefined) {
      open.pop();
      const isRepeated = REPETITION.test(pattern.slice(index + 1));
      if (isRepeated && (group.isRepeating || haveOneBeginning(group.alternatives))) return true;
      const outer = open.at(-1);
      if (outer !== undefined) outer.isRepeating ||= group.isRepeating || isRepeated;
    } else if (group !== undefined) {
      if (part === "|") group.alternatives.push("");
      else group.alternatives.push((group.alternatives.pop() ?? "") + part);
      group.isRepeating ||= REPETITION.test(pattern.slice(index + part.length));
    }
  }
  return false;
}

function haveOneBeginning(alternatives: readonly string[]): boolean {
  return alternatives.some((one, at) =>
    alternatives.some((other, place) => at !== place && other.startsWith(one)),
  );
}
