// The lines of a turn: what is kept of them, and what a reader never gets.

import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { RawLines, readRawLines } from "./raw-lines.ts";

const ID = "0b8f0f0e-1c1d-4e4f-8a8b-0123456789ab";
let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-raw-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("many lines are one file, whose reference gives all of them back", () => {
  const raw = new RawLines(folder, ID);
  const lines = Array.from(
    { length: 5_000 },
    (_, index) => `{"line": ${index}, "text": "${"x".repeat(90)}"}`,
  );
  for (const line of lines) raw.add(line);
  const reference = raw.end();
  expect(reference).toMatchObject({ lines: 5_000, isCut: false });
  expect(readdirSync(join(folder, ID))).toHaveLength(1);
  expect(readRawLines(folder, reference!)).toBe(`${lines.join("\n")}\n`);
});

test("a turn that writes too much keeps its beginning, and says so", () => {
  const raw = new RawLines(folder, ID);
  for (let count = 0; count < 5; count++) raw.add("x".repeat(15_000_000));
  expect(raw.end()).toMatchObject({ lines: 4, isCut: true });
});

test("a damaged file, a missing one and a path are no lines, and a turn without a line has no file", () => {
  expect(new RawLines(folder, ID).end()).toBeUndefined();
  const raw = new RawLines(folder, ID);
  raw.add("a");
  const reference = raw.end()!;
  appendFileSync(join(folder, reference.blob), "more");
  expect(readRawLines(folder, reference)).toBeUndefined();
  rmSync(join(folder, reference.blob));
  expect(readRawLines(folder, reference)).toBeUndefined();
  writeFileSync(join(folder, "other"), "secret");
  expect(readRawLines(folder, { blob: `${ID}/../other` })).toBeUndefined();
});

test("lines that cannot be written fail no turn", () => {
  writeFileSync(join(folder, ID), "");
  const raw = new RawLines(folder, ID);
  raw.add("a");
  expect(raw.end()).toBeUndefined();
});
