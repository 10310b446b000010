import { expect, test } from "vitest";
import { formOf, readInput } from "./input-form.ts";

const REVIEW = {
  type: "object",
  properties: {
    repo: { type: "string", minLength: 3, description: "owner/name" },
    depth: { type: "integer", minimum: 1, maximum: 5, default: 2 },
    mode: { enum: ["fast", "thorough"] },
    isDry: { type: "boolean" },
    labels: { type: "array", items: { type: "string" } },
  },
  required: ["repo", "mode", "depth"],
};

test("an object's properties are fields of their kinds, and a list is a field of JSON", () => {
  const form = formOf(REVIEW);
  expect(
    form.type === "fields" && form.fields.map(({ name, kind, isRequired }) => [name, kind, isRequired]),
  ).toEqual([
    ["repo", "text", true],
    ["depth", "number", false],
    ["mode", "choice", true],
    ["isDry", "yes_no", false],
    ["labels", "json", false],
  ]);
});

test("the texts of a form become an input of the schema, without the fields that were left empty", () => {
  const values = { repo: "a/b", mode: '"fast"', labels: '["x"]', isDry: "" };
  expect(readInput(formOf(REVIEW), values, false)).toEqual({
    input: { repo: "a/b", depth: 2, mode: "fast", labels: ["x"] },
  });
});

test("every mistake is named at its field", () => {
  const values = { repo: "a", depth: "1.5", labels: "[" };
  expect(readInput(formOf(REVIEW), values, false)).toEqual({
    problems: {
      repo: "must have at least 3 characters",
      depth: "must be a whole number",
      mode: "is required",
      labels: "must be JSON",
    },
  });
});

test("an agent that takes a text or an object with a text gets a text, or the beginning of a conversation", () => {
  const form = formOf({
    anyOf: [{ type: "string" }, { type: "object", properties: { text: { type: "string" } } }],
  });
  expect(form).toEqual({ type: "text", canConverse: true });
  expect(readInput(form, { "": "hello" }, false)).toEqual({ input: "hello" });
  expect(readInput(form, { "": "hello" }, true)).toEqual({ input: { text: "hello", conversation: true } });
  expect(readInput(form, { "": " " }, true)).toEqual({ problems: { "": "write a text" } });
});

test.each([undefined, null, "x", true, [], {}, { type: "array" }, { type: "object" }, { anyOf: [] }])(
  "the schema %j gives a form for any input",
  (schema) => {
    const form = formOf(schema);
    expect(form).toEqual({ type: "any" });
    expect(readInput(form, { "": '{"a":1}' }, false)).toEqual({ input: { a: 1 } });
    expect(readInput(form, { "": "text" }, false)).toEqual({ input: "text" });
    expect(readInput(form, {}, false)).toEqual({ input: undefined });
  },
);

test("a schema whose pattern or property is nonsense leaves the check to the agent", () => {
  const form = formOf({ type: "object", properties: { a: { type: "string", pattern: "(" }, b: true } });
  expect(readInput(form, { a: "x", b: "1" }, false)).toEqual({ input: { a: "x", b: 1 } });
});
