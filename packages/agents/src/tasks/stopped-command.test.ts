// An orderly stop whose grace is over while a shell command runs: the command is not run again, unless it may be.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { openWorkspace, type Workspace } from "@holdfast/workspace";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { REPEATABLE } from "./shell-task.ts";
import { defineWorkspaceTasks } from "./workspace-tasks.ts";

let root: string;
let workspace: Workspace;
let runtimes: Runtime[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "stopped-command-"));
  workspace = await openWorkspace({ root });
});

afterEach(async () => {
  for (const runtime of runtimes) await runtime.close();
  runtimes = [];
  await workspace.dispose();
  await rm(root, { recursive: true, force: true });
});

const ledger = () => readFile(join(root, "ledger"), "utf8").catch(() => "");

test.each([
  ["once", {}, "once\n", "uncertain"],
  ["again", REPEATABLE, "again\nagain\n", "done"],
] as const)(
  "a command that was cut off by a stop, and may be done %s",
  async (name, options, done, outcome) => {
    const { shell } = defineWorkspaceTasks(workspace);
    const command = `echo ${name} >> ledger; [ $(wc -l < ledger) = 2 ] || sleep 60`;
    const agent = defineAgent({
      name: "runs-a-command",
      tasks: [shell],
      run: async (ctx) =>
        ctx
          .scheduleTask(shell, { command }, { ...options, onUncertain: "return" })
          .then((output) => ("uncertain" in output ? "uncertain" : "done")),
    });
    const storage = new MemoryStorage();
    const open = () => {
      const runtime = createRuntime({ storage, agents: [agent], development: false, adopt: false });
      runtimes.push(runtime);
      return runtime;
    };
    const first = open();
    const { sessionId } = await first.start(agent);
    await vi.waitUntil(async () => (await ledger()) !== "", { timeout: 20_000 });
    await first.close({ graceMs: 10 });
    const handle = await open().resume(sessionId);
    expect(await handle.result()).toBe(outcome);
    expect(await ledger()).toBe(done);
  },
);
