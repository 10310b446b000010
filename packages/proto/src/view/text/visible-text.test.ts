import fc from "fast-check";
import { expect, test } from "vitest";
import { visibleText } from "./visible-text.ts";

test.each([
  ["a colour and a title", "\u001B[2K\u001B]0;x\u0007", "\\u{1b}[2K\\u{1b}]0;x\\u{7}"],
  ["the sequences of one byte and a deletion", "\u009B31m\u007F", "\\u{9b}31m\\u{7f}"],
  ["marks of direction", "\u202Etxt\u2066\u200F\u061C", "\\u{202e}txt\\u{2066}\\u{200f}\\u{61c}"],
  [
    "characters without a width",
    "r\u200Bm\u2060\u00AD\uFEFF\u3164",
    "r\\u{200b}m\\u{2060}\\u{ad}\\u{feff}\\u{3164}",
  ],
  ["characters of the block Tags", "a\u{E0041}", "a\\u{e0041}"],
  ["line breaks that are none", "a\u2028b\rc", "a\\u{2028}b\\u{d}c"],
  ["blanks that are none", "git\u00A0diff", "git\\u{a0}diff"],
  ["half of a character", "a\uD800", "a\\u{d800}"],
] as const)("%s are shown by their number", (_name, text, shown) => {
  expect(visibleText(text)).toBe(shown);
  expect(visibleText(shown)).toBe(shown);
});

test("texts of people stay as they are", () => {
  for (const text of ["a\n\tb  c", "Größe 日本語　한국어 עברית العربية", "⚠️ 👩‍💻 👍🏽 🇩🇪", "e\u0301"])
    expect(visibleText(text)).toBe(text);
});

test("no character that is shown steers a terminal or changes a direction", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(visibleText(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u);
    }),
  );
});
