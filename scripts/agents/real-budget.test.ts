// The budget of a tree of real coding agents. It is charged what their models' server has served, also when
// the process that supervises them is killed. `npm run campaign -- real-budget` installs the programs, and
// names their folder in `HOLDFAST_REAL_PROGRAMS`.

import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";
import type { HoldfastProcess } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { CountingServer } from "./counting-server.ts";
import { codexSettings, WITH_RECORD } from "./real-agents.ts";
import { stepsReply, writeScript } from "./scripted-reply.ts";

const PROGRAMS = process.env["HOLDFAST_REAL_PROGRAMS"];
/** A session that dies five times without a commit of its own is taken for poison, and the lead only waits. */
const KILLS = Math.min(4, Number(process.env["HOLDFAST_KILLS"] ?? 5));
/** The file for what was counted. */
const FIGURES = process.env["HOLDFAST_KILL_FIGURES"];
const SLOW = { timeout: 600_000 };
const PATIENCE = { timeout: 60_000, interval: 200 };

interface Shown {
  readonly status: string;
  readonly budget?: { readonly spent: { readonly tokens: number } };
}

let project: ExternalProject;
/** The home of the programs. */
let home: string;
let model: ScriptedModelServer;
let server: CountingServer;
let env: Readonly<Record<string, string>>;
beforeEach(async () => {
  project = new ExternalProject();
  home = mkdtempSync(join(tmpdir(), "holdfast-real-home-"));
  copyFileSync(new URL("./budget-tree.ts", import.meta.url), project.path("lead.ts"));
  writeScript(
    project.path("step.sh"),
    '[ "$2" = verify ] && grep -qx "$1" steps || echo "$1" >> steps\necho "step $1 is done"\n',
  );
  writeScript(
    project.path("gate.sh"),
    '[ "$2" = verify ] || { echo "$1" >> gates; sleep 60; }\necho "gate $1 is done"\n',
  );
  writeScript(project.path("ask.sh"), 'echo "ask $1 is done"\n');
  model = await startScriptedModelServer({ script: stepsReply });
  server = await CountingServer.start(model.url);
  const bins = WITH_RECORD.map((name) => join(PROGRAMS ?? "/", name, "node_modules/.bin"));
  env = {
    ...codexSettings(home, { ...model, openaiBaseUrl: `${server.url}/v1` }),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "sk-scripted-0123456789",
    CLAUDE_CONFIG_DIR: join(home, ".claude"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    PI_CODING_AGENT_DIR: join(home, ".pi"),
    PI_OFFLINE: "1",
    HOME: home,
    PATH: [...bins, dirname(process.execPath), project.environment()["PATH"]].join(delimiter),
  };
});
afterEach(async () => {
  await project.dispose();
  server.close();
  await model.close();
  rmSync(home, { recursive: true, force: true });
});

const steps = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, step) => `step:NAME-${from + step}`).join(" ");

function start(work: string, tokens: number): HoldfastProcess {
  const input = JSON.stringify(work);
  return project.startHere(
    ["run", "lead.ts", "--input", input, "--session", "s", "--budget", `${tokens}tokens`],
    env,
  );
}

const resume = (): HoldfastProcess => project.startHere(["resume", "s"], env);

async function shown(id: string): Promise<Shown> {
  const { code, stdout, stderr } = await project.finishHere(["show", id, "--json"], env);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as Shown;
}

async function charged(): Promise<number> {
  return (await shown("s")).budget!.spent.tokens;
}

/** The children, by the names of their agents. */
async function children(): Promise<readonly { readonly sessionId: string; readonly status: string }[]> {
  const sessions =
    await project.json<readonly { readonly sessionId: string; readonly status: string }[]>("list");
  return sessions.filter(({ sessionId }) => sessionId !== "s");
}

async function kill(running: HoldfastProcess): Promise<void> {
  running.kill("SIGKILL");
  await running.finished;
}

/** Waits for the end of the run, and allows what is asked. */
async function answered(running: HoldfastProcess): Promise<void> {
  const next = (): Promise<"next"> => delay(1_000, "next" as const);
  while ((await Promise.race([running.finished, next()])) === "next")
    for (const { sessionId, status } of await children())
      if (status === "input_required") await project.finishHere(["approve", sessionId], env);
  const { code, stderr } = await running.finished;
  expect(code, stderr).toBe(0);
}

/** Whether some usage is said to be unknown. */
async function isUnknown(): Promise<boolean> {
  return (await project.finishHere(["budget", "s"], env)).stderr.includes("not known in full");
}

function note(figures: string): void {
  console.log(figures);
  if (FIGURES !== undefined) writeFileSync(FIGURES, figures, { flag: "a" });
}

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined)(
  "two kills, at work and with three open questions, lose no token of the budget",
  SLOW,
  async () => {
    let running = start(`${steps(0, 2)} gate:NAME-2 ${steps(3, 5)} ask:NAME-5 ${steps(6, 7)}`, 10_000_000);
    await vi.waitFor(() => {
      expect(existsSync(project.path("gates"))).toBe(true);
      expect(project.lines("gates")).toHaveLength(WITH_RECORD.length);
    }, PATIENCE);
    await kill(running);
    running = resume();
    await vi.waitFor(
      async () => expect((await children()).map(({ status }) => status)).toEqual(asking),
      PATIENCE,
    );
    await kill(running);
    await answered(resume());
    expect(await charged()).toBe(server.tokens);
    expect(await isUnknown()).toBe(false);
    note(`${server.served.length} requests with ${server.tokens} tokens over 2 kills`);
  },
);

const asking = WITH_RECORD.map(() => "input_required");

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined)(
  `after ${KILLS} kills at any moment the budget has what was served, or says that a part is unknown`,
  SLOW,
  async () => {
    let running = start(steps(0, 15 * KILLS), 100_000_000);
    for (let kills = 0; kills < KILLS; kills++) {
      await Promise.race([running.finished, delay(2_000 + Math.random() * 2_000)]);
      running.kill("SIGKILL");
      const { signal, stderr } = await running.finished;
      expect(signal, `the work ended before the last kill: ${stderr}`).toBe("SIGKILL");
      running = resume();
    }
    await answered(running);
    const missing = server.tokens - (await charged());
    expect(missing).toBeGreaterThanOrEqual(0);
    if (missing > 0) expect(await isUnknown()).toBe(true);
    note(`, ${KILLS} kills at any moment (${missing} of ${server.tokens} tokens said to be unknown)`);
  },
);

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined)(
  "three agents that pass the limit spend at most the requests that were under way",
  SLOW,
  async () => {
    const limit = 200_000;
    const running = start(steps(0, 30), limit);
    expect((await running.finished).code).toBe(9);
    const over = server.tokens - limit;
    const largest = WITH_RECORD.map((name) => {
      const own = server.served.filter(({ request }) => request.includes(`step:${name}-`));
      return Math.max(...own.map(({ tokens }) => tokens));
    });
    expect(over).toBeLessThanOrEqual(largest.reduce((sum, tokens) => sum + tokens, 0));
    const raised = await project.finishHere(["budget", "s", "--raise", "10000000tokens"], env);
    expect(raised.code, raised.stderr).toBe(0);
    await answered(resume());
    const missing = server.tokens - (await charged());
    expect(missing).toBeGreaterThanOrEqual(0);
    if (missing > 0) expect(await isUnknown()).toBe(true);
    note(`, ${over} tokens above a limit of ${limit} (${missing} of them said to be unknown)`);
  },
);
