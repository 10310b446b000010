// Acknowledged means synced. A test with kill -9 cannot show that: data that a process wrote survives in the
// system's cache, synced or not. These tests watch the system calls instead.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { newFolder } from "../testing/folder.ts";
import { PROCESS_FILE } from "../testing/spawn.ts";

const GROUPS = 8;

test(
  "SYNC: between a commit's last write to the log and its acknowledgement the log is synced",
  ofCampaign,
  (t) => {
    if (!canTrace()) t.skip("strace is missing, or this system does not let it trace");
    expect(findUnsynced(trace("commit"))).toEqual([]);
  },
);

test("SYNC: the same watch sees that synchronous=OFF acknowledges unsynced commits", ofCampaign, (t) => {
  if (!canTrace()) t.skip("strace is missing, or this system does not let it trace");
  const unsynced = findUnsynced(trace("unsynced"));
  expect(unsynced.length).toBeGreaterThan(GROUPS / 2);
});

test("SYNC: a sync that a call of another thread interrupted counts when it has returned, and not before", () => {
  const calls = [
    '7 pwrite64(21</t/test.db-wal>, "x", 1, 0) = 1',
    "7 fdatasync(21</t/test.db-wal> <unfinished ...>",
    '8 write(9<anon_inode:[eventfd]>, "x", 8) = 8',
    "7 <... fdatasync resumed>)              = 0",
    '7 write(1<pipe:[1]>, "ack 0\\n", 6) = 6',
  ];
  expect(findUnsynced(calls)).toEqual([]);
  expect(findUnsynced(calls.toSpliced(3, 1))).toEqual(["ack 0"]);
});

function canTrace(): boolean {
  return spawnSync("strace", ["-f", "-e", "trace=write", "true"], { stdio: "ignore" }).status === 0;
}

/** The calls of a process that commits and acknowledges, one per line, with the names of the files. */
function trace(mode: "commit" | "unsynced"): string[] {
  const folder = newFolder();
  const log = `${folder}/trace.txt`;
  const calls = "trace=write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range";
  const args = [
    "-f",
    "-y",
    "-s",
    "64",
    "-e",
    calls,
    "-o",
    log,
    process.execPath,
    "--no-warnings",
    PROCESS_FILE,
  ];
  const { status, stdout } = spawnSync("strace", [...args, mode, `${folder}/test.db`, String(GROUPS)], {
    encoding: "utf8",
  });
  expect(status).toBe(0);
  expect(stdout.trim().split("\n")).toHaveLength(GROUPS);
  return readFileSync(log, "utf8").split("\n");
}

/** The acknowledgements that came while something written to the log was not synced. */
function findUnsynced(calls: readonly string[]): string[] {
  const unsynced: string[] = [];
  let isDirty = false;
  let hasWritten = false;
  /**
   * Threads whose sync of the log was interrupted by another thread's call. The line of its return names no
   * file.
   */
  const syncing = new Set<string>();
  for (const call of calls) {
    const isLog = call.includes(".db-wal>");
    if (isLog && /\bp?writev?(64|2)?\(/.test(call)) isDirty = hasWritten = true;
    const thread = call.slice(0, call.indexOf(" "));
    const hasReturned = call.endsWith("= 0");
    if (isLog && /\bf(data)?sync\(/.test(call)) {
      if (hasReturned) isDirty = false;
      else syncing.add(thread);
    } else if (/<\.\.\. f(data)?sync resumed>/.test(call) && syncing.delete(thread)) {
      if (hasReturned) isDirty = false;
    }
    const ack = /\bwrite\(1<[^>]*>, "(ack \d+)/.exec(call)?.[1];
    if (ack === undefined) continue;
    expect(hasWritten, `${ack} came without a write to the log: this watches the wrong file`).toBe(true);
    if (isDirty) unsynced.push(ack);
    hasWritten = false;
  }
  return unsynced;
}
