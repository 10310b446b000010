import { create, getOption, hasOption, type DescField, type DescMessage } from "@bufbuild/protobuf";
import {
  BudgetSchema,
  fieldOption,
  RegisterRequestSchema,
  SERVICES,
  StartRequestSchema,
  type FieldRules,
} from "@holdfast/proto";
import { describe, expect, it, test } from "vitest";
import { findViolations } from "./constraints.ts";
import { sampleOf } from "./testing/sample.ts";

const READ: Readonly<Record<string, readonly string[]>> = {
  string: ["in", "pattern", "maxLen"],
  int32: ["greaterThan", "lessThan"],
  int64: ["greaterThan", "lessThan"],
  repeated: ["maxItems", "items"],
  map: ["maxPairs", "keys", "values"],
};

test("every constraint of the contract is one that is read", () => {
  const unread = fieldsBelow(SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input))).flatMap(
    (field) =>
      hasOption(field, fieldOption)
        ? unreadIn(getOption(field, fieldOption)).map((what) => `${field.toString()}: ${what}`)
        : [],
  );
  expect(unread).toEqual([]);
});

test("a sample keeps every constraint", () => {
  const messages = SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input));
  expect(messages.flatMap((desc) => findViolations(desc, sampleOf(desc)))).toEqual([]);
});

describe("a violation", () => {
  const found = (init: object) =>
    findViolations(StartRequestSchema, create(StartRequestSchema, { agent: "ok", ...init })).map(
      ({ pointer, code }) => `${pointer} ${code}`,
    );

  it.each([
    ["nothing", {}, []],
    ["a name that is none", { agent: "../x" }, ["/agent pattern"]],
    ["a name with a line break", { agent: "a\nb" }, ["/agent pattern"]],
    ["no name", { agent: "" }, ["/agent required"]],
    ["a text that is not one of those", { persistence: "ful" }, ["/persistence not_allowed"]],
    [
      "a number below its least",
      { budget: create(BudgetSchema, { maxTokens: 0n }) },
      ["/budget/maxTokens too_small"],
    ],
    ["a number above its most", { waitMs: 30_001 }, ["/waitMs too_large"]],
    ["an integer above 2^53", { timeoutMs: 2n ** 53n }, ["/timeoutMs not_safe_integer"]],
    ["JSON that is none", { input: Buffer.from("{") }, ["/input not_json"]],
    ["JSON that is no UTF-8", { input: Buffer.from([0x22, 0xff, 0x22]) }, ["/input not_json"]],
    ["JSON too deep", { input: Buffer.from("[".repeat(65) + "]".repeat(65)) }, ["/input too_deep"]],
    ["a key with a slash and a tilde", { demands: { "~/": "x" } }, ["/demands/~0~1 pattern"]],
    ["two at once", { agent: "", priority: 1001 }, ["/agent required", "/priority too_large"]],
  ])("a violation is reported with its place: %s", (_what, init, expected) =>
    expect(found(init)).toEqual(expected),
  );

  it("a violation in a list has the index in its pointer", () => {
    const register = create(RegisterRequestSchema, {
      hostname: "h",
      maxRuns: 1,
      agents: [{ name: "a" }, { name: "" }],
    });
    expect(findViolations(RegisterRequestSchema, register).map(({ pointer }) => pointer)).toEqual([
      "/agents/1/name",
    ]);
  });
});

function fieldsBelow(messages: readonly DescMessage[]): DescField[] {
  const seen = new Set<DescMessage>(messages);
  for (const desc of seen)
    for (const field of desc.fields) if (field.message !== undefined) seen.add(field.message);
  return [...seen].flatMap(({ fields }) => fields);
}

function unreadIn(rules: FieldRules): string[] {
  const { case: kind, value } = rules.type;
  if (kind === undefined) return [];
  const set = Object.entries(value as object).filter(([name, one]) => !name.startsWith("$") && isSet(one));
  return set.flatMap(([name]) => (READ[kind]?.includes(name) === true ? [] : [`${kind}.${name}`]));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== "" && value !== 0n && !(Array.isArray(value) && value.length === 0);
}
