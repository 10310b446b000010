import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ChatHistory } from "./chat-history.ts";

let folder: string;
let secret: string;
let history: ChatHistory;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-history-"));
  secret = "s3cret";
  history = new ChatHistory({ env: { XDG_DATA_HOME: folder }, hides: (text) => text.includes(secret) });
});
afterEach(() => rmSync(folder, { recursive: true }));

test("it has the newest lines first, each once, and at most 500", () => {
  expect(history.lines()).toEqual([]);
  history.add(Array.from({ length: 510 }, (_, n) => `line ${n + 1}`).join("\n"));
  history.add("line 400\n\nline 401");
  const lines = history.lines();
  expect(lines).toHaveLength(500);
  expect(lines.slice(0, 3)).toEqual(["line 401", "line 400", "line 510"]);
  expect(lines.filter((line) => line === "line 400")).toHaveLength(1);
});

test("a message with a secret, a line that is too long, and a line with a secret of now are not kept", () => {
  history.add("kept");
  history.add("one\nthe s3cret\ntwo");
  history.add("x".repeat(2_001));
  expect(history.lines()).toEqual(["kept"]);
  history.add("with another");
  secret = "another";
  history.add("last");
  expect(history.lines()).toEqual(["last", "kept"]);
});

test("a file that somebody has changed by hand is no history, and is replaced", () => {
  history.add("kept");
  const path = join(folder, "holdfast/chat-history.json");
  writeFileSync(path, "not JSON");
  expect(history.lines()).toEqual([]);
  history.add("new");
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(["new"]);
});
