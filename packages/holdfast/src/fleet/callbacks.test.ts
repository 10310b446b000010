// Callbacks over a real fleet, with executors in shell and Python. Coordinator and runners are processes,
// which are killed while a callback is on its way.

import type { Session } from "@holdfast/core";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, startRunnerProcess, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/16-executors/", import.meta.url));
const TIMEOUT = { timeout: 120_000 };
const WAIT = { timeout: 60_000, interval: 50 };

let project: Project;
let coordinator: CoordinatorProcess;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  for (const part of ["executors", "profiles"])
    cpSync(`${EXAMPLE}${part}`, project.path(part), { recursive: true });
  mkdirSync(project.path("executors/slow"));
  // Its result comes when the test says so.
  const slow = `#!/bin/sh
test "$1" = --schema && exit 1
cat > /dev/null
while [ ! -e release ]; do sleep 0.1; done
[ "$(cat release)" = fail ] && { echo "no luck" >&2; exit 1; }
curl -sf -H 'Content-Type: application/json' -d '{"event_type":"result","result_text":"slow is done"}' \\
  "$AGENT_ORCHESTRATOR_API_URL/events" > /dev/null
`;
  writeFileSync(project.path("executors/slow/ao-slow-exec"), slow, { mode: 0o755 });
  coordinator = await startCoordinator(project, { leaseMs: 6_000 });
});
afterEach(() => project.dispose());

const runner = (name: string, executor: string): Promise<HoldfastProcess> =>
  startRunnerProcess(project, coordinator, name, ["-x", executor]);
const start = (body: object): Promise<string> => startSession(coordinator, body);
const release = (how: string): void => writeFileSync(project.path("release"), how);

async function get(path: string): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${coordinator.adminToken}` };
  return (await (await fetch(`${coordinator.url}/v1/${path}`, { headers })).json()) as Record<
    string,
    unknown
  >;
}

async function becomes(sessionId: string, status: Session["status"]): Promise<void> {
  await vi.waitFor(async () => expect((await get(`sessions/${sessionId}`))["status"]).toBe(status), WAIT);
}

async function childrenOf(sessionId: string): Promise<readonly { sessionId: string; agent: string }[]> {
  const { sessions = [] } = await get(`sessions?parentSessionId=${sessionId}`);
  return sessions as { sessionId: string; agent: string }[];
}

/** The prompts of a session's turns, and its output. */
async function turnsOf(sessionId: string): Promise<{ prompts: readonly string[]; output: unknown }> {
  const { entries } = (await get(`sessions/${sessionId}/entries`)) as {
    entries: { role: string; content: string }[];
  };
  const { output } = await get(`sessions/${sessionId}/result`);
  return { prompts: entries.filter(({ role }) => role === "user").map(({ content }) => content), output };
}

const hasTools = [
  ["curl", "--version"],
  ["python3", "--version"],
].every(([command, argument]) => {
  try {
    execFileSync(command!, [argument!], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});

// The executors need curl and python3.
test.runIf(hasTools)(
  "a lead in Python receives the results of executors in shell, though runners and coordinator are killed meanwhile",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    let lead = await runner("lead", "lead");
    const slow = await runner("slow", "slow");
    await runner("shell", "shell");
    const sessionId = await start({ agent: "lead", input: { prompt: "slow: take your time\nshell: hello" } });
    await vi.waitFor(async () => expect((await turnsOf(sessionId)).prompts).toHaveLength(2), WAIT);
    await becomes(sessionId, "waiting"); // The shell's callback was a turn, and the other child still works.
    lead.kill("SIGKILL");
    await lead.finished;
    const { port } = new URL(coordinator.url);
    coordinator.process.kill("SIGKILL");
    await coordinator.process.finished;
    coordinator = await startCoordinator(project, { leaseMs: 6_000, port: Number(port) });
    release("done");
    const [child] = (await childrenOf(sessionId)).filter(({ agent }) => agent === "slow");
    await becomes(child!.sessionId, "completed");
    // The callback is pending, and nobody has it. The coordinator dies with it once more.
    coordinator.process.kill("SIGKILL");
    await coordinator.process.finished;
    coordinator = await startCoordinator(project, { leaseMs: 6_000, port: Number(port) });
    lead = await runner("lead-2", "lead");
    await becomes(sessionId, "completed");
    const { prompts, output } = await turnsOf(sessionId);
    expect(prompts).toHaveLength(3);
    expect(prompts[2]).toContain(`<agent-callback session="${child!.sessionId}" status="completed">`);
    expect(prompts[2]).toContain("\n\nslow is done\n");
    expect(output).toMatchObject({ result_text: "received: completed" });
    lead.kill("SIGINT");
    slow.kill("SIGINT");
  },
);

// The executors need curl and python3.
test.runIf(hasTools)(
  "a child whose runner is killed calls back when it has failed elsewhere, and one that no runner has when it is cancelled",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    await runner("lead", "lead");
    const first = await runner("slow-1", "slow");
    const sessionId = await start({ agent: "lead", input: { prompt: "slow: work\nnobody: x" } });
    const children = await vi.waitFor(async () => {
      const found = await childrenOf(sessionId);
      expect(found).toHaveLength(2);
      return found;
    }, WAIT);
    const idOf = (name: string): string => children.find(({ agent }) => agent === name)!.sessionId;
    await becomes(idOf("slow"), "working");
    first.kill("SIGKILL");
    await first.finished;
    release("fail");
    await runner("slow-2", "slow");
    await vi.waitFor(async () => expect((await turnsOf(sessionId)).prompts).toHaveLength(2), WAIT);
    const { code } = await project.start(
      ["cancel", idOf("nobody"), "--hard", "--reason", "not needed", "--url", coordinator.url],
      { env: { HOLDFAST_TOKEN: coordinator.adminToken }, stdin: "" },
    ).finished;
    expect(code).toBe(0);
    await becomes(sessionId, "completed");
    const { prompts } = await turnsOf(sessionId);
    expect(prompts).toHaveLength(3);
    expect(prompts[1]).toContain(`<agent-callback session="${idOf("slow")}" status="failed">\n## Error\n\n`);
    expect(prompts[1]).toContain("no luck (Process exited with code 1)");
    expect(prompts[2]).toContain(`<agent-callback session="${idOf("nobody")}" status="failed">`);
    expect(prompts[2]).toContain("The session was cancelled: not needed");
  },
);

