// Kills of the process that runs an agent file, at random moments: `holdfast run`, and a runner of a
// coordinator. A kill repeats no call whose result is recorded. A call that may be made once is never
// repeated, and the answer to a question is kept.
//
// The kills take minutes, so only the campaign `agent-kills` makes them. `agent-file-runs.test.ts` and
// `pushed-agents.test.ts` have one of each.

import { existsSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { killUntilEnded, type KilledSession, type SeenSession } from "../testing/kill-session.ts";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 50);
const KILL_WITHIN_MS = 1_500;
const PATIENCE = { timeout: 120_000, interval: 100 };

/** The calls of each session, one for a turn. */
const KINDS = ["once", "again", "ask", "again", "once", "once", "again", "ask", "once"] as const;
const FILE = ".holdfast/agents/worker.md";
const AGENT = `---
name: worker
description: Does steps.
tools: Bash
holdfast:
  approvals: { allow: ["Bash(sh step.sh once:*)", "Bash(sh step.sh again:*)"] }
---
You do steps.
`;

let project: ModelProject;
/** Resolves when the model is asked next. */
let asked = Promise.withResolvers<void>();
beforeEach(async () => {
  project = await ModelProject.open();
  project.write(FILE, AGENT);
  project.write("step.sh", 'echo "$2" >> ledger\nsleep 0.2\necho "did $2"\n');
  project.script = (conversation) => {
    asked.resolve();
    asked = Promise.withResolvers();
    const [session] = /s\d+/.exec(JSON.stringify(conversation.messages[0])) ?? [];
    const at = repliesOf(conversation);
    const kind = KINDS[at];
    if (kind === undefined) return { text: `Done: ${session}` };
    const command = `sh step.sh ${kind} ${kind}-${session}-${at}`;
    return { toolCalls: [{ name: "shell", input: { command, repeatable: kind === "again" } }] };
  };
  expect((await project.run("agents", "trust")).code).toBe(0);
});
afterEach(() => project.dispose());

let report = { sessions: 0, calls: 0, repeated: 0, uncertain: 0 };

type Way = Pick<KilledSession, "start" | "ends" | "show" | "approve">;

/** One session that is killed until it has ended. */
async function killSession(session: string, kills: KilledSession["kills"], way: Way): Promise<void> {
  /** Each step with a recorded result, and how often it was done then. */
  const recorded = new Map<string, number>();
  let answers = 0;
  const { entries } = await killUntilEnded({
    ...way,
    kills,
    withinMs: KILL_WITHIN_MS,
    works: async (_, isOver) => Promise.race([asked.promise, becomes(way.show, isOver)]),
    check: ({ entries: seen }) => {
      const done = ledger();
      for (const [, step] of JSON.stringify(seen).matchAll(/did ([\w-]+)/g))
        if (!recorded.has(step!)) recorded.set(step!, done.get(step!) ?? 0);
      for (const [step, count] of recorded) expect(done.get(step), `${step} was repeated`).toBe(count);
      for (const [step, count] of done)
        if (!step.startsWith("again")) expect(count, `${step} may be done once`).toBe(1);
    },
    approve: (asking) => {
      answers++;
      return way.approve(asking);
    },
  });
  expect(JSON.stringify(entries.at(-1))).toContain(`Done: ${session}`);
  const results = entries.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));
  expect(results, session).toHaveLength(KINDS.length);
  for (const [at, kind] of KINDS.entries()) {
    const step = `${kind}-${session}-${at}`;
    const isUncertain = /nobody knows whether it took effect/.test(results[at]!);
    if (isUncertain) expect(kind, step).not.toBe("again");
    else expect(results[at], step).toContain(`did ${step}`);
    report.uncertain += Number(isUncertain);
    report.repeated += Number((ledger().get(step) ?? 0) > 1);
  }
  expect(answers, session).toBe(KINDS.filter((kind) => kind === "ask").length);
  report.sessions++;
  report.calls += KINDS.length;
}

/** How often each step was done. */
function ledger(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const lines = existsSync(project.path("ledger"))
    ? readFileSync(project.path("ledger"), "utf8").trimEnd().split("\n")
    : [];
  for (const step of lines) counts.set(step, (counts.get(step) ?? 0) + 1);
  return counts;
}

function becomes(show: Way["show"], isSo: (session: SeenSession) => boolean): Promise<void> {
  return vi.waitFor(async () => expect(await show()).toSatisfy(isSo), PATIENCE);
}

async function killAll(wayOf: (session: string) => Way): Promise<void> {
  const kills = { done: 0, max: KILLS };
  report = { sessions: 0, calls: 0, repeated: 0, uncertain: 0 };
  for (let number = 0; kills.done < KILLS; number++)
    await killSession(`s${number}`, kills, wayOf(`s${number}`));
  console.log(`${KILLS} kills: ${JSON.stringify(report)}`);
}

test(
  "a kill of holdfast run repeats no recorded call, leaves a call that may be made once uncertain, and loses no answer",
  { ...ofCampaign, timeout: KILLS * 60_000 },
  () =>
    killAll((session) => ({
      start: async (isFirst) =>
        project.start(
          isFirst
            ? ["run", FILE, `Do ${session}.`, "--session", session, "--park"]
            : ["resume", session, "--park"],
          { stdin: "" },
        ),
      ends: async ({ finished }) => {
        const { code, stderr } = await finished;
        expect(code, stderr).toBe(0);
      },
      show: () => project.json<SeenSession & Record<string, unknown>>("show", session),
      approve: () => project.run("approve", session),
    })),
);

test(
  "a kill of a runner repeats no recorded call, leaves a call that may be made once uncertain, and loses no answer",
  { ...ofCampaign, timeout: KILLS * 60_000 },
  async () => {
    const coordinator = await startCoordinator(project, { leaseMs: 6_000, poisonLosses: 1_000 });
    const env = { HOLDFAST_URL: coordinator.url, HOLDFAST_TOKEN: coordinator.adminToken };
    let runners = 0;
    await killAll((session) => {
      const show = async (): Promise<SeenSession> => {
        const { stdout, stderr } = await project.finish(["show", session, "--json"], { env });
        expect(stdout, stderr).toContain('"status"');
        return JSON.parse(stdout) as SeenSession;
      };
      return {
        start: async (isFirst) => {
          const runner = await startRunnerProcess(project, coordinator, `runner-${runners++}`, [
            "-p",
            ".",
            "--agents",
            FILE,
          ]);
          const input = `Do ${session}.`;
          if (isFirst) await startSession(coordinator, { agent: "worker", input, sessionId: session });
          return runner;
        },
        ends: async (runner, isOver) => {
          await becomes(show, isOver);
          runner.kill("SIGTERM");
          await runner.finished;
        },
        show,
        approve: () => project.finish(["approve", session], { env }),
      };
    });
  },
);
