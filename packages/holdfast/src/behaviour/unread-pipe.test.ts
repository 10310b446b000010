// A pipe that nobody reads must not keep a command waiting.

import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileTracer } from "@holdfast/runtime";
import { sqliteTracer } from "@holdfast/storage/sqlite-tracer";

test("a pipe that nobody reads is neither waited for by a tracer nor taken for a database", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "holdfast-pipe-")), "pipe");
  spawnSync("mkfifo", [path]);
  const problems: string[] = [];
  const tracer = fileTracer({ path, onProblem: (message) => problems.push(message) });
  tracer.trace({ type: "session_started", sessionId: "s", at: 1 } as unknown as Parameters<
    typeof tracer.trace
  >[0]);
  await tracer.flush?.();
  expect(problems).toEqual([expect.stringContaining("ENXIO")]);
  expect(() => sqliteTracer({ path })).toThrow("it is not a file");
});
