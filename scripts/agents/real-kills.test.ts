// Kills of the process that supervises a real external agent, at random moments. `npm run campaign -- real-kills` installs the programs, and names
// their folder in `HOLDFAST_REAL_PROGRAMS`.

import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { startScriptedModelServer, type Conversation, type Reply } from "@holdfast/testkit";
import { afterEach, beforeEach, test } from "vitest";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";
import { killedSession, type KillReport } from "../../packages/holdfast/src/testing/killed-sessions.ts";
import { REAL_AGENTS } from "./real-agents.ts";
import { shellCall } from "./scripted-reply.ts";

const PROGRAMS = process.env["HOLDFAST_REAL_PROGRAMS"];
const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 10);
/** Real programs take seconds to start. */
const KILL_WITHIN_MS = 8_000;
const STEPS = 12;

/** Does the words of the request in their order, by scripts of the project. Steps whose result it has seen are done. */
function stepsReply({ messages, tools }: Conversation): Reply {
  const seen = JSON.stringify(messages);
  const said = messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));
  const words = said.flatMap((text) => [...text.matchAll(/\b(step|ask):([\w-]+)/g)]);
  const names = [...new Map(words.map(([word, kind = "", name = ""]) => [word, { kind, name }])).entries()];
  for (const [, { kind, name }] of names) {
    if (seen.includes(`${kind} ${name} is done`)) continue;
    // A call that was cut off is named in the request to continue, and is verified.
    const isUncertain = said.some((text) => text.includes(`${kind}.sh ${name}`));
    const call = shellCall(tools, `sh ${kind}.sh ${name}${isUncertain ? " verify" : ""}`);
    return call ?? { text: "A title" };
  }
  return { text: `Done: ${names.map(([word]) => word).join(" ")}` };
}

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  writeFileSync(
    project.path("step.sh"),
    'sleep 0.1\n[ "$2" = verify ] && grep -qx "$1" steps || echo "$1" >> steps\necho "step $1 is done"\n',
  );
  writeFileSync(project.path("ask.sh"), 'echo x >> "$1"\necho "ask $1 is done"\n');
  mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
});
afterEach(() => project.dispose());

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined).for(REAL_AGENTS.filter(({ resumes }) => resumes === true))(
  `$name loses no answer, leaves no process and repeats no reported step over ${KILLS} kills`,
  { timeout: KILLS * 60_000 + 300_000 },
  async (agent) => {
    const server = await startScriptedModelServer({ script: stepsReply });
    try {
      const bin = join(PROGRAMS!, agent.name, "node_modules/.bin");
      const path = [bin, dirname(process.execPath), project.environment()["PATH"]].join(delimiter);
      const env = { ...agent.settings(project.folder, server, ""), PATH: path };
      const model = agent.model === null ? "" : `model: ${agent.model}\n`;
      const rules = 'allowedTools: ["shell(sh step.sh:*)"]\n';
      writeFileSync(project.path(".holdfast/profiles/steps.yaml"), `${model}${rules}`, { mode: 0o600 });
      const killed = {
        name: agent.name,
        options: ["--profile", "steps"],
        env,
        steps: STEPS,
        killWithinMs: KILL_WITHIN_MS,
      };
      const report: KillReport = { kills: { done: 0, max: KILLS }, sessions: 0, steps: 0, answers: 0 };
      for (let number = 0; report.kills.done < KILLS; number++)
        await killedSession(project, killed, `s${number}`, report);
      console.log(`${agent.name}: ${JSON.stringify(report)}`);
    } finally {
      await server.close();
    }
  },
);
