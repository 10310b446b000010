// Kills of the process that supervises a real external agent, at random moments.
// `npm run campaign -- real-kills` installs the programs, and names their folder in `HOLDFAST_REAL_PROGRAMS`.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { addProjectRule } from "@holdfast/agents";
import { startScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, test } from "vitest";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";
import {
  emptyReport,
  killedSession,
  type KillReport,
} from "../../packages/holdfast/src/testing/killed-sessions.ts";
import { REAL_AGENTS } from "./real-agents.ts";
import { stepsReply, writeScript } from "./scripted-reply.ts";

const PROGRAMS = process.env["HOLDFAST_REAL_PROGRAMS"];
/** The names of the agents that are killed, all of them by default. */
const AGENTS = process.env["HOLDFAST_REAL_AGENTS"]?.split(" ");
/** The file for what was counted. */
const FIGURES = process.env["HOLDFAST_KILL_FIGURES"];
const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 10);
/** Real programs take seconds to start. */
const KILL_WITHIN_MS = 8_000;
const STEPS = 12;

function figures({ sessions, steps, answers, afresh }: KillReport): string {
  const restored =
    afresh === 0 ? "" : `, ${afresh} times restore_incomplete and begun afresh as a person chose`;
  return `${sessions} sessions, ${steps} steps, ${answers} answers${restored}`;
}

let project: ExternalProject;
/** Outside of the project: the harness does not work in a folder that has its own state. */
let home: string;
beforeEach(() => {
  project = new ExternalProject();
  home = mkdtempSync(join(tmpdir(), "holdfast-real-home-"));
  writeScript(
    project.path("step.sh"),
    'sleep 0.1\n[ "$2" = verify ] && grep -qx "$1" steps || echo "$1" >> steps\necho "step $1 is done"\n',
  );
  writeScript(project.path("ask.sh"), 'echo x >> "$1"\necho "ask $1 is done"\n');
  mkdirSync(join(home, ".holdfast/profiles"), { recursive: true });
  const rule = {
    decision: "allow",
    tool: "shell",
    pattern: "./step.sh:*",
    session: "steps",
    at: 0,
  } as const;
  addProjectRule(join(home, ".local/share/holdfast/permission-rules.json"), project.folder, rule);
});
afterEach(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined).for(REAL_AGENTS.filter(({ name }) => AGENTS?.includes(name) !== false))(
  `$name loses no answer, leaves no process and repeats no reported step over ${KILLS} kills`,
  { timeout: KILLS * 60_000 + 300_000 },
  async (agent) => {
    const { name, model, permissionMode, killWithinMs = KILL_WITHIN_MS } = agent;
    const server = await startScriptedModelServer({ script: stepsReply });
    try {
      const bin = join(PROGRAMS!, name, "node_modules/.bin");
      const path = [bin, dirname(process.execPath), project.environment()["PATH"]].join(delimiter);
      const env = { ...agent.settings(home, server), HOME: home, PATH: path };
      for (const [field, value] of Object.entries(agent.profile?.(bin) ?? {}))
        writeFileSync(join(home, `.holdfast/profiles/${name}.yaml`), `${field}: ${JSON.stringify(value)}\n`, {
          mode: 0o600,
        });
      const input = { ...(model && { model }), ...(permissionMode && { permissionMode }) };
      const killed = { name, input, env, steps: STEPS, killWithinMs };
      const report = emptyReport(KILLS);
      for (let number = 0; report.kills.done < KILLS; number++)
        await killedSession(project, killed, `s${number}`, report);
      console.log(`${name}: ${JSON.stringify(report)}`);
      if (FIGURES !== undefined) writeFileSync(FIGURES, figures(report));
    } finally {
      await server.close();
    }
  },
);
