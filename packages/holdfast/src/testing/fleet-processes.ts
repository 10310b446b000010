// A coordinator and runners as processes of their own, through the command, as people start them.

import { defined } from "@holdfast/core";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { registrationToken } from "./coordinator-client.ts";
import type { HoldfastProcess, ProcessOptions, Project } from "./holdfast-process.ts";

export interface CoordinatorProcess {
  readonly process: HoldfastProcess;
  readonly url: string;
  readonly adminToken: string;
}

export interface CoordinatorOptions {
  /** The port of an earlier coordinator, to take its place; any free port by default. */
  readonly port?: number;
  /** As people have it by default. */
  readonly leaseMs?: number;
  /** The folder of its database; the project's own by default. */
  readonly folder?: string;
  /** The address of its database, in place of a SQLite file in that folder. */
  readonly storage?: string;
  /** The launcher of another version of the command. */
  readonly launcher?: string;
  /** By which its wall clock is set (`settableClock`). */
  readonly clock?: SettableClock;
  /** How often a session may be lost alone with its runner; 5 by default. */
  readonly poisonLosses?: number;
  /** Files with keys of environments; none by default. */
  readonly environmentKeys?: readonly string[];
}

/** The wall clock of a process, which a test sets. */
export interface SettableClock {
  readonly env: Readonly<Record<string, string>>;
  /** Sets the clock's error from now on. */
  set(ms: number): void;
}

/** @param name of the file in the project that it is set by. */
export function settableClock(project: Project, name: string): SettableClock {
  const path = project.path(`${name}.clock`);
  const preload = new URL("set-clock.ts", import.meta.url).href;
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, HOLDFAST_TEST_CLOCK: path },
    set: (ms) => writeFileSync(path, String(ms)),
  };
}

export async function startCoordinator(
  project: Project,
  options: CoordinatorOptions = {},
): Promise<CoordinatorProcess> {
  const { port = 0, leaseMs = 15_000, folder = ".", clock, poisonLosses, environmentKeys } = options;
  const config = project.path("coordinator.json");
  writeFileSync(
    config,
    JSON.stringify({ leaseMs, renewMs: Math.floor(leaseMs / 4), poisonLosses, environmentKeys }),
  );
  mkdirSync(project.path(folder), { recursive: true });
  const { storage = `sqlite:${project.path(`${folder}/fleet.db`)}`, launcher } = options;
  const args = ["coordinator", "--config", config, "--storage", storage, "--port", String(port), "--json"];
  const started = project.start(args, { env: { ...clock?.env }, ...defined({ launcher }) });
  await started.says('"listening"');
  const line = started.stdout.split("\n").find((text) => text.includes('"listening"'))!;
  const { url, adminTokenFile } = JSON.parse(line) as { url: string; adminTokenFile: string };
  return { process: started, url, adminToken: readFileSync(adminTokenFile, "utf8").trim() };
}

/** A runner of a name of its own, registered and waiting. */
export async function startRunnerProcess(
  project: Project,
  coordinator: CoordinatorProcess,
  name: string,
  args: readonly string[],
  { env, launcher }: Pick<ProcessOptions, "env" | "launcher"> = {},
): Promise<HoldfastProcess> {
  const token = await registrationToken(coordinator, name);
  const started = project.start(["runner", "-c", coordinator.url, "--name", name, ...args], {
    env: { ...env, HOLDFAST_TOKEN: token },
    ...defined({ launcher }),
  });
  await started.says("waiting for runs");
  return started;
}

/** A note of an agent's task: the process that did a step of a session. */
export interface LedgerLine {
  readonly pid: string;
  readonly sessionId: string;
  readonly step: string;
}

/** The lines of the project's file `ledger`: three words for each step that was done. */
export function readLedger(project: Project): readonly LedgerLine[] {
  if (!existsSync(project.path("ledger"))) return [];
  const lines = readFileSync(project.path("ledger"), "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [pid = "", sessionId = "", step = ""] = line.split(" ");
    return { pid, sessionId, step };
  });
}
