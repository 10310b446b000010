// Session files that grow from turn to turn, and their copies.

import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";

import { SessionFiles } from "./session-files.ts";

let home: string;
let path: string;
let mirror: string;
let files: SessionFiles;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "holdfast-session-files-"));
  path = join(home, "session.jsonl");
  mirror = join(home, "copy");
  files = new SessionFiles();
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, at) => `{"line":${from + at}}\n`).join("");

/** The record and the copy are those of the file as it is. */
async function expectKept(what: string): Promise<void> {
  const content = readFileSync(path);
  const sha256 = createHash("sha256").update(content).digest("hex");
  expect(await files.keep(path, mirror), what).toEqual({
    path,
    bytes: content.length,
    sha256,
    isMirrored: true,
  });
  expect(readFileSync(mirror).equals(content), what).toBe(true);
  expect(await files.hashOf(path, content.length), what).toEqual({ bytes: content.length, sha256 });
}

test("session-files-1: a file that grows, is replaced, cut or written again has its own hash and copy", async () => {
  writeFileSync(path, lines(0, 2_000));
  await expectKept("new");
  appendFileSync(path, lines(2_000, 2_100));
  await expectKept("grown");
  await expectKept("unchanged");
  writeFileSync(path, readFileSync(path, "utf8").replace("line", "LINE"));
  await expectKept("changed at its beginning");
  writeFileSync(`${path}.new`, lines(5_000, 9_000));
  renameSync(`${path}.new`, path);
  await expectKept("replaced");
  truncateSync(path, 100);
  await expectKept("cut");
  writeFileSync(path, lines(7_000, 7_500));
  await expectKept("written again");
  appendFileSync(path, lines(0, 3));
  rmSync(mirror);
  await expectKept("without its copy");
});

test("session-files-1: only what was added is written to the copy", async () => {
  writeFileSync(path, lines(0, 2_000));
  await files.keep(path, mirror);
  // A mark that a copy of the whole file would remove.
  writeFileSync(mirror, readFileSync(mirror, "utf8").replace("line", "LINE"));
  appendFileSync(path, lines(2_000, 2_100));
  await files.keep(path, mirror);
  expect(readFileSync(mirror, "utf8")).toBe(lines(0, 2_100).replace("line", "LINE"));
});

test("session-files-3: a change of the same size and time is seen", async () => {
  writeFileSync(path, lines(0, 2_000));
  await delay(80);
  const kept = await files.keep(path, mirror);
  writeFileSync(path, lines(0, 2_000).replace("line", "LINE"));
  utimesSync(path, 1, 1);
  expect(await files.hashOf(path, kept!.bytes)).not.toEqual({ bytes: kept!.bytes, sha256: kept!.sha256 });
});
