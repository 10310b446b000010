// `exampleArguments`: arguments that the schema of a script's parameters takes, for usage texts and messages
// about wrong calls. Pure but for the memory of its results.
//
//   - An example has passed `findProblems`. A schema whose values nobody can guess has no example.
//   - References, `allOf` and the forms of `anyOf` and `oneOf` are followed a few steps deep.

import { findProblems } from "../../model-loop/json-schema.ts";
import type { JsonSchema } from "@holdfast/core";
import { listOf, schemaAt, type Schema } from "./schema-at.ts";

export interface ExampleArguments {
  /** The required parameters, and others where the schema asks for them. `undefined` when none were found. */
  readonly call: Readonly<Record<string, unknown>> | undefined;
  /** A right value for each parameter that one was found for. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** Steps into a schema. */
const DEPTH_MAX = 6;
/** Values that are tried for one place. */
const TRIED_MAX = 60;
const TEXTS = [
  "TEXT",
  "text",
  "a",
  "A",
  "1",
  "10",
  "a1",
  "A1",
  "ab-1",
  "1.0.0",
  "v1.0.0",
  "x_1",
  "a/b",
  "a.b",
  "/a/b",
  "a@b.example",
  "https://a.example/b",
  "2026-01-31",
  "10:00",
  "10:00:00",
  "2026-01-31T10:00:00Z",
  "#aabbcc",
  "12345678-1234-4123-8123-123456789012",
  "EN",
  "en-US",
  "AB12",
];

const known = new WeakMap<JsonSchema, ExampleArguments>();

export function exampleArguments(schema: JsonSchema): ExampleArguments {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const found = findExamples(schema);
  known.set(schema, found);
  return found;
}

function findExamples(schema: JsonSchema): ExampleArguments {
  const { properties = {}, required = [] } = flattened(schema, schema) as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
  };
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    const isWrong = (value: unknown): boolean =>
      findProblems(schema, { [name]: value })
        ?.split("\n")
        .some((line) => line.startsWith(`/${name}`)) ?? false;
    const right = valuesOf(schema, property).find((value) => !isWrong(value));
    if (right !== undefined) values[name] = right;
  }
  const whole = valuesOf(schema, schema).filter(
    (value): value is Record<string, unknown> =>
      typeof value === "object" && value !== null && !Array.isArray(value),
  );
  const needed = only(values, required);
  const others = Object.keys(values).filter((name) => !required.includes(name));
  const calls = [
    needed,
    ...others.map((name) => ({ ...needed, [name]: values[name] })),
    ...whole.map((value) => ({ ...needed, ...value })),
    ...whole,
    values,
  ];
  return { values, call: calls.find((call) => findProblems(schema, call) === undefined) };
}

function only(values: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => name in values).map((name) => [name, values[name]]));
}

/** The schema of a place with what its references and `allOf` say, in one object. */
export function flattened(root: JsonSchema, schema: Schema, depth = 0): JsonSchema {
  if (typeof schema === "boolean") return {};
  const { $ref, allOf, ...own } = schema;
  if (depth > DEPTH_MAX) return own;
  const named = typeof $ref === "string" ? [schemaAt(root, $ref) ?? true] : [];
  const all = [...named, ...((allOf ?? []) as readonly Schema[])];
  return all.reduce<JsonSchema>((into, one) => merged(flattened(root, one, depth + 1), into), own);
}

function merged(first: JsonSchema, second: JsonSchema): JsonSchema {
  const object = (name: string) => ({ ...(first[name] as object), ...(second[name] as object) });
  const list = (name: string) => [...new Set([...listOf(first[name]), ...listOf(second[name])])];
  return {
    ...first,
    ...second,
    ...(first["properties"] === undefined ? {} : { properties: object("properties") }),
    ...(first["required"] === undefined ? {} : { required: list("required") }),
  };
}

/** Values that a place may take, the likeliest first. */
function valuesOf(root: JsonSchema, schema: Schema, depth = 0): readonly unknown[] {
  const whole = flattened(root, schema, depth);
  const { anyOf, oneOf, examples, enum: choices } = whole;
  const { anyOf: _any, oneOf: _one, ...base } = whole;
  const forms = [...listOf(anyOf), ...listOf(oneOf)] as readonly Schema[];
  const named = [
    ...(Array.isArray(examples) ? (examples as unknown[]) : []),
    ...("default" in whole ? [whole["default"]] : []),
    ...("const" in whole ? [whole["const"]] : []),
    ...(Array.isArray(choices) ? (choices as unknown[]) : []),
  ];
  if ("const" in whole || Array.isArray(choices) || depth > DEPTH_MAX) return named;
  const ofForms = forms.flatMap((form) =>
    valuesOf(root, merged(base, flattened(root, form, depth)), depth + 1),
  );
  const made = typesOf(base).flatMap((type) => madeValues(root, base, type, depth));
  return [...named, ...(forms.length > 0 ? [...ofForms, ...made] : made)].slice(0, TRIED_MAX);
}

