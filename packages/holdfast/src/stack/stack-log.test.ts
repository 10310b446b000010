import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { endOfLog, followLog, lastLines } from "./log-reader.ts";
import { StackLog, type LogLine } from "./stack-log.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  path = join(folder, "stack.log");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const all = (): boolean => true;
const same = (text: string): string => text;
const texts = (lines: readonly LogLine[]) => lines.map(({ text }) => text);

test("a line is written without the secrets that the stack holds, also where it is cut", () => {
  const log = new StackLog(path, (text) => text.replaceAll("a key", "[secret]"));
  log.write("runner", "it has a key");
  log.write("runner", `${"x".repeat(16 * 1024 - 3)}a key`);
  log.close();
  expect(readFileSync(path, "utf8")).not.toMatch(/a k/);
  expect(texts(lastLines(path, 2, all))[0]).toBe("it has [secret]");
});

test("the log keeps a limited number of files of a limited size, and the newest lines", () => {
  const log = new StackLog(path, same, { bytesMax: 400, filesMax: 3 });
  for (let n = 0; n < 100; n++) log.write("runner", `line ${n}`);
  log.close();
  expect(readdirSync(folder).toSorted()).toEqual(["stack.log", "stack.log.1", "stack.log.2"]);
  for (const name of readdirSync(folder)) {
    expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(400);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
  expect(texts(lastLines(path, 3, all))).toEqual(["line 97", "line 98", "line 99"]);
});

test("the last lines come from several files, in order, and only of the component that is asked for", () => {
  const log = new StackLog(path, same, { bytesMax: 400, filesMax: 4 });
  for (let n = 0; n < 20; n++) log.write(n % 2 === 0 ? "runner" : "coordinator", `line ${n}`);
  log.close();
  const lines = lastLines(path, 8, ({ component }) => component === "runner");
  expect(texts(lines)).toEqual([4, 6, 8, 10, 12, 14, 16, 18].map((n) => `line ${n}`));
});

test("a follower gets every line once, also those written while the log is rotated", async () => {
  const log = new StackLog(path, same, { bytesMax: 400, filesMax: 4 });
  log.write("runner", "before");
  const over = new AbortController();
  const lines = followLog(path, endOfLog(path), over.signal);
  for (let n = 0; n < 9; n++) log.write("runner", `line ${n}`);
  const got: string[] = [];
  for await (const { text } of lines) {
    got.push(text);
    if (got.length === 9) over.abort();
  }
  log.close();
  expect(got).toEqual(Array.from({ length: 9 }, (_, n) => `line ${n}`));
});

test("a line cannot hide characters that steer a terminal, and is cut at a length", () => {
  const log = new StackLog(path, same);
  log.write("runner", "red \u001b[31mtext\u0007");
  log.write("runner", "x".repeat(100_000));
  log.close();
  const [first, second] = lastLines(path, 2, all);
  expect(first!.text).toBe("red text");
  expect(second!.text.length).toBeLessThan(20_000);
});

test("a link at the path of the log is not written through", () => {
  writeFileSync(join(folder, "other"), "");
  symlinkSync(join(folder, "other"), path);
  expect(() => new StackLog(path, same)).toThrow("ELOOP");
});

test("a line that the log did not write is shown as the supervisor's", () => {
  writeFileSync(path, "out of memory\n");
  expect(lastLines(path, 1, all)).toEqual([{ at: "", component: "supervisor", text: "out of memory" }]);
});