// The executors need curl and python3.
test.runIf(hasTools)(
  "a client gives a conversation a child with a callback, and a parent that has ended shows the callbacks that it did not receive",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    rmSync(project.path("profiles/lead.json")); // A conversation.
    await runner("lead", "lead");
    await runner("slow", "slow");
    await runner("shell", "shell");
    const sessionId = await start({ agent: "lead", input: { prompt: "slow: work" } });
    await becomes(sessionId, "waiting");
    const below = { invocation: "async_callback", parentSessionId: sessionId };
    const shell = await start({ agent: "shell", input: { prompt: "hello" }, ...below });
    await vi.waitFor(async () => expect((await turnsOf(sessionId)).prompts).toHaveLength(2), WAIT);
    expect((await turnsOf(sessionId)).prompts[1]).toContain(
      `<agent-callback session="${shell}" status="completed">`,
    );
    await becomes(sessionId, "waiting");
    const env = { HOLDFAST_TOKEN: coordinator.adminToken };
    const holdfast = (...args: string[]) =>
      project.start([...args, "--url", coordinator.url], { env, stdin: "" }).finished;
    // A paused parent takes nothing. It ends before somebody resumes it.
    expect((await holdfast("pause", sessionId)).code).toBe(0);
    const late = await start({ agent: "shell", input: { prompt: "too late" }, ...below });
    await becomes(late, "completed");
    expect((await holdfast("show", sessionId)).stdout).toMatch(/Callbacks not received yet \(1\)\n/);
    expect((await holdfast("cancel", sessionId, "--hard")).code).toBe(0);
    const [child] = (await childrenOf(sessionId)).filter(({ agent }) => agent === "slow");
    await becomes(child!.sessionId, "cancelled");
    const { stdout } = await holdfast("show", sessionId);
    expect(stdout).toMatch(/Callbacks that it did not receive \(2\)\n/);
    expect(stdout).toMatch(new RegExp(`^ +${child!.sessionId} +cancelled`, "m"));
    expect(stdout).toMatch(new RegExp(`^ +${late} +completed +.*too late`, "m"));
    const { callbacksNotReceived: kept } = JSON.parse(
      (await holdfast("show", sessionId, "--json")).stdout,
    ) as {
      callbacksNotReceived: readonly { sessionId: string }[];
    };
    expect(kept.toSorted((a, b) => (a.sessionId === late ? 1 : b.sessionId === late ? -1 : 0))).toEqual([
      { sessionId: child!.sessionId, status: "cancelled" },
      {
        sessionId: late,
        status: "completed",
        output: expect.objectContaining({ result_text: "too late" }) as unknown,
      },
    ]);
  },
);
