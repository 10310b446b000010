// Installs the real programs whose sessions a campaign kills (`withRealAgents`).

import { mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { installAgent } from "./install-agent.ts";
import { REAL_AGENTS } from "./real-agents.ts";

interface InstalledAgents {
  /** The names and versions of the programs. */
  readonly titles: string;
  /** The reason why a program could not be installed. */
  readonly problem: string | undefined;
  /** The variables of the tests that use them. */
  readonly env: Readonly<Record<string, string>>;
}

/** @param given the folder of the programs; a new one by default, which is removed at the end. */
export function withRealAgents<T>(given: string | undefined, work: (agents: InstalledAgents) => T): T {
  // Codex refuses to install its helpers below /tmp.
  const place = mkdtempSync("/var/tmp/holdfast-real-kills-");
  try {
    const programs = given === undefined ? join(place, "programs") : resolve(given);
    const resuming = REAL_AGENTS.filter(({ resumes }) => resumes === true);
    const problems = resuming.flatMap((agent) => {
      const problem = installAgent(agent, programs);
      return problem === undefined ? [] : [`${agent.name} is ${problem}`];
    });
    return work({
      titles: resuming.map(({ name, version }) => `${name} ${version}`).join(", "),
      problem: problems[0],
      env: { HOLDFAST_REAL_PROGRAMS: programs, TMPDIR: place },
    });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
