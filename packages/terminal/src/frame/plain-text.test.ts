import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cutTo,
  coloured,
  duration,
  age,
  fittedTable,
  jsonLine,
  localTime,
  plain,
  plainLine,
  plainPiece,
  quoted,
  table,
} from "./plain-text.ts";

// oxlint-disable-next-line no-control-regex -- they are what must not be there.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

describe("text of agents", () => {
  test("agents' text cannot steer a terminal: colours, titles, links, 8-bit sequences, reordering", () => {
    const evil =
      "a\u001b[31mb\u001b]0;title\u0007c\u009b31md\re\u202ef\u0000g\u001b]8;;http://x\u0007h\u001b]8;;\u0007";
    expect(plain(evil)).not.toMatch(STEERING);
    expect(plain("a\u001b[31mb\u001b[0m\n\tc")).toBe("ab\n\tc");
  });

  test("any text, whole or in pieces, contains nothing that steers after cleaning", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(20), (text, at) => {
        expect(plain(text)).not.toMatch(STEERING);
        expect(plainPiece(text.slice(0, at)) + plainPiece(text.slice(at))).not.toMatch(STEERING);
        expect(plainLine(text, 20).length).toBeLessThanOrEqual(20);
      }),
    );
  });

  test("a line of ours keeps its colours, and what a file's name in it steers with is gone", () => {
    expect(coloured("\u001b[31mred\u001b[39m /tmp/\u001b]0;title\u0007x\u001b[2J\u009b1my")).toBe(
      "\u001b[31mred\u001b[39m /tmp/xy",
    );
  });

  test("a moment beyond what a calendar has is said so", () => {
    expect(localTime(9e15)).toBe("beyond any calendar");
  });

  test("JSON keeps its value and shows nothing that steers", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(jsonLine(value)).not.toMatch(STEERING);
        expect(JSON.parse(jsonLine(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("JSON shows by their numbers the characters that nothing draws", () => {
    const value = { command: "a\u200b\u2028\u{e0041}b" };
    expect(jsonLine(value)).toBe('{"command":"a\\u200b\\u2028\\udb40\\udc41b"}');
    expect(JSON.parse(jsonLine(value))).toEqual(value);
  });

  test("a long text is cut between characters, and marked", () => {
    expect(plainLine("abcdefgh", 6)).toBe("abc...");
    expect(plainLine("ab😀😀😀", 6, "…")).toBe("ab😀…");
    expect(plainLine("  a\n  b  ", 10)).toBe("a b");
  });
});

describe("text of ours", () => {
  test.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1_500, "1.5 s"],
    [61_000, "1 min 1 s"],
    [3_600_000, "1 h 0 min"],
    [90_000_000, "25 h 0 min"],
    [864_000_000, "10 days"],
  ])("%d ms is %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  test("columns are as wide as their widest cell, colours not counted", () => {
    expect(
      table([
        ["a", "\u001b[31mbb\u001b[39m", "c"],
        ["aaa", "b", ""],
      ]),
    ).toEqual(["a    \u001b[31mbb\u001b[39m  c", "aaa  b"]);
  });

  test("a table too wide for the terminal shortens the ids first, in their middle, and gives the rest to the last column", () => {
    const id = "ses_019ac842-77aa-7001-9c4e-0123456789ab-2";
    const why = "Allow shell: git push origin main, which nobody has allowed yet in this folder";
    const rows = [
      ["STATUS", "AGENT", "SESSION", "FOR", "COST", "WHY"],
      ["input_required", "fix-duration", id, "39 min", "$0.0850", why],
    ];
    const lines = (columns: number): readonly string[] => fittedTable(rows, { columns, id: 2, cutMark: "…" });
    expect(lines(80)[1]).toBe(
      "input_required  fix-duration  ses_0…ab-2  39 min  $0.0850  Allow shell: git pus…",
    );
    expect(lines(120)[1]).toMatch(
      /^input_required  fix-duration  ses_0…ab-2  39 min  \$0\.0850  Allow shell: .{40,}…$/,
    );
    expect(lines(160)[1]).toMatch(/ses_019ac842.*…/);
    expect(lines(160)[1]).toMatch(new RegExp(`${why}$`));
    expect(lines(Infinity)[1]).toContain(id);
    for (const columns of [40, 60, 80, 100, 120, 160])
      for (const line of lines(columns)) expect(line.length).toBeLessThanOrEqual(columns);
  });

  test("a column with a least width keeps it, and the last column gives way instead", () => {
    const rows = [
      ["SESSION", "TITLE", "UPDATED", "WAITS FOR"],
      ["3f9a1c20", "Find the fault in the login of the shop", "5 min ago", "an answer to the question"],
    ];
    const [, line = ""] = fittedTable(rows, { columns: 50, id: 0, cutMark: "…", least: { 1: 24 } });
    expect(line).toBe("3f9a1c20  Find the fault in the l…  5 min ago  an…");
  });

  test("columns that may be dropped go before another one is cut below its least width", () => {
    const rows = [
      ["SESSION", "TITLE", "UPDATED", "COST", "WAITS FOR"],
      ["3f9a1c20", "Find the fault in the login", "5 min", "$0.0850", "Allow shell: git push origin main?"],
    ];
    const line = (columns: number): string | undefined =>
      fittedTable(rows, { columns, id: 0, cutMark: "…", least: { 1: 14 }, dropped: [3, 2] })[1];
    expect(line(100)).toBe(
      "3f9a1c20  Find the fault in the login  5 min    $0.0850  Allow shell: git push origin main?",
    );
    expect(line(65)).toBe("3f9a1c20  Find the fault…  5 min    $0.0850  Allow shell: git pu…");
    expect(line(60)).toBe("3f9a1c20  Find the fault in …  5 min    Allow shell: git pu…");
    expect(line(50)).toBe("3f9a1c20  Find the fault in…  Allow shell: git pu…");
  });

  test.each([
    [0, "0 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [47 * 3_600_000, "47 h"],
    [48 * 3_600_000, "2 days"],
  ])("an age of %i ms is %s in a column", (ms, text) => {
    expect(age(ms)).toBe(text);
  });

  test("a row that is cut keeps its columns and its indentation, whatever stands in it", () => {
    expect(cutTo("  child    waiting   1 s ago", 20, "…")).toBe("  child    waiting …");
    expect(cutTo("  child    waiting", 20, "…")).toBe("  child    waiting");
    expect(cutTo("four 𝒜𝒜", 6, "")).toBe("four ");
  });

  test.each([
    ["ses_1", "ses_1"],
    ["my db", "'my db'"],
    ["it's", `'it'\\''s'`],
  ])("%s is %s for a shell", (text, word) => {
    expect(quoted(text)).toBe(word);
  });
});
