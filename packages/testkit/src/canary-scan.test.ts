import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CanaryScan } from "./canary-scan.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-canary-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a scan finds the secret in a file, in a database page, and in an encoding", () => {
  const scan = new CanaryScan();
  writeFileSync(join(folder, "log"), `before ${JSON.stringify(scan.secret)}`);
  writeFileSync(join(folder, "encoded"), Buffer.from(`user:${scan.secret}`).toString("base64"));
  writeFileSync(join(folder, "clean"), "sk-CANARY");
  const database = new DatabaseSync(join(folder, "db"));
  database.exec("CREATE TABLE t (x)");
  database.prepare("INSERT INTO t VALUES (?)").run(scan.secret);
  database.close();
  scan.searchFolder(folder);
  expect(scan.found).toEqual(["db", "encoded", "log"].map((name) => join(folder, name)));
});

test("a scan finds the secret in the arguments and the environment of a process below this one", async () => {
  const scan = new CanaryScan();
  const children = [
    spawn("sleep", ["60"], { env: { ...process.env, KEY: scan.secret } }),
    spawn("sh", ["-c", "read x", scan.secret]),
  ];
  try {
    await Promise.all(children.map((child) => once(child, "spawn")));
    scan.searchProcesses();
    expect(scan.found).toEqual(["cmdline of sh", "environ of sleep"]);
  } finally {
    for (const child of children) child.kill();
  }
});

test("a scan of clean content finds nothing, and says how much it searched", () => {
  const scan = new CanaryScan();
  writeFileSync(join(folder, "clean"), "nothing");
  scan.searchFolder(folder);
  expect([scan.found, scan.looked]).toEqual([[], 2]);
});
