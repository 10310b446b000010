// `checkJsonSchema`: why a value is no JSON Schema (2020-12) of bounded size, or `undefined`.
//
//   - References to other documents are refused, and so is a schema that leads back to itself without a step
//     into the value.
//   - Patterns with the common forms of endless backtracking are refused. Leaky: there are other forms.

import { ajv } from "../lazy-packages.ts";

const SCHEMA_CHARS_MAX = 100_000;

/** @returns the problem, or `undefined` for a schema. */
export function checkJsonSchema(schema: Readonly<Record<string, unknown>>): string | undefined {
  try {
    const text = JSON.stringify(schema);
    if (text.length > SCHEMA_CHARS_MAX)
      return `the schema has ${text.length} characters, and ${SCHEMA_CHARS_MAX} is the limit`;
    return problemOf(schema);
  } catch (error) {
    if (error instanceof RangeError)
      return "the schema is nested too deep, or leads back to itself without end";
    return (error as Error).message;
  }
}

/** @throws Error for a schema that cannot be compiled. @throws RangeError for one that needs more stack than there is. */
function problemOf(schema: Readonly<Record<string, unknown>>): string | undefined {
  const endless = patternsIn(schema).find(isEndless);
  if (endless !== undefined)
    return `matching the pattern ${JSON.stringify(endless)} may never end: it repeats a group that has a repetition, or two alternatives that begin alike`;
  const { Ajv2020 } = ajv();
  const checker = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  if (checker.validateSchema(schema) !== true) {
    const [error] = checker.errors ?? [];
    return `${error?.instancePath || "the schema"}: ${error?.message ?? "is no JSON Schema"}`;
  }
  const validate = checker.compile(schema);
  for (const sample of SAMPLES) validate(sample);
  return undefined;
}

/** A value of each type. */
const SAMPLES = [{}, [], "", 0, false, null];

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
const REPETITION = /^(?:[*+]|\{\d+,|\{\d{2,}\})/;
/** The characters by which two parts of a pattern are compared. The last one stands for all others. */
const CHARACTERS = [...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), "é"];

/** Whether a group is repeated that can match one text in more than one way, on which matching may take years. */
function isEndless(pattern: string): boolean {
  const open: { alternatives: string[]; isRepeating: boolean }[] = [];
  for (const { 0: part, index } of pattern.matchAll(PARTS)) {
    const group = open.at(-1);
    if (part.startsWith("(")) {
      group?.alternatives.push(`${group.alternatives.pop() ?? ""}(`);
      open.push({ alternatives: [""], isRepeating: false });
    } else if (part === ")" && group !== undefined) {
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

/** Whether two alternatives can match texts that begin with the same character, or one of them the empty text. */
function haveOneBeginning(alternatives: readonly string[]): boolean {
  const beginnings = alternatives.map(beginningOf);
  return beginnings.some((one, at) =>
    beginnings.slice(at + 1).some((other) => one.some((c) => other.includes(c))),
  );
}

function beginningOf(alternative: string): readonly string[] {
  const [first = ""] = alternative.match(PARTS) ?? [];
  const isUnknown = first === "" || /^(?:[(^$]|\\[bBpPuxck\d])/.test(first);
  const isOptional = /^(?:[?*]|\{0)/.test(alternative.slice(first.length));
  if (isUnknown || isOptional) return CHARACTERS;
  const part = new RegExp(`^${first}$`, "s");
  return CHARACTERS.filter((character) => part.test(character));
}
