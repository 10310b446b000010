// A cancel of a tree whose children run shell commands: real processes, all of them gone.

import { mkdtemp, readdir, readlink, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, local, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openWorkspace, type Workspace } from "@holdfast/workspace";
import { defineWorkspaceTasks } from "./workspace-tasks.ts";

const CHILDREN = 3;

let root: string;
let workspace: Workspace;
let runtime: Runtime;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "cancel-tree-")));
  workspace = await openWorkspace({ root });
  runtime = createRuntime({ storage: new MemoryStorage(), development: false });
});

afterEach(async () => {
  await runtime.close();
  await workspace.dispose();
  await rm(root, { recursive: true, force: true });
});

test.each(["graceful", "hard"] as const)(
  "%s: every child's agent is told or ended, and no process of theirs is left",
  async (mode) => {
    let aborted = 0;
    const { shell } = defineWorkspaceTasks(workspace);
    const child = defineAgent({
      name: "runs-a-command",
      tasks: [shell],
      run: async (ctx) => {
        const command = ctx.scheduleTask(shell, { command: "sleep 3600 & sleep 3600" });
        await ctx.waitForSignal("never").catch(() => aborted++);
        command.cancel();
        return command.catch(() => "cancelled");
      },
    });
    const parent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const children = Array.from({ length: CHILDREN }, () => ctx.spawnAgent(local(child)));
        return ctx.all(children.map((one) => ctx.waitForChild(one)));
      },
    });
    const handle = await runtime.start(parent);
    await until(async () => (await processesIn(root)) >= 2 * CHILDREN);
    await handle.cancel({ hard: mode === "hard" });
    await until(async () => (await processesIn(root)) === 0);
    expect(aborted).toBe(mode === "graceful" ? CHILDREN : 0);
    expect((await handle.settled()).status).toBe("cancelled");
    for (let n = 0; n < CHILDREN; n++)
      expect((await runtime.handle(`${handle.sessionId}-${n}`).session()).status).toBe("cancelled");
  },
);

/** Processes that work in this folder. */
async function processesIn(folder: string): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map((pid) =>
      readlink(`/proc/${pid}/cwd`).then(
        (cwd) => cwd === folder,
        () => false, // It has ended meanwhile.
      ),
    ),
  );
  return found.filter(Boolean).length;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}
