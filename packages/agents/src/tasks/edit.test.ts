import { describe, expect, test } from "vitest";

import { applyEdit, type Edit } from "./edit.ts";

const edit = (text: string, change: Edit, isRetry = false) => applyEdit("a.js", text, change, isRetry);

test("one exact place is replaced, and special characters are only text", () => {
  expect(edit("one\ntwo\nthree", { oldText: "two", newText: "$& $1" })).toEqual({
    text: "one\n$& $1\nthree",
    replaced: 1,
    isDone: false,
    line: 2,
  });
});

test("text that is there several times is only replaced when that is wanted", () => {
  expect(() => edit("x\ny\nx", { oldText: "x", newText: "z" })).toThrow(/2 times \(lines 1, 3\)/);
  expect(edit("x\ny\nx", { oldText: "x", newText: "z", replaceAll: true })).toMatchObject({
    text: "z\ny\nz",
    replaced: 2,
  });
});

test("text that is not there is an error that shows what is similar", () => {
  const attempt = (): unknown =>
    edit("function f() {\n\treturn 1;\n}", { oldText: "  return 1;", newText: "  return 2;" });
  expect(attempt).toThrow("it does not contain oldText");
  const thrown: unknown = (() => {
    try {
      attempt();
    } catch (error) {
      return error;
    }
  })();
  expect(thrown).toMatchObject({
    code: "invalid_input",
    fix: expect.stringContaining('line 2 is similar: "\\treturn 1;"'),
  });
});

test("an edit without a change is refused", () => {
  expect(() => edit("a", { oldText: "a", newText: "a" })).toThrow("the same");
  expect(() => edit("a", { oldText: "", newText: "b" })).toThrow("empty");
});

test("a file with \\r\\n keeps its line ends", () => {
  expect(edit("a\r\nb\r\nc\r\n", { oldText: "a\nb", newText: "x\ny" }).text).toBe("x\r\ny\r\nc\r\n");
});

describe("an edit that is already done", () => {
  test("an edit puts the new text in place of the old one", () => {
    expect(edit("b", { oldText: "a", newText: "b" })).toMatchObject({ text: "b", replaced: 0 });
  });

  // The attempt before wrote the file and died before that was recorded.
  test.each([
    ["appending", "foo", "foo bar"],
    ["wrapping", "x", "(x)"],
    ["doubling", "ab", "abab"],
    ["repeating itself", "aa", "aaa"],
    ["deleting", "gone", ""],
    ["replacing", "old", "new"],
  ])("a second attempt does not repeat an edit when %s", (_what, oldText, newText) => {
    const before = `begin ${oldText} end`;
    const first = edit(before, { oldText, newText });
    expect(first).toMatchObject({ text: `begin ${newText} end`, replaced: 1 });
    expect(edit(first.text, { oldText, newText }, true)).toMatchObject({
      text: first.text,
      replaced: 1,
      isDone: true,
    });
  });

  test("a second attempt makes the edit when the first one did not get that far", () => {
    expect(edit("begin foo end", { oldText: "foo", newText: "foo bar" }, true)).toMatchObject({
      text: "begin foo bar end",
    });
    expect(edit("begin old end", { oldText: "old", newText: "new" }, true)).toMatchObject({
      text: "begin new end",
    });
  });

  test("in all its places is not done again", () => {
    const change = { oldText: "a", newText: "[a]", replaceAll: true };
    const first = edit("a b a", change);
    expect(first.text).toBe("[a] b [a]");
    expect(edit(first.text, change, true)).toMatchObject({ text: "[a] b [a]", replaced: 2, isDone: true });
  });
});
