import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";

import { isRunning, processIdentity } from "./process-identity.ts";

test("a running process has the same identity each time", () => {
  const own = processIdentity(process.pid)!;
  expect(processIdentity(process.pid)).toEqual(own);
  expect(isRunning(own)).toBe(true);
});

test("another process with the same id is not the same process", () => {
  expect(isRunning({ pid: process.pid, startedAt: "an earlier boot" })).toBe(false);
});

test("a process that has ended has no identity", async () => {
  const child = spawn("sleep", ["1000"]);
  const identity = processIdentity(child.pid!)!;
  expect(isRunning(identity)).toBe(true);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect({ identity: processIdentity(child.pid!), isRunning: isRunning(identity) }).toEqual({
    identity: undefined,
    isRunning: false,
  });
});
