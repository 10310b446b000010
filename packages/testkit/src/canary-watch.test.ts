import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CanaryScan } from "./canary-scan.ts";
import { armScan } from "./canary-watch.ts";

/** A scan that is armed for this test. */
function armed(): CanaryScan {
  const scan = new CanaryScan();
  onTestFinished(armScan(scan));
  return scan;
}

test.each([
  ["rmSync", (folder: string) => Promise.resolve(rmSync(folder, { recursive: true, force: true }))],
  ["rm of promises", (folder: string) => rm(folder, { recursive: true })],
])("canary-watch-1: a folder that %s removes is searched before", async (_name, remove) => {
  const scan = armed();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-canary-"));
  mkdirSync(join(folder, "reports"));
  writeFileSync(join(folder, "reports/crash.json"), JSON.stringify({ env: { KEY: scan.secret } }));
  await remove(folder);
  expect(scan.found).toEqual([join(folder, "reports/crash.json")]);
});

test("a scan that is not armed any more sees nothing", async () => {
  const scan = new CanaryScan();
  armScan(scan)();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-canary-"));
  writeFileSync(join(folder, "log"), scan.secret);
  rmSync(folder, { recursive: true });
  expect([scan.found, scan.looked]).toEqual([[], 0]);
});
