import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
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

const RECEIVED = "what a socket or a pipe received";

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

test("canary-watch-2: the secret is found in an event stream, also across the borders of its chunks", async () => {
  const scan = armed();
  const server = createServer((_, answer) => {
    answer.write(`data: ${scan.secret.slice(0, 20)}`);
    setImmediate(() => answer.end(`${scan.secret.slice(20)}\n\n`));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await (await fetch(url)).text();
  server.close();
  expect(scan.found).toEqual([RECEIVED]);
});

test("canary-watch-2: the secret is found in the output of a process", async () => {
  const scan = armed();
  const child = spawn("sh", ["-c", "printenv KEY"], { env: { KEY: scan.secret } });
  await once(child, "close");
  expect(scan.found).toEqual([RECEIVED]);
});

test("a scan that is not armed any more sees nothing", async () => {
  const scan = new CanaryScan();
  armScan(scan)();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-canary-"));
  writeFileSync(join(folder, "log"), scan.secret);
  rmSync(folder, { recursive: true });
  expect([scan.found, scan.looked]).toEqual([[], 0]);
});
