import { expect, test } from "vitest";

import { OutputCapture } from "./output-capture.ts";

function capture(bytesMax: number, ...chunks: readonly string[]): OutputCapture {
  const output = new OutputCapture(bytesMax);
  for (const chunk of chunks) output.push(Buffer.from(chunk));
  return output;
}

test("output within the limit is kept unchanged, also when a character comes in two chunks", () => {
  const output = new OutputCapture(6);
  for (const byte of Buffer.from("aé€")) output.push(Buffer.from([byte]));
  expect({ text: output.text(), isCut: output.isCut, bytes: output.bytes }).toEqual({
    text: "aé€",
    isCut: false,
    bytes: 6,
  });
});

test("one byte more and it is cut in the middle, with the number of bytes that are gone", () => {
  const output = capture(6, "abc", "def", "g");
  expect({ text: output.text(), isCut: output.isCut }).toEqual({
    text: "abc\n[... 1 bytes of output left out ...]\nefg",
    isCut: true,
  });
});

test("a cut never shows half a character", () => {
  const output = capture(10, "ab€€€€€cd");
  expect(output.text()).toBe("ab€\n[... 9 bytes of output left out ...]\n€cd");
  for (let max = 2; max < 40; max++) expect(capture(max, "a€ü😀".repeat(20)).text()).not.toContain("\uFFFD");
});

test("one huge chunk and many small ones end in the same text", () => {
  const text = "0123456789".repeat(1_000);
  const small = capture(100, ...text.split(""));
  expect(capture(100, text).text()).toBe(small.text());
});
