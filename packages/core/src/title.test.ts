import fc from "fast-check";
import { expect, test } from "vitest";
import { TITLE_CHARS, titleLine, titleOf } from "./title.ts";

test.each([
  ["the first line of a prompt", "Fix the login\nand its tests", "Fix the login"],
  ["the first line that says something", "\n\n---\n<task>\n## Fix the login\n", "Fix the login"],
  ["the field of a request", { repo: "web", prompt: "Fix the login" }, "Fix the login"],
  ["a later field, where the first says nothing", { prompt: " \n", task: "Fix it" }, "Fix it"],
  ["the first message of a chat", { text: "Fix the login", conversation: true }, "Fix the login"],
  ["the text of a coding agent with options", { text: "Fix the login", worktree: true }, "Fix the login"],
  ["the title of a text", { text: "Long words.", title: "Fix the login" }, "Fix the login"],
  ["simple fields", { path: "src/a.ts", n: 3, dry: true, deep: { a: 1 } }, "path=src/a.ts n=3 dry=true"],
  ["a field with blanks", { why: "out of memory", n: 1 }, 'why="out of memory" n=1'],
  ["a number", 17, "17"],
  ["simple items of a list", ["a", 2, { b: 1 }], "a, 2"],
  ["a text of right to left", "שלום עולם", "שלום עולם"],
] as const)("a title is made of %s", (_what, input, title) => {
  expect(titleOf(JSON.stringify(input))).toBe(title);
});

test("an input that says nothing has no title", () => {
  expect(titleOf(undefined)).toBeUndefined();
  for (const input of [null, {}, [], "", " \n\t", "---\n***", { deep: { prompt: "x" } }, "\u202e\u0007"])
    expect(titleOf(JSON.stringify(input)), JSON.stringify(input)).toBeUndefined();
});

test.each([
  ["colours and titles of a terminal", "\u001b[31mred\u001b[0m\u001b]0;x\u0007 \u009b1mone", "red one"],
  ["control characters", "a\u0007b\tc\u0000d", "a b c d"],
  ["marks of direction", "pay \u202E001\u202C \u2066now\u2069\u200F", "pay 001 now"],
  ["what is not drawn", "r\u200Bm\u2060\u00AD\uFEFF\u3164", "rm"],
  ["half of a character", "a\uD800b", "ab"],
])("a title is without %s", (_what, text, title) => {
  expect(titleLine(text)).toBe(title);
});

test.each([
  ["words", "word ".repeat(2_000), `${"word ".repeat(15)}word…`],
  ["one long word", "x".repeat(10_000), `${"x".repeat(79)}…`],
  ["emojis", "👩‍💻".repeat(2_000), `${"👩‍💻".repeat(15)}…`],
  ["flags", "🇩🇪".repeat(100), `${"🇩🇪".repeat(19)}…`],
])("a long text of %s is cut between what people see as characters", (_what, text, title) => {
  expect(titleLine(text)).toBe(title);
});

const KEY = `sk-${"a1".repeat(20)}`;
const LONG_TOKEN = `eyJ${"a".repeat(40)}.eyJ${"b".repeat(300)}.${"c".repeat(40)}`;

test.each([
  ["a key", `use ${KEY} here`, "use [secret] here"],
  ["a key at the cut", `${"x".repeat(70)} ${KEY}`, `${"x".repeat(70)} [secret]`],
  ["a web token that is longer than a title", LONG_TOKEN, undefined],
  ["an assignment", "deploy with API_TOKEN=hunter2-hunter2", "deploy with API_TOKEN=[secret]"],
  ["a field with the name of a secret", { password: "hunter2", host: "db" }, "host=db"],
  ["a key in a field that is cut", { why: `because ${"of ".repeat(8)}${KEY} and more` }, undefined],
])("a title has nothing of %s", (_what, input, title) => {
  const found = titleOf(JSON.stringify(input));
  if (title !== undefined) expect(found).toBe(title);
  expect(found ?? "").not.toMatch(/sk-a|hunter2|aaaa|bbbb/);
});

test("a title is one short line of what can be shown, and is its own title", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme", minLength: 60 })),
      (text) => {
        const title = titleLine(text);
        if (title === undefined) return;
        expect(title.length).toBeLessThanOrEqual(TITLE_CHARS);
        expect(title).not.toMatch(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u);
        expect(titleLine(title)).toBe(title);
      },
    ),
    { numRuns: 500 },
  );
});