function typesOf({ type, ...schema }: JsonSchema): readonly string[] {
  if (type !== undefined) return listOf(type) as readonly string[];
  const has = (...names: readonly string[]) => names.some((name) => name in schema);
  if (has("properties", "required", "additionalProperties", "minProperties")) return ["object"];
  if (has("items", "prefixItems", "minItems", "contains")) return ["array"];
  if (has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) return ["number"];
  return ["string", "integer", "object", "array", "boolean"];
}

function madeValues(root: JsonSchema, schema: JsonSchema, type: string, depth: number): readonly unknown[] {
  switch (type) {
    case "string":
      return texts(schema);
    case "integer":
    case "number":
      return numbers(schema, type === "integer");
    case "boolean":
      return [true, false];
    case "array":
      return arrays(root, schema, depth);
    case "object":
      return objects(root, schema, depth);
    default:
      return [null];
  }
}

function texts({ minLength, maxLength, pattern }: JsonSchema): readonly string[] {
  const least = typeof minLength === "number" ? minLength : 0;
  const most = typeof maxLength === "number" ? maxLength : Number.POSITIVE_INFINITY;
  const sized = TEXTS.flatMap((text) => [text, text.padEnd(least, text.at(-1)), text.slice(0, most)]);
  const expression = typeof pattern === "string" ? new RegExp(pattern, "u") : /^/;
  const fits = (text: string) => text.length >= least && text.length <= most && expression.test(text);
  return [...new Set([...sized, ""])].filter(fits);
}

function numbers(schema: JsonSchema, isWhole: boolean): readonly number[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Record<
    string,
    number | undefined
  >;
  const step = multipleOf ?? (isWhole ? 1 : 0.5);
  const ends = [minimum, maximum, exclusiveMinimum, exclusiveMaximum].filter((end) => end !== undefined);
  const around = ends.flatMap((end) => [-2, -1, 0, 1, 2].map((by) => (Math.round(end / step) + by) * step));
  const fits = (value: number) =>
    (!isWhole || Number.isInteger(value)) &&
    value >= (minimum ?? -Infinity) &&
    value <= (maximum ?? Infinity) &&
    value > (exclusiveMinimum ?? -Infinity) &&
    value < (exclusiveMaximum ?? Infinity);
  return [...new Set([1, 2, 3, ...ends, ...around, step, step * 2, 0])].filter(fits);
}

function arrays(root: JsonSchema, schema: JsonSchema, depth: number): readonly unknown[] {
  const { minItems, prefixItems, items, contains, minContains } = schema;
  const first = ((prefixItems ?? []) as readonly Schema[]).map((one) => valuesOf(root, one, depth + 1)[0]);
  const inside = contains === undefined ? [] : valuesOf(root, contains as Schema, depth + 1);
  const others = valuesOf(root, (items ?? true) as Schema, depth + 1);
  const least = typeof minItems === "number" ? minItems : 0;
  const held =
    contains === undefined || minContains === 0 ? 0 : typeof minContains === "number" ? minContains : 1;
  const list = (length: number, from: readonly unknown[]) =>
    Array.from({ length }, (_, at) => from[at] ?? from[at % Math.max(1, from.length)]);
  const begun = [...first, ...list(held, inside)];
  const filled = (length: number) => [...begun, ...list(Math.max(0, length - begun.length), others)];
  return [filled(Math.max(least, 1)), filled(least), ...others.map((one) => [...begun, one]), []];
}

function objects(root: JsonSchema, schema: JsonSchema, depth: number): readonly unknown[] {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
  };
  const names = [...new Set([...required, ...Object.keys(properties)])];
  const tried = new Map(names.map((name) => [name, valuesOf(root, properties[name] ?? true, depth + 1)]));
  const withValues = (wanted: readonly string[]) =>
    Object.fromEntries(
      wanted.flatMap((name) => (tried.get(name) ?? []).slice(0, 1).map((value) => [name, value])),
    );
  const base = withValues(required);
  const others = names.filter((name) => !required.includes(name));
  return [
    base,
    ...others.map((name) => ({ ...base, ...withValues([name]) })),
    withValues(names),
    ...required.flatMap((name) =>
      (tried.get(name) ?? []).slice(1, 8).map((value) => ({ ...base, [name]: value })),
    ),
  ];
}
