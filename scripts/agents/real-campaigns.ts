// The campaigns over real programs, which are installed first: `realKillCampaigns` and
// `realProgramCampaigns`.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { installAgent } from "./install-agent.ts";
import { INSPECTOR, REAL_AGENTS, WITH_HELD_KEYS, WITH_RECORD, type RealAgent } from "./real-agents.ts";

const REAL_KILLS = ["scripts/agents/real-kills.test.ts"];
const REAL_KEYS = ["scripts/agents/real-keys.test.ts"];
const REAL_BUDGET = ["scripts/agents/real-budget.test.ts"];
const REAL_CLIENTS = ["scripts/agents/real-clients.test.ts"];

/** The end of a campaign. */
export interface Outcome {
  readonly passed: boolean;
  readonly what: string;
}

type RunTests = (what: string, tests: readonly string[], env: Readonly<Record<string, string>>) => Outcome;

interface RealCampaign {
  readonly name: string;
  readonly tests: readonly string[];
  readonly onlyByName: true;
  run(): Outcome;
}

/**
 * A campaign for each real agent.
 *
 * @param programs the folder of the programs; a new one by default, which is removed at the end.
 */
export function realKillCampaigns(
  programs: string | undefined,
  kills: number,
  run: RunTests,
): readonly RealCampaign[] {
  return REAL_AGENTS.map(({ name }) => ({
    name: `real-kills-${name}`,
    tests: REAL_KILLS,
    onlyByName: true,
    run: () => killRealAgent(name, programs, kills, run),
  }));
}

function killRealAgent(name: string, programs: string | undefined, kills: number, run: RunTests): Outcome {
  const agents = REAL_AGENTS.filter((agent) => agent.name === name);
  return withRealAgents(programs, agents, ({ titles, problem, env }) => {
    const what = `${kills} kills of the supervising process of the real ${titles}, over a scripted model`;
    if (problem !== undefined) return { passed: false, what: `${what}: ${problem}` };
    const figures = join(env["TMPDIR"] ?? "", "figures");
    const { passed } = run(what, REAL_KILLS, {
      ...env,
      HOLDFAST_REAL_AGENTS: name,
      HOLDFAST_KILLS: String(kills),
      HOLDFAST_KILL_FIGURES: figures,
    });
    return { passed, what: existsSync(figures) ? `${what}: ${readFileSync(figures, "utf8")}` : what };
  });
}

/** The campaigns that try one thing with several programs. @param programs as above. @param kills of `real-budget`. */
export function realProgramCampaigns(
  programs: string | undefined,
  kills: number,
  run: RunTests,
): readonly RealCampaign[] {
  return [
    {
      name: "real-clients",
      tests: REAL_CLIENTS,
      onlyByName: true,
      run: () => tryRealClients(programs, run),
    },
    { name: "real-keys", tests: REAL_KEYS, onlyByName: true, run: () => tryRealKeys(programs, run) },
    {
      name: "real-budget",
      tests: REAL_BUDGET,
      onlyByName: true,
      run: () => tryRealBudget(programs, kills, run),
    },
  ];
}

function tryRealClients(programs: string | undefined, run: RunTests): Outcome {
  const claude = REAL_AGENTS.filter(({ name }) => name === "claude-code");
  return withRealAgents(programs, [...claude, INSPECTOR], ({ titles, problem, env }) => {
    const what = `the tools of the orchestrator by /mcp and by holdfast mcp, called by ${titles}`;
    if (problem !== undefined) return { passed: false, what: `${what}: ${problem}` };
    return run(what, REAL_CLIENTS, env);
  });
}

function tryRealKeys(programs: string | undefined, run: RunTests): Outcome {
  const names: readonly string[] = WITH_HELD_KEYS;
  const agents = REAL_AGENTS.filter(({ name }) => names.includes(name));
  return withRealAgents(programs, agents, ({ titles, problem, env }) => {
    const what = `no command of ${titles} finds the key with which its program works`;
    if (problem !== undefined) return { passed: false, what: `${what}: ${problem}` };
    return run(what, REAL_KEYS, env);
  });
}

function tryRealBudget(programs: string | undefined, kills: number, run: RunTests): Outcome {
  const names: readonly string[] = WITH_RECORD;
  const agents = REAL_AGENTS.filter(({ name }) => names.includes(name));
  return withRealAgents(programs, agents, ({ titles, problem, env }) => {
    const what = `the budget of a tree of the real ${titles} is charged what the server of their models has served`;
    if (problem !== undefined) return { passed: false, what: `${what}: ${problem}` };
    const figures = join(env["TMPDIR"] ?? "", "figures");
    const { passed } = run(what, REAL_BUDGET, {
      ...env,
      HOLDFAST_KILLS: String(kills),
      HOLDFAST_KILL_FIGURES: figures,
    });
    return { passed, what: existsSync(figures) ? `${what}: ${readFileSync(figures, "utf8")}` : what };
  });
}

interface InstalledAgents {
  /** The names and versions of the programs. */
  readonly titles: string;
  /** The reason why a program could not be installed. */
  readonly problem: string | undefined;
  /** The variables of the tests that use them. */
  readonly env: Readonly<Record<string, string>>;
}

function withRealAgents<T>(
  given: string | undefined,
  agents: readonly Pick<RealAgent, "name" | "version" | "install">[],
  work: (installed: InstalledAgents) => T,
): T {
  // Codex refuses to install its helpers below /tmp.
  const place = mkdtempSync("/var/tmp/holdfast-real-agents-");
  try {
    const programs = given === undefined ? join(place, "programs") : resolve(given);
    const problems = agents.flatMap((agent) => {
      const problem = installAgent(agent, programs);
      return problem === undefined ? [] : [`${agent.name} is ${problem}`];
    });
    return work({
      titles: agents.map(({ name, version }) => `${name} ${version}`).join(", "),
      problem: problems[0],
      env: { HOLDFAST_REAL_PROGRAMS: programs, TMPDIR: place },
    });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
