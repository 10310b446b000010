import { createServer } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { HoldfastError } from "@holdfast/core";
import { runChecks } from "./check.ts";
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
