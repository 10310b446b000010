import { createServer } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { HoldfastError } from "@holdfast/core";
import type { Look } from "@holdfast/terminal/frame/command";
import { checkLines, runChecks } from "./check.ts";
import { checkVersions } from "./machine-checks.ts";
import { portOwner } from "./port-owner.ts";

test("a check that never answers is a warning, one that throws is a problem, and the others stay", async () => {
  const checks = await runChecks(
    {
      silent: () => new Promise(() => {}),
      wrong: () => {
        throw new HoldfastError("config_invalid", "the file is wrong", { at: "a.json", fix: "correct it" });
      },
      right: () => ({ status: "ok", found: "it" }),
    },
    20,
  );
  expect(checks).toEqual([
    { subject: "silent", status: "warning", found: "no answer in 0.02 s", fix: "try again later" },
    {
      subject: "wrong",
      status: "problem",
      found: "the file is wrong (a.json)",
      fix: "correct it",
      exitCode: 3,
    },
    { subject: "right", status: "ok", found: "it" },
  ]);
});

test("each of several texts has a line of its own, and a long one is not cut by those before it", () => {
  const found = [`${"a".repeat(300)} (first)`, `${"b".repeat(300)} (second)`];
  const same = (text: string): string => text;
  const paint = { green: same, yellow: same, red: same };
  const look = { paint, symbols: { done: "+", warn: "!", failed: "x" }, columns: 1_000 };
  const lines = checkLines([{ subject: "programs", status: "ok", found }], look as unknown as Look);
  expect(lines.slice(0, 2).map((line) => line.trim())).toEqual([`+ programs  ${found[0]}`, found[1]]);
});

test("a Node without the security fixes is a warning", () => {
  expect(checkVersions()).toMatchObject({ status: "ok" });
  expect(checkVersions({ ...process.versions, node: "24.22.0" })).toMatchObject({
    status: "warning",
    found: expect.stringContaining("on Node 24.22.0"),
    fix: expect.stringContaining("use Node 22.23.4, 24.22.1, 26.12.1 or a later one of these lines"),
  });
});

// Elsewhere `lsof` names the process, and it need not be installed.
test.skipIf(process.platform !== "linux")("the process that listens on a port is found", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  expect(await portOwner(port)).toMatchObject({
    status: "used",
    pid: process.pid,
    process: expect.stringContaining(`process ${process.pid}`),
  });
  server.close();
  await once(server, "close");
  expect(await portOwner(port)).toEqual({ status: "free" });
});
