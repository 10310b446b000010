// A lead of ours with two external agents as its children, under one budget, while any process of the tree is killed. `npm run campaign -- kills`
// kills more often.

import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startScriptedModelServer } from "@holdfast/testkit";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

const KILLS = Number(process.env["HOLDFAST_TREE_KILLS"] ?? 1);

test(
  `a lead with Claude Code and Codex ends under its budget after ${KILLS} kills of any process`,
  { ...ofCampaign, timeout: KILLS * 15_000 + 60_000 },
  async () => {
    const project = new ExternalProject();
    const steps = (agent: string) =>
      Array.from({ length: 2 * KILLS + 2 }, (_, at) => `step:${agent}${at}`).join(" ");
    const server = await startScriptedModelServer({
      script: ({ messages }) =>
        messages.some(({ role }) => role === "assistant")
          ? { text: "Both are done." }
          : {
              toolCalls: ["claude-code", "codex"].map((agent) => ({
                name: "delegate",
                input: { agent, input: steps(agent) },
              })),
            },
    });
    try {
      writeFileSync(
        project.path("lead.md"),
        "---\nname: lead\ndescription: Leads.\nholdfast:\n  agents: [claude-code, codex]\n---\nLead.\n",
      );
      const env = { HOLDFAST_SCRIPTED_MODEL_URL: server.url };
      const resume = ["resume", "l"];
      let running = project.startHere(
        ["run", "lead.md", "Go.", "--session", "l", "--budget", "1000000tokens"],
        env,
      );
      for (let kills = 0; kills < KILLS; kills++) {
        while (!existsSync(project.path("steps"))) await delay(20);
        await delay(Math.random() * 800);
        const alive = project.processes();
        const victim = Number(alive[Math.floor(Math.random() * alive.length)]);
        if (kills === 0 || victim === running.child.pid) {
          running.kill("SIGKILL");
          await running.finished;
          running = project.startHere(resume, env);
        } else if (victim > 0) process.kill(victim, "SIGKILL");
      }
      const { code, stderr } = await running.finished;
      expect(code, stderr).toBe(0);
      expect((await project.startHere(["result", "l"]).finished).stdout).toBe("Both are done.\n");
      const done = project.steps();
      for (const agent of ["claude-code", "codex"])
        for (const step of steps(agent).replaceAll("step:", "").split(" "))
          expect(done.get(step), `step ${step}`).toBeGreaterThanOrEqual(1);
      expect(project.processes()).toEqual([]);
      // The tokens of both children count against the budget of the lead.
      const { budget } = await project.json<{ budget: { spent: { tokens: number } } }>("show", "l");
      expect(budget.spent.tokens).toBeGreaterThan(1_130 + 130);
    } finally {
      await server.close();
      await project.dispose();
    }
  },
);
