// A session that was lost repeatedly is tried in a process of its own, and the machine works on meanwhile
// (rules-6, runner-8). Real processes.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack, textOf } from "../testing/local-stack.ts";

const PATIENCE = { timeout: 60_000, interval: 50 };
/**
 * The step of `sleeper` has no end. `guilty` ends its process a while after each start of its step. `counter`
 * notes each of its payments.
 */
const AGENTS = `
import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
import { setTimeout as delay } from "node:timers/promises";

const note = (...words) => appendFileSync("ledger", words.join(" ") + "\\n");
export const sleeper = defineAgent({ name: "sleeper", run: async (ctx) => ctx.run("sleep", async () => {
  note("sleeper", process.pid, 0);
  await delay(600_000);
}) });
export const guilty = defineAgent({ name: "guilty", run: async (ctx) => ctx.run("crash", async () => {
  note("guilty", process.pid, 0);
  await delay(400);
  process.kill(process.pid, "SIGKILL");
}) });
export const counter = defineAgent({ name: "counter", run: async (ctx, { count, effect }) => {
  for (let n = 0; n < count; n++) {
    await ctx.run("pay", () => note(ctx.sessionId, process.pid, n), { effect });
    await ctx.sleep(20);
  }
  return count;
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(project.path("ledger"), "");
});
afterEach(() => project.dispose());

interface Noted {
  readonly of: string;
  readonly pid: number;
  readonly n: number;
}
const ledger = (of: string): readonly Noted[] =>
  textOf(project.path("ledger"))
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([who]) => who === of)
    .map(([who = "", pid, n]) => ({ of: who, pid: Number(pid), n: Number(n) }));

test(
  "a long task whose runner was killed three times stops neither its neighbours nor new sessions of a stack",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const stack = new LocalStack(project);
    writeFileSync(project.path("agents.ts"), AGENTS);
    expect(await stack.start()).toMatchObject({ code: 0 });
    try {
      const { url } = await stack.status();
      const adminToken = readFileSync(project.path(".local/share/holdfast/admin-token"), "utf8").trim();
      const start = (agent: string, input?: unknown) =>
        startSession({ url: url!, adminToken }, { agent, input });
      await start("sleeper");
      const counters = await Promise.all(
        Array.from({ length: 6 }, () => start("counter", { count: 100_000, effect: "repeatable" })),
      );
      const work = (ids: readonly string[]) =>
        vi.waitFor(() => {
          const before = ids.map((id) => ledger(id).length);
          expect(before.every((count) => count > 0)).toBe(true);
        }, PATIENCE);
      const runners: (number | undefined)[] = [];
      for (let killed = 0; killed < 3; killed++) {
        await work(counters);
        await vi.waitFor(() => expect(ledger("sleeper").length).toBeGreaterThan(killed), PATIENCE);
        runners.push(await stack.pidOf("runner"));
        await stack.kill("runner");
        await stack.until("restarted", ({ processes }) => processes[1]?.restarts === killed + 1);
      }
      const before = counters.map((id) => ledger(id).length);
      const later = await start("counter", { count: 1, effect: "once" });
      // Far below the minutes for which a runner was kept before, and no measure of the machine's speed.
      await vi.waitFor(() => {
        expect(counters.map((id, i) => ledger(id).length > before[i]!)).toEqual(counters.map(() => true));
        expect(ledger(later)).toHaveLength(1);
      }, PATIENCE);
      const runner = await stack.pidOf("runner");
      await vi.waitFor(() => expect(ledger("sleeper")).toHaveLength(4), PATIENCE);
      // The third and the fourth attempt are trials: the third was handed over in order, which proves nothing.
      expect(ledger("sleeper").map(({ pid }, i) => pid === [...runners, runner][i])).toEqual([
        true,
        true,
        false,
        false,
      ]);
      expect(ledger(counters[0]!).at(-1)!.pid).toBe(runner);
      expect((await project.run("runs")).stdout).not.toContain("queued");
      expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
      expect(stack.processes()).toEqual([]);
    } finally {
      await stack.dispose();
    }
  },
);

test(
  "a session that kills its process is parked after its trials, and its neighbours pay once each",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    writeFileSync(project.path("agents.ts"), AGENTS);
    const coordinator = await startCoordinator(project, { leaseMs: 6_000, poisonLosses: 2 });
    const args = ["--agents", "agents.ts"];
    const guilty = await startSession(coordinator, { agent: "guilty" });
    for (let died = 0; died < 2; died++) {
      const { finished } = await startRunnerProcess(project, coordinator, `died-${died}`, args);
      expect((await finished).signal).toBe("SIGKILL");
    }
    const last = await startRunnerProcess(project, coordinator, "last", args);
    const neighbour = await startSession(coordinator, {
      agent: "counter",
      input: { count: 200, effect: "once" },
    });
    const statusOf = async (sessionId: string) => {
      const headers = { authorization: `Bearer ${coordinator.adminToken}` };
      const answer = await fetch(`${coordinator.url}/v1/sessions/${sessionId}`, { headers });
      return (await answer.json()) as { status: string; pauseReason?: string };
    };
    await vi.waitFor(
      async () => expect(await statusOf(guilty)).toMatchObject({ status: "paused", pauseReason: "poison" }),
      PATIENCE,
    );
    await vi.waitFor(
      async () => expect(await statusOf(neighbour)).toMatchObject({ status: "completed" }),
      PATIENCE,
    );
    expect(ledger(neighbour).map(({ n }) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(new Set(ledger(neighbour).map(({ pid }) => pid))).toEqual(new Set([last.child.pid]));
    const trials = ledger("guilty").slice(2);
    expect(new Set(trials.map(({ pid }) => pid)).size).toBe(2);
    expect(trials.map(({ pid }) => pid)).not.toContain(last.child.pid);
    last.child.kill("SIGTERM");
    await last.finished;
  },
);
