// The check of a call by awk, over generated schemas and calls: it finds wrong what the tool finds wrong. The
// calls that are shown as right are right for both.

import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import { Sandboxes } from "@holdfast/workspace";
import type { JsonSchema } from "@holdfast/core";
import { findProblems } from "../../model-loop/json-schema.ts";
import { flagsOf, parametersOf } from "../script-parameters.ts";
import { awkCheck } from "./awk-check.ts";
import { awkPattern } from "./awk-pattern.ts";
import { exampleArguments } from "./example-values.ts";

/** A program, or a sandbox with an awk of its own. */
interface Awk {
  readonly name: string;
  readonly run: (words: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>;
}
/** The kinds of awk of this machine. Every POSIX system has the first. */
const OF_MACHINE: readonly Awk[] = [
  ["awk"],
  ...(isCampaign ? [["mawk"], ["gawk"], ["original-awk"], ["busybox", "awk"]] : []),
]
  .filter(([program = "", ...rest]) => spawnSync(program, [...rest, "BEGIN { exit 0 }"]).status === 0)
  .map(([program = "", ...rest]) => ({
    name: [program, ...rest].join(" "),
    run: async (words) =>
      spawnSync(program, [...rest, ...words], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } }),
  }));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-awk-")));
const sandboxes = new Sandboxes();
const emulated = await sandboxes.open(sandboxes.addressOf("virtual", { session: "s", root: folder }));
const AWKS: readonly Awk[] = [
  ...OF_MACHINE,
  { name: "awk of the emulated shell", run: (words) => emulated.execute(["awk", ...words]) },
];
afterAll(async () => {
  await emulated.dispose();
  rmSync(folder, { recursive: true });
});
const RUNS = isCampaign ? 400 : 60;
/** A campaign plays other cases each time. */
const SEED = isCampaign ? {} : { seed: 1 };
const DEFS = {
  level: { type: "integer", minimum: 1, maximum: 9 },
  tree: {
    type: "object",
    properties: { name: { type: "string" }, below: { type: "array", items: { $ref: "#/$defs/tree" } } },
    required: ["name"],
    additionalProperties: false,
  },
};

const texts = fc.constantFrom(
  "a",
  "b",
  "TEXT",
  "",
  "\u0085\u0007",
  "é😀",
  "-x",
  "x y",
  'q"\\',
  "12",
  "a\nb",
  "ab-1",
);
const scalars = fc.oneof(
  texts,
  fc.integer({ min: -3, max: 12 }),
  // Ajv finds 2e21 no multiple of 1, because it reads it back from its text.
  fc.constantFrom(0.5, 1.5, 1e20, 1e-7, true, false, null),
);
const leaves: fc.Arbitrary<JsonSchema> = fc.oneof(
  fc.record(
    { type: fc.constant("string"), minLength: fc.nat(2), maxLength: fc.integer({ min: 2, max: 4 }) },
    { requiredKeys: ["type"] },
  ),
  fc.record({
    type: fc.constant("string"),
    pattern: fc.constantFrom("^[a-z]+$", "\\d", "^(a|b).?$", "^.{1,3}$", "[^a]", "^\\S+$"),
  }),
  fc.record(
    {
      type: fc.constantFrom("integer", "number"),
      minimum: fc.integer({ min: -2, max: 3 }),
      exclusiveMaximum: fc.integer({ min: 2, max: 9 }),
      multipleOf: fc.constantFrom(2, 0.5, 3),
    },
    { requiredKeys: ["type"] },
  ),
  fc.record({ enum: fc.uniqueArray(scalars, { minLength: 1, maxLength: 4 }) }),
  fc.record({ const: scalars }),
  fc.record({
    type: fc.constantFrom("boolean", "null", "array", "object", ["string", "null"], ["integer", "boolean"]),
  }),
  fc.constantFrom({ $ref: "#/$defs/level" }, { $ref: "#/$defs/tree" }, {}),
);
const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaves,
    fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("schema"), {
          maxKeys: 3,
          noNullPrototype: true,
        }),
        additionalProperties: fc.oneof(fc.constant(false), tie("schema")),
        patternProperties: fc.dictionary(fc.constantFrom("^a", "b$"), tie("schema"), {
          maxKeys: 1,
          noNullPrototype: true,
        }),
        minProperties: fc.nat(2),
        propertyNames: fc.constant({ maxLength: 1 }),
        dependentRequired: fc.constant({ a: ["b"] }),
      },
      { requiredKeys: ["type", "properties"] },
    ),
    fc.record(
      {
        type: fc.constant("array"),
        items: tie("schema"),
        prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        minItems: fc.nat(2),
        maxItems: fc.integer({ min: 1, max: 3 }),
        // Below a `contains` Ajv counts the items of another one wrong.
        contains: leaves,
      },
      { requiredKeys: ["type"] },
    ),
    // Beside `prefixItems` Ajv leaves out items whose type is not that of `items`.
    fc.record({ type: fc.constant("array"), items: tie("schema"), uniqueItems: fc.constant(true) }),
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: leaves }),
    fc.record({ if: leaves, then: tie("schema"), else: tie("schema") }, { requiredKeys: ["if"] }),
  ),
}));
const parameters = fc
  .record({
    properties: fc.dictionary(fc.constantFrom("one", "two", "three"), schemas, {
      minKeys: 1,
      maxKeys: 3,
      noNullPrototype: true,
    }),
    isNeeded: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  })
  .map(({ properties, isNeeded }): JsonSchema => {
    const required = Object.keys(properties).filter((_name, at) => isNeeded[at]);
    return { $defs: DEFS, type: "object", properties, required, additionalProperties: false };
  });
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    scalars,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "c", "name", "below"), tie("value"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  ),
})).value;

