// Kills of the supervising process at random moments, for each kind of adapter. A kill loses no answer,
// leaves no process, and repeats no step that the program had reported as done.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import { emptyReport, killedSession } from "../testing/killed-sessions.ts";

/** The kills of each adapter in the campaign, and in a run of this file alone. `npm test` leaves them out. */
const KILLS = isCampaign ? Number(process.env["HOLDFAST_KILLS"] ?? 100) : 2;
/** A run of this file alone kills one adapter. Kills of Claude Code are in `external-agents.test.ts`, too. */
const AGENTS = isCampaign ? ["claude-code", "codex", "pi", "opencode", "lines.ts"] : ["codex"];
const KILL_WITHIN_MS = 900;
/** Steps in one session. A session that is killed this often is followed by another one. */
const STEPS = isCampaign ? 30 : 8;

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

/** An agent of code whose program speaks our own JSON lines. */
function writeLinesAgent(): void {
  writeFileSync(
    project.path("lines.ts"),
    `import { customAgent, externalAgent } from "@holdfast/programs";
const folder = process.cwd();
const program = customAgent({ name: "lines", protocol: "lines", command: ["lines"], resumes: true, folder });
export default externalAgent(program, { folder, permissionModes: ["default"] });
`,
  );
}

describe.each(AGENTS)("%s", (agent) => {
  test(
    `${KILLS} kills at random moments lose no answer, leave no process, and repeat no step that was reported`,
    { ...ofCampaign, timeout: KILLS * 20_000 + 60_000 },
    async () => {
      if (agent === "lines.ts") writeLinesAgent();
      const report = emptyReport(KILLS);
      const killed = { name: agent, steps: STEPS, killWithinMs: KILL_WITHIN_MS };
      for (let number = 0; report.kills.done < KILLS; number++)
        await killedSession(project, killed, `s${number}`, report);
      if (isCampaign) console.log(`${agent}: ${JSON.stringify(report)}`);
    },
  );
});
