// Claude Code, Codex and an agent of ours under one lead and one budget, over two runners. The coordinator, a runner or a program is killed.
// `npm run campaign -- kills` kills more often.

import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Session } from "@holdfast/core";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { expect, test } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { ExternalProject } from "../testing/external-project.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";

const KILLS = Number(process.env["HOLDFAST_TREE_KILLS"] ?? 1);
const BUDGET_TOKENS = 1_000_000;
const CHILDREN = ["claude-code", "codex", "worker"];
/** The shortest useful lease, so that a lost runner is detected while a test waits. */
const SHORT_LEASE_MS = 6_000;

const AGENTS = `
import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { ClaudeCode, CODEX, externalAgent, LineAgent } from "@holdfast/agents";
import { defineAgent, remote } from "holdfast";
const options = { folder: process.cwd(), permissionModes: ["default"] };
export const claude = externalAgent(new ClaudeCode(options), options);
export const codex = externalAgent(new LineAgent({ facts: CODEX, ...options }), options);
export const worker = defineAgent({ name: "worker", run: async (ctx, words) => {
  for (const word of words.split(" "))
    await ctx.run(word, async () => {
      appendFileSync("steps", word.slice(5) + "\\n");
      await delay(100);
    });
  return "worked";
} });
export const lead = defineAgent({ name: "lead", run: async (ctx, given) => {
  const children = Object.entries(given).map(([agent, words]) => ctx.spawnAgent(remote(agent), words));
  return ctx.all(children.map((child) => ctx.waitForChild(child)));
} });
`;

const stepsOf = (agent: string): readonly string[] =>
  Array.from({ length: 2 * KILLS + 2 }, (_, at) => `${agent}${at}`);

test(
  `a tree over two runners ends under its budget after ${KILLS} kills of any process`,
  { timeout: KILLS * 60_000 + 120_000 },
  async () => {
    const project = new ExternalProject({ eachAsProcess: true });
    try {
      writeFileSync(project.path("agents.ts"), AGENTS);
      const env = { env: project.base() };
      let coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS, poisonLosses: 1_000 });
      const port = Number(new URL(coordinator.url).port);
      let count = 0;
      const runner = (): Promise<HoldfastProcess> =>
        startRunnerProcess(project, coordinator, `runner-${count++}`, ["--agents", "agents.ts"], env);
      const runners = [await runner(), await runner()];
      const input = Object.fromEntries(
        CHILDREN.map((agent) => [
          agent,
          stepsOf(agent)
            .map((step) => `step:${step}`)
            .join(" "),
        ]),
      );
      const lead = await startSession(coordinator, {
        agent: "lead",
        input,
        budget: { maxTokens: BUDGET_TOKENS },
      });
      const rowOf = async (): Promise<Session | undefined> => {
        const storage = openRemoteStorage({ url: coordinator.url, token: coordinator.adminToken });
        return storage.reader.session(lead).finally(() => storage.close());
      };

      const killed: string[] = [];
      for (let kills = 0; kills < KILLS; kills++) {
        while (!existsSync(project.path("steps"))) await delay(20);
        await delay(Math.random() * 800);
        const own = [coordinator.process, ...runners];
        const pids = project.processes().map(Number);
        // The sample of `npm test` kills a runner, which has more to lose than the others.
        const victim = KILLS === 1 ? runners[0]!.child.pid! : pids[Math.floor(Math.random() * pids.length)]!;
        const process_ = own.find(({ child }) => child.pid === victim);
        killed.push(
          process_ === undefined ? "program" : process_ === coordinator.process ? "coordinator" : "runner",
        );
        try {
          process.kill(victim, "SIGKILL");
        } catch {
          continue; // A program that has ended meanwhile.
        }
        if (process_ === undefined) continue;
        await process_.finished;
        if (process_ === coordinator.process)
          coordinator = await startCoordinator(project, {
            port,
            leaseMs: SHORT_LEASE_MS,
            poisonLosses: 1_000,
          });
        else runners[runners.indexOf(process_)] = await runner();
      }

      let row = await rowOf();
      while (row?.endedAt === undefined) {
        await delay(100);
        row = await rowOf();
      }
      expect(row, killed.join(", ")).toMatchObject({ status: "completed" });
      const [claude, codex, worked] = JSON.parse(row.output!) as string[];
      expect([claude, codex]).toEqual([`Done: ${input["claude-code"]}`, `Done: ${input["codex"]}`]);
      expect(worked).toBe("worked");
      for (const step of CHILDREN.flatMap(stepsOf))
        expect(project.steps().get(step), `step ${step}`).toBeGreaterThanOrEqual(1);
      // The tokens of Claude Code and Codex count against the budget of the lead.
      expect(row.account?.spent.tokens).toBeGreaterThan(1_130 + 130);
      expect(row.account?.spent.tokens).toBeLessThan(BUDGET_TOKENS);
      for (const one of [...runners, coordinator.process]) {
        one.kill("SIGTERM");
        await one.finished;
      }
      expect(project.processes()).toEqual([]);
    } finally {
      await project.dispose();
    }
  },
);