/** A quotient that is beyond the whole numbers of some kinds of awk. */
const LARGE: JsonSchema = {
  properties: { one: { type: "integer", multipleOf: 2 } },
  additionalProperties: false,
};
/** A needed switch that no call gives. Generated schemas seldom have one. */
const SWITCH_NEEDED: JsonSchema = {
  type: "object",
  properties: { one: { type: "boolean" } },
  required: ["one"],
};

/** The answer of awk about a call, which is empty for a right one. */
async function saidOf(
  schema: JsonSchema,
  words: readonly string[],
  awk: Awk,
  off: readonly string[] = [],
): Promise<string> {
  const checked = awkCheck(schema, parametersOf(schema));
  if ("beyond" in checked) throw new Error(`it has no program: ${checked.beyond}`);
  const switches = ` ${off.map((name) => `--${name} `).join("")}`;
  const { stdout, stderr } = await awk.run([checked.program, switches, ...words]);
  expect(stderr, awk.name).toBe("");
  return stdout;
}

/** The call of the tool whose arguments a shell has given, as far as flags can say it. */
function sayable(schema: JsonSchema, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kinds = new Map(parametersOf(schema).map(({ name, type }) => [name, type]));
  return Object.fromEntries(
    Object.entries(given).filter(([name, value]) => {
      const kind = kinds.get(name);
      if (kind === undefined) return false;
      if (kind === "switch") return typeof value === "boolean";
      if (kind === "string") return typeof value === "string";
      if (kind === "integer" || kind === "number") return typeof value === "number";
      return true;
    }),
  );
}

/** Names of the switches that a call has turned off. */
function switchedOff(schema: JsonSchema, call: Readonly<Record<string, unknown>>): readonly string[] {
  const switches = parametersOf(schema).filter(({ type }) => type === "switch");
  return switches.flatMap(({ name }) => (call[name] === false ? [name] : []));
}

