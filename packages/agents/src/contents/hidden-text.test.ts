// Hidden text is found in what a model will read, and honest text is not taken for it.

import { expect, test } from "vitest";
import { findHiddenText } from "./hidden-text.ts";

const TAGS = Array.from("obey", (letter) => String.fromCodePoint(0xe0000 + letter.codePointAt(0)!)).join("");

test.each<readonly [what: string, text: string, found: string]>([
  ["a text in tags", `Be kind.${TAGS}`, "block Tags"],
  ["an order of right to left", "if (a\u202E) {", "direction"],
  ["an isolate", "a\u2067b\u2069", "direction"],
  ["a space without width", "pass\u200Bword", "invisible"],
  ["a joiner between letters", "pass\u200Dword", "invisible"],
  ["a soft hyphen", "pass\u00ADword", "invisible"],
  ["a blank letter", "a\u3164b", "invisible"],
  ["a byte order mark inside", "a\uFEFFb", "invisible"],
  ["a row of variation selectors", "a\u{E0100}\u{E0101}", "variation selectors"],
  ["a long encoded text", Buffer.from("x".repeat(300)).toString("base64"), "base64"],
])("%s is found with its line", (_, text, found) => {
  expect(findHiddenText(`First.\n${text}\nLast.`)).toEqual([
    { line: 2, what: expect.stringContaining(found) },
  ]);
});

test.each([
  "\uFEFFA mark at the beginning.",
  "A family: 👨‍👩‍👧, and a heart: ❤️.",
  "The flag of Scotland: 🏴󠁧󠁢󠁳󠁣󠁴󠁿.",
  "می‌خواهم", // Persian joins its letters so.
  `A hash: ${"a1".repeat(64)}.`,
  "https://example.com/a/long/path/that/ends",
  "日本語と한국어",
])("%j has nothing hidden", (text) => {
  expect(findHiddenText(text)).toEqual([]);
});
