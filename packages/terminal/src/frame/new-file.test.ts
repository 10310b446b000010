// A file that cannot be written to its end does not appear. On a real disk of a few pages, which only root
// may mount.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeNewFile } from "./new-file.ts";

test("a file whose last line does not fit on the disk is refused, and nothing of it is left", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-small-"));
  onTestFinished(() => {
    spawnSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8k", "tmpfs", folder]);
  t.skip(mounted.status !== 0, "only root may mount a disk");
  // The system takes the part of it that fits, and calls that a success.
  const lines = async function* () {
    yield "x".repeat(8_000);
    yield "y".repeat(400);
  };
  await expect(writeNewFile(join(folder, "whole"), lines())).rejects.toMatchObject({ code: "storage_full" });
  expect(readdirSync(folder)).toEqual([]);
});