test.each(AWKS)("$name finds a call wrong exactly where the tool does", async (awk) => {
  let wrong = 0;
  await fc.assert(
    fc.asyncProperty(
      parameters,
      fc.dictionary(fc.constantFrom("one", "two", "three"), values, { maxKeys: 3, noNullPrototype: true }),
      async (schema, given) => {
        const known = parametersOf(schema);
        const args = sayable(schema, given);
        // A switch that is needed and not there is off.
        const needed = known.filter(({ type, isRequired }) => type === "switch" && isRequired);
        const whole = { ...Object.fromEntries(needed.map(({ name }) => [name, false])), ...args };
        const said = await saidOf(schema, flagsOf(known, args), awk, switchedOff(schema, args));
        const problems = findProblems(schema, whole);
        if (problems !== undefined) wrong++;
        expect(said === "", `${JSON.stringify({ schema, whole, problems })}: ${said}`).toBe(
          problems === undefined,
        );
      },
    ),
    {
      ...SEED,
      numRuns: RUNS,
      examples: [
        [SWITCH_NEEDED, {}],
        [LARGE, { one: 1e20 }],
      ],
    },
  );
  expect(wrong).toBeGreaterThan(RUNS / 10);
});

// Comparing each pair of so many items takes minutes.
test.each(AWKS)(
  "$name finds an item that a long list has twice, in any order of its names",
  async (awk) => {
    const schema = { properties: { x: { type: "array", uniqueItems: true } }, additionalProperties: false };
    const item = (n: number) => ({ id: n, of: ["a", `b${n}`], "": n / 3 });
    const items = Array.from({ length: awk.name.includes("emulated") ? 150 : 1_500 }, (_, n) => item(n));
    const said = (x: unknown) => saidOf(schema, flagsOf(parametersOf(schema), { x }), awk);
    expect(await said([...items, 0, "0", [0], [[0]], null, false, "", {}, { id: 1 }])).toBe("");
    const { id, ...rest } = item(7);
    for (const again of [{ ...rest, id }, 0])
      expect(await said([...items, -0, again].concat(again === 0 ? [0] : []))).toContain(
        "has one item twice",
      );
  },
  30_000,
);

test("the call that is shown as right is right, and most schemas have one", async () => {
  let shown = 0;
  await fc.assert(
    fc.asyncProperty(parameters, async (schema) => {
      const { call } = exampleArguments(schema);
      if (call === undefined) return;
      shown++;
      expect(findProblems(schema, call)).toBeUndefined();
      const words = flagsOf(parametersOf(schema), call);
      expect(await saidOf(schema, words, AWKS[0]!, switchedOff(schema, call))).toBe("");
    }),
    { ...SEED, numRuns: RUNS },
  );
  expect(shown).toBeGreaterThan(RUNS * 0.6);
});

test.each<readonly [string, readonly string[]]>([
  ["^[a-z0-9._%+-]+@[a-z0-9.-]+\\.[a-z]{2,4}$", ["a@b.de", "a@b", "a@b.museum", "@b.de"]],
  ["^\\d{4}-\\d{2}-\\d{2}$", ["2026-01-31", "2026-1-31", "x2026-01-31"]],
  ["^(?:v)?\\d+(?:\\.\\d+){0,2}$", ["v1", "1.2.3", "1.2.3.4", "v"]],
  ["^[^\\s/\\\\\\]]+$", ["ab", "a b", "a/b", "a\\b", "a]b", "é"]],
  ["^[\\w-]+$", ["a-b", "a^b", "é"]],
  ["[\\[\\]^-]", ["[", "]", "^", "-", "a"]],
  ["^.{2}$", ["éé", "é", "😀a", "a\nb"]],
  ["a|b*c", ["c", "a", "d"]],
])("the pattern %s matches in awk what it matches here", async (pattern, subjects) => {
  expect(awkPattern(pattern)).toBeDefined();
  const schema = { properties: { x: { type: "string", pattern } }, additionalProperties: false };
  for (const awk of AWKS)
    for (const x of subjects)
      expect(
        (await saidOf(schema, flagsOf(parametersOf(schema), { x }), awk)) === "",
        `${awk.name}: ${x}`,
      ).toBe(new RegExp(pattern, "u").test(x));
});

test.each(["(?=a)b", "(a)\\1", "\\bword", "\\p{L}", "[à-ü]", "é", "a{1,9999}", "(|a)"])(
  "the pattern %s has no translation, and its check says so",
  (pattern) => {
    const schema = { properties: { x: { type: "string", pattern } } };
    expect(awkCheck(schema, parametersOf(schema))).toEqual({ beyond: `the pattern ${pattern}` });
  },
);
