// O5, O4: runners that live but do nothing any more, because something blocks their event loop. Real
// processes.
//
// A blocked event loop cannot release anything, so the thread of the runner's watchdog acts. It ends the
// processes of the runner's commands and the runner itself before its leases can pass on. Else two runners
// would write one workspace. A step that blocks has until its time-out: see `blocked-steps.test.ts`.

import { existsSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { startSession } from "../testing/coordinator-client.ts";
import {
  readLedger,
  startCoordinator,
  startRunnerProcess,
  type CoordinatorProcess,
} from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

/** The shortest a lease may be. */
const LEASE_MS = 6_000;
const PATIENCE = { timeout: 60_000, interval: 50 };

/**
 * Leaves a process behind, outside its group and without its parent, that never ends. It does so only before
 * the first block.
 */
const COMMAND = `
[ -e "$1-blocked" ] && exit
(setsid sh -c 'echo $$ '"$1"' stray >> ledger; exec sleep 1000' &)
echo $$ $1 command >> ledger
exec sleep 1000
`;
/**
 * Runs that command in one branch, and blocks in another one. The next runner of the session then looks which
 * processes of the command still run.
 */
const AGENTS = `
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";
import { defineWorkspaceTasks, REPEATABLE } from "@holdfast/agents";
import { openWorkspace } from "@holdfast/workspace";

const { shell } = defineWorkspaceTasks(await openWorkspace({ root: process.cwd() }));
const began = (name) => existsSync("ledger")
  ? readFileSync("ledger", "utf8").trim().split("\\n").map((line) => line.split(" ")).filter(([, of]) => of === name)
  : [];
const runs = (pid) => existsSync("/proc/" + pid) && !/^State:\\s+Z/m.test(readFileSync("/proc/" + pid + "/status", "utf8"));

export function agentThatBlocks(name, where) {
  const hasBlocked = () => existsSync(name + "-blocked");
  const block = () => {
    writeFileSync(name + "-blocked", "");
    setPriority(19); // The tests beside this one are to have the processor; its watchdog's thread stays as it is.
    for (;;);
  };
  return defineAgent({ name, tasks: [shell], run: async (ctx) => {
    const command = ctx.scheduleTask(shell, { command: "sh command.sh " + name }, REPEATABLE);
    await ctx.run("look", async () => {
      for (const [pid, , what] of hasBlocked() ? began(name) : [])
        if (runs(pid)) appendFileSync("ledger", pid + " " + name + " still-" + what + "\\n");
      while (!hasBlocked() && began(name).length < 2) await delay(20);
    });
    await ctx.run("block", () => where === "task" && !hasBlocked() && block(), { timeoutMs: 4_000 });
    if (where === "agent" && !hasBlocked()) block();
    await command;
    return process.pid;
  } });
}
`;

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
});
afterEach(() => project.dispose());

// Only with /proc: without it, the processes that a runner has started cannot be found.
test.runIf(existsSync("/proc/self/environ"))(
  "O5: sessions of a runner whose event loop a task or an agent blocks continue elsewhere, and its commands have ended",
  { ...ofCampaign, timeout: 300_000 },
  async () => {
    writeFileSync(project.path("command.sh"), COMMAND);
    writeFileSync(project.path("blocking.ts"), AGENTS);
    const coordinator = await startCoordinator(project, { leaseMs: LEASE_MS });
    const wedged = await Promise.all(
      ["task", "agent"].map(async (where) => {
        const agent = `export default agentThatBlocks("${where}", "${where}");`;
        writeFileSync(
          project.path(`${where}.ts`),
          `import { agentThatBlocks } from "./blocking.ts"; ${agent}`,
        );
        const runner = await startRunnerProcess(project, coordinator, where, ["--agents", `${where}.ts`]);
        const sessionId = await startSession(coordinator, { agent: where });
        const path = project.path(`${where}-blocked`);
        await vi.waitFor(() => expect(existsSync(path)).toBe(true), PATIENCE);
        return { runner, sessionId };
      }),
    );
    const files = ["--agents", "task.ts", "--agents", "agent.ts"];
    await startRunnerProcess(project, coordinator, "other", files);
    for (const { runner, sessionId } of wedged) {
      const { status, output } = await end(coordinator, sessionId);
      expect(status).toBe("completed");
      expect(output).not.toBe(String(runner.child.pid));
      const { signal, stderr } = await runner.finished;
      expect(signal).toBe("SIGKILL");
      const who = `${runner === wedged[0]!.runner ? 'step "block" of ' : ""}session ${sessionId}`;
      expect(stderr).toContain(`error[E_AGENT_BUSY]: ${who} kept the process busy`);
    }
    // The next runner found no process of either command.
    const did = readLedger(project).map(({ sessionId: name, step }) => `${name} ${step}`);
    expect(did.toSorted()).toEqual(["agent command", "agent stray", "task command", "task stray"]);
  },
);

async function end(
  coordinator: CoordinatorProcess,
  sessionId: string,
): Promise<{ status: string; output: string | undefined }> {
  const storage = openRemoteStorage({ url: coordinator.url, token: coordinator.adminToken });
  try {
    return await vi.waitFor(async () => {
      const session = await storage.reader.session(sessionId);
      expect(session?.endedAt, `${sessionId} is ${session?.status}`).toBeDefined();
      return { status: session!.status, output: session!.output };
    }, PATIENCE);
  } finally {
    await storage.close();
  }
}
