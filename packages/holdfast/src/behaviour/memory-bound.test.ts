// The memory that a process uses for waiting sessions does not grow with their number (M1).

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { ParkedMemory } from "../testing/park-sessions.ts";

const SCRIPT = fileURLToPath(new URL("../testing/park-sessions.ts", import.meta.url));
/** A session that waits in memory takes 15.5 KB: 10,000 of them would take 155 MB. */
const SESSIONS = 10_000;
const HEAP_MB = 64;

test(`${SESSIONS} sessions are parked one after the other in a heap of ${HEAP_MB} MB, and the first is woken`, () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-memory-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      "--no-warnings",
      "--expose-gc",
      `--max-old-space-size=${HEAP_MB}`,
      SCRIPT,
      join(folder, "parked.db"),
      String(SESSIONS),
    ],
    { encoding: "utf8", env: { ...process.env, NODE_COMPILE_CACHE: undefined } },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const { live, bytesEach, output } = JSON.parse(stdout) as ParkedMemory;
  expect(output).toBe("awake");
  expect(live).toBe(200);
  // The storage keeps the last tokens of 65,536 sessions; nothing else may be left of one.
  expect(bytesEach).toBeLessThan(500);
});
