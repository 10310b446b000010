import { expect, test } from "vitest";
import { highlight } from "./highlight.ts";

test("the parts of code have kinds and the whole text, and a language is found by the end of a file's name", async () => {
  const lines = ['{ "a": 1,', '  "b": "</script>" }'];
  const found = (await highlight("jsonl", lines))!;
  expect(found.map((line) => line.map(({ text }) => text).join(""))).toEqual(lines);
  expect(found.flat()).toContainEqual({ text: "1", kind: "constant" });
  expect(found.flat().some(({ text, kind }) => kind === "string" && text.includes("</script>"))).toBe(true);
});

test("text of no known language and text that is too long have no kinds", async () => {
  expect(await highlight("constructor", ["x"])).toBeUndefined();
  expect(await highlight("json", ["1".repeat(200_000)])).toBeUndefined();
  expect(
    await highlight(
      "json",
      Array.from({ length: 3_000 }, () => "1"),
    ),
  ).toBeUndefined();
});
