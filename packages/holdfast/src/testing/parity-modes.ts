// The modes in which the scenario of parity runs (`MODES`). They are this process over memory, `holdfast run`
// over a database and the local stack. At a coordinator the runner has the agent's file, or gets it from
// there.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { faultyStorage } from "@holdfast/testkit";
import { releaseClaim } from "@holdfast/testkit/test-runtime";
import { expect, vi } from "vitest";
import { loadAgent } from "../run/load-agent.ts";
import { startCoordinator, startRunnerProcess } from "./fleet-processes.ts";
import type { HoldfastProcess } from "./holdfast-process.ts";
import type { ModelProject } from "./model-project.ts";
import { BELOW, GIVEN, INPUT, SESSION, START, TOOLS, type Scenario } from "./parity-scenario.ts";

/** The question and the end of the session, as its person sees them. */
export interface Person {
  readonly asked: string;
  readonly output: string;
}

export interface Mode {
  readonly name: string;
  /** Starts the session, lets what drives it be killed once, approves its question, and waits for its end. */
  play(scenario: Scenario): Promise<Person>;
}

const PATIENCE = { timeout: 60_000, interval: 100 };
const AGENT = "lead";
const FILE = ".holdfast/agents/lead.md";
const APPROVED = { approved: true };

const memory: Mode = {
  name: "one process over memory",
  async play(scenario) {
    const { folder: cwd, variables } = scenario.project;
    const environment = { values: { RELEASE: "2" } };
    const env = { PATH: process.env["PATH"], ...variables };
    const { agent } = await loadAgent(AGENT, { cwd, env, given: environment });
    const storage = new MemoryStorage();
    const killed = Promise.withResolvers<void>();
    const mortal = faultyStorage(storage);
    const first = createRuntime({ storage: mortal, agents: [agent] });
    scenario.kill = () => {
      mortal.kill();
      vanishRuntime(first);
      killed.resolve();
    };
    await first.start(agent, INPUT, { sessionId: SESSION, environment });
    await killed.promise;
    await releaseClaim(storage, SESSION);
    const runtime = createRuntime({ storage, agents: [agent] });
    await runtime.resume(SESSION);
    const asked = await vi.waitFor(async () => {
      const { waits = [] } = (await storage.reader.session(SESSION)) ?? {};
      const wait = waits.find(({ type }) => type === "input");
      return wait?.type === "input" ? wait.prompt : expect.fail("the session asks nothing");
    }, PATIENCE);
    await runtime.answer(SESSION, APPROVED);
    const output = await runtime.handle(SESSION).result();
    await runtime.close();
    return { asked, output: String(output) };
  },
};

const database: Mode = {
  name: "holdfast run",
  async play(scenario) {
    const { project } = scenario;
    const first = project.start(["run", AGENT, INPUT, "--session", SESSION, "--park", ...START], {
      stdin: "",
    });
    scenario.kill = () => first.kill("SIGKILL");
    expect(await first.finished).toMatchObject({ signal: "SIGKILL" });
    await done(project, ["resume", SESSION, "--park"]);
    const asked = await question(project);
    await done(project, ["approve", SESSION]);
    await done(project, ["resume", SESSION]);
    return { asked, output: (await done(project, ["result", SESSION])).trimEnd() };
  },
};

const stack: Mode = {
  name: "local stack",
  async play(scenario) {
    const { project } = scenario;
    await done(project, ["local", "start", "--agents", FILE, "--port", "0"]);
    const { processes } = await project.json<{
      readonly processes: readonly { readonly component: string; readonly pid: number }[];
    }>("local", "status");
    const runner = processes.find(({ component }) => component === "runner");
    scenario.kill = () => void process.kill(runner!.pid, "SIGKILL");
    const person = await fromAfar(project, ["run", AGENT, INPUT, "--session", SESSION, ...START]);
    await done(project, ["local", "stop"]);
    return person;
  },
};

const fleet = (name: string, isPushed: boolean): Mode => ({
  name,
  async play(scenario) {
    const { project } = scenario;
    const coordinator = await startCoordinator(project, { leaseMs: 6_000 });
    const policyFile = join(project.home, "policy.json");
    const env = { HOLDFAST_URL: coordinator.url, HOLDFAST_TOKEN: coordinator.adminToken };
    if (isPushed) {
      await done(project, ["skill", "push", "house-style"], env);
      for (const script of ["count", "mark"])
        await done(project, ["script", "push", script, "--catalogue"], env);
      for (const agent of ["helper", "checker", AGENT]) await done(project, ["agents", "push", agent], env);
      const policy = { agentFiles: { allow: ["*"], tools: TOOLS, ...GIVEN, ...BELOW }, allowScripts: "all" };
      writeFileSync(policyFile, JSON.stringify(policy));
    }
    const options = isPushed ? ["--policy", policyFile] : ["--agents", FILE];
    const begin = (runner: string): Promise<HoldfastProcess> =>
      startRunnerProcess(project, coordinator, runner, ["-p", ".", ...options]);
    const runner = await begin("first");
    let next: Promise<HoldfastProcess> | undefined;
    scenario.kill = () => {
      runner.kill("SIGKILL");
      next = begin("second");
    };
    const input = ["--input", JSON.stringify(INPUT)];
    const person = await fromAfar(
      project,
      ["run", "--agent", AGENT, ...input, "--session", SESSION, ...START],
      env,
    );
    for (const one of [await next, coordinator.process]) one?.kill("SIGTERM");
    return person;
  },
});

/** The parts of a session that another process drives: this person starts it, answers, and sees its end. */
async function fromAfar(
  project: ModelProject,
  start: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Person> {
  const following = project.start(start, { stdin: "", env });
  const asked = await question(project, env);
  await done(project, ["approve", SESSION], env);
  const { code, stderr } = await following.finished;
  expect(code, stderr).toBe(0);
  return { asked, output: (await done(project, ["result", SESSION], env)).trimEnd() };
}

async function done(
  project: ModelProject,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await project.finish(args, { env });
  expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

function question(project: ModelProject, env: Readonly<Record<string, string>> = {}): Promise<string> {
  return vi.waitFor(async () => {
    const { stdout, stderr } = await project.finish(["show", SESSION, "--json"], { env });
    const { waits = [] } = JSON.parse(stdout || stderr) as {
      waits?: readonly { readonly prompt?: string }[];
    };
    return waits.map(({ prompt }) => prompt).find(Boolean) ?? expect.fail(stdout || stderr);
  }, PATIENCE);
}

export const MODES: readonly [Mode, ...Mode[]] = [
  memory,
  database,
  stack,
  fleet("coordinator with a local file", false),
  fleet("coordinator with a pushed file", true),
];
