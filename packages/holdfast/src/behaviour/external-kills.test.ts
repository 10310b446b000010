// Kills of the supervising process at random moments, for each kind of adapter. A kill loses no answer, leaves no process, and repeats no
// step that the program had reported as done.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import { killUntilEnded } from "../testing/kill-session.ts";

const IS_CAMPAIGN = isCampaign;
/** The kills of each adapter in the campaign, and those of `npm test`. */
const KILLS = IS_CAMPAIGN ? Number(process.env["HOLDFAST_KILLS"] ?? 100) : 2;
/** `npm test` has the kills of Claude Code in `external-agents.test.ts`, and one other here. */
const AGENTS = IS_CAMPAIGN ? ["claude-code", "codex", "pi", "opencode", "lines.ts"] : ["codex"];
const KILL_WITHIN_MS = 900;
/** Steps in one session. A session that is killed this often is followed by another one. */
const STEPS = IS_CAMPAIGN ? 30 : 8;

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

/** An agent of code whose program speaks our own JSON lines. */
function writeLinesAgent(): void {
  writeFileSync(
    project.path("lines.ts"),
    `import { customAgent, externalAgent } from "@holdfast/agents";
const folder = process.cwd();
const program = customAgent({ name: "lines", protocol: "lines", command: ["lines"], resumes: true, folder });
export default externalAgent(program, { folder, permissionModes: ["default"] });
`,
  );
}

interface Report {
  readonly kills: { done: number; readonly max: number };
  sessions: number;
  steps: number;
  answers: number;
}

/** One session that is killed until it has ended. */
async function killed(agent: string, session: string, report: Report): Promise<void> {
  const words = [
    ...Array.from({ length: STEPS }, (_, step) => `step:${session}-${step}`),
    `ask:answered-${session}`,
  ];
  const reported = new Set<string>();
  const checkSteps = (): void => {
    for (const step of reported) expect(project.steps().get(step), `${agent}: step ${step}`).toBe(1);
  };
  const { entries } = await killUntilEnded({
    withinMs: KILL_WITHIN_MS,
    start: async (isFirst) =>
      project.startHere(
        isFirst
          ? ["run", agent, words.join(" "), "--session", session, "--park"]
          : ["resume", session, "--park"],
      ),
    works: (running) => running.says(":turn"),
    kills: report.kills,
    ends: async (running) => {
      const { code, stderr } = await running.finished;
      expect(code, stderr).toBe(0);
    },
    show: () => project.shown(session),
    check: (seen) => {
      checkSteps();
      for (const [, step] of JSON.stringify(seen.entries).matchAll(/step ([\w-]+) is done/g))
        reported.add(step!);
    },
    approve: () => {
      report.answers++;
      return project.run("approve", session);
    },
  });
  expect(JSON.stringify(entries.at(-1))).toContain(`Done: ${words[0]}`); // The answer is there.
  const done = [...project.steps()].filter(([step]) => step.startsWith(`${session}-`));
  expect(done, agent).toHaveLength(STEPS);
  checkSteps();
  // The person's answer reached the program. A program that is killed after the call, and before its report, asks again.
  expect(project.lines(`answered-${session}`), agent).toContain("x");
  expect(project.processes(), agent).toEqual([]);
  report.steps += STEPS;
  report.sessions++;
}

describe.each(AGENTS)("%s", (agent) => {
  test(
    `${KILLS} kills at random moments lose no answer, leave no process, and repeat no step that was reported`,
    { ...ofCampaign, timeout: KILLS * 20_000 + 60_000 },
    async () => {
      if (agent === "lines.ts") writeLinesAgent();
      const report: Report = { kills: { done: 0, max: KILLS }, sessions: 0, steps: 0, answers: 0 };
      for (let number = 0; report.kills.done < KILLS; number++) await killed(agent, `s${number}`, report);
      if (IS_CAMPAIGN) console.log(`${agent}: ${JSON.stringify(report)}`);
    },
  );
});
