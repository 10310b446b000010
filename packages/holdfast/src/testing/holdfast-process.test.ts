// The search that follows each test of a command finds what it is meant to find.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { CanaryScan } from "@holdfast/testkit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Project } from "./holdfast-process.ts";

// These tests leak on purpose, and the secret of the suite must be nowhere.
beforeAll(() => void vi.stubEnv("HOLDFAST_TEST_SECRET", new CanaryScan().secret));
afterAll(() => void vi.unstubAllEnvs());

test.each([
  ["an output", "env", "standard output"],
  ["an error output", "env >&2", "standard error"],
  ["a file, in another encoding", "env | base64 -w0 > file", "/file"],
])("holdfast-process-1: the secret is found in %s", async (_where, line, place) => {
  const project = new Project();
  await project.shell(line);
  await expect(project.dispose()).rejects.toThrow(place);
});

test("holdfast-process-1: the secret is found in the arguments of a process that still runs", async () => {
  const project = new Project();
  const { stdout } = await project.shell(
    'sh -c "sleep 60; true" "$HOLDFAST_TEST_SECRET" > /dev/null 2>&1 & echo $!',
  );
  await expect(project.dispose()).rejects.toThrow("cmdline of sh");
  const pid = Number(stdout);
  process.kill(pid);
  while (existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`).length > 0) await delay(10); // The next test searches the arguments of all processes.
});

test("holdfast-process-1: a token is found in a log, and a file of tokens may have one", async () => {
  const [clean, leaky] = [new Project(), new Project()];
  writeFileSync(clean.path("admin-token"), "hf_adm_0123456789abcdef");
  await clean.dispose();
  writeFileSync(leaky.path("stack.log.1"), "hf_adm_0123456789abcdef");
  await expect(leaky.dispose()).rejects.toThrow("a token is in stack.log.1");
});
