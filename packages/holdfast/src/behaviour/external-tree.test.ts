// A lead of ours with two external agents as its children, under one budget, while any process of the tree is
// killed. `npm run campaign -- kills` kills more often.

import { writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startScriptedModelServer } from "@holdfast/testkit";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

const KILLS = Number(process.env["HOLDFAST_TREE_KILLS"] ?? 1);
/** Kills without progress between them. Five deaths in a row end the turn of a program. */
const IN_A_ROW_MAX = 3;

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
      const done = (): number => project.steps().size;
      let seen = 0;
      let inARow = 0;
      // The lead only waits, so that its kills are deaths without a commit. After five it is parked, and a
      // person resumes it.
      const isParked = async (): Promise<boolean> =>
        running.child.exitCode !== null &&
        (await running.finished).stderr.includes("in a row while the session was tried alone");
      for (let kills = 0; kills < KILLS; kills++) {
        if (await isParked()) running = project.startHere(resume, env);
        const isTooSoon = (): boolean => done() === 0 || (inARow >= IN_A_ROW_MAX && done() === seen);
        while (isTooSoon() && running.child.exitCode === null) await delay(20);
        inARow = done() === seen ? inARow + 1 : 1;
        seen = done();
        await delay(Math.random() * 800);
        const alive = project.processes();
        const victim = Number(alive[Math.floor(Math.random() * alive.length)]);
        if (kills === 0 || victim === running.child.pid) {
          running.kill("SIGKILL");
          await running.finished;
          running = project.startHere(resume, env);
        } else if (victim > 0) process.kill(victim, "SIGKILL");
      }
      let { code, stderr } = await running.finished;
      while (await isParked()) {
        running = project.startHere(resume, env);
        ({ code, stderr } = await running.finished);
      }
      expect(code, stderr).toBe(0);
      expect((await project.startHere(["result", "l"]).finished).stdout).toBe("Both are done.\n");
      const all = project.steps();
      for (const agent of ["claude-code", "codex"])
        for (const step of steps(agent).replaceAll("step:", "").split(" "))
          expect(all.get(step), `step ${step}`).toBeGreaterThanOrEqual(1);
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
