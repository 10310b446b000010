// Front matter as people write it for tools whose readers take more than YAML.

import { expect, test } from "vitest";
import { readFrontMatter } from "./front-matter.ts";

const read = (fields: string) => readFrontMatter(`---\n${fields}\nlast: >\n  x\n---\nDo it.\n`);

test.each([
  ["hint: [a] [b]", "[a] [b]"],
  ['hint: "one" or "two"', '"one" or "two"'],
  ["hint: {a} | [b]", "{a} | [b]"],
  ["hint: @file `x`: *", "@file `x`: *"],
  ["hint: *", "*"],
  ["hint: [a]: b # c\n  and d", "[a]: b # c and d"],
])("%s is read as a text, and the fields below keep their lines", (field, text) => {
  const { values, repaired, lineOf } = read(field);
  expect({ ...values, repaired }).toEqual({ hint: text, last: "x\n", repaired: ["hint"] });
  expect(lineOf(["last"])).toBe(field.split("\n").length + 2);
});

test("fields that YAML reads stay as they are beside one that it does not", () => {
  expect(read("hint: [a] [b]\ntools:\n- Read\n- Edit\nhooks: { a: [1] }\nname: 'x: y'").values).toMatchObject(
    {
      tools: ["Read", "Edit"],
      hooks: { a: [1] },
      name: "x: y",
    },
  );
});

test.each(["hint: [", "hint: {a", 'hint: "x', "hint: [a, [b] c", "x:\n  - [a] [b]"])(
  "%s is a mistake, and no text",
  (field) => {
    expect(() => read(field)).toThrow("is not YAML");
  },
);
