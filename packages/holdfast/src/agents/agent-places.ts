// `agentPlaces`: where this call looks for agent files. `namesAgentFile` says whether an argument means one.
// `shownPath` shows a path as a person would write it.

import { existsSync } from "node:fs";
import { basename, extname, isAbsolute, join, relative, resolve } from "node:path";
import { defined } from "@holdfast/core";
import type { AgentPlaces } from "@holdfast/agents";
import type { Machine } from "@holdfast/machine";
import { CODE_ENDINGS } from "@holdfast/machine/agent-source";
import type { Io } from "@holdfast/terminal/frame/command";
import type { Mode } from "@holdfast/place/mode";
import { findLayers, findProject, trustFileOf } from "@holdfast/place/project";
import { externalAgentNames } from "@holdfast/machine/external-agent-names";

/** A call that looks for agents. */
export interface AgentSearch extends Pick<Io, "cwd" | "env"> {
  /** The agents are for sessions of several people. */
  readonly servesOthers?: boolean;
  /** The labels of the runner that offers the agents. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The mode of a command that takes it as an option. */
  readonly mode?: Mode;
  /** Makes the agents: that of the process by default. */
  readonly machine?: Machine;
}

export function agentPlaces(
  io: AgentSearch,
  {
    project: named,
    trustsProject = false,
  }: { readonly project?: string; readonly trustsProject?: boolean } = {},
): AgentPlaces {
  const { HOME: home } = io.env;
  const project = named ?? findProject(io);
  return {
    project,
    layers: findLayers(named ?? io.cwd, project, io),
    home: home !== undefined && isAbsolute(home) ? home : undefined,
    env: io.env,
    trustFile: trustFileOf(io),
    trustsProject,
    externalAgents: () => externalAgentNames(io),
    ...(io.servesOthers === true ? { servesOthers: true } : {}),
    ...defined({ labels: io.labels }),
  };
}

/** Whether `run` reads this argument as an agent file or the name of one, and not as a file of code. */
export function namesAgentFile(nameOrPath: string, cwd: string): boolean {
  const path = resolve(cwd, nameOrPath);
  if ([".md", ".toml"].includes(extname(path))) return true;
  if (existsSync(path)) return existsSync(join(path, "agent.json")) || basename(path) === "agent.json";
  // `run hello` beside hello.ts is a file whose ending was forgotten.
  if (CODE_ENDINGS.some((extension) => existsSync(`${path}${extension}`))) return false;
  return /^(?:[a-z]+:)?[\w.-]+$/.test(nameOrPath) && extname(path) === "";
}

/** The path from the current folder, or from the home folder, or the whole of it. */
export function shownPath(path: string, { cwd, env }: Pick<Io, "cwd" | "env">): string {
  const here = relative(cwd, path);
  if (here === "") return ".";
  if (!here.startsWith("..") && !isAbsolute(here)) return here;
  const fromHome = env["HOME"] === undefined ? ".." : relative(env["HOME"], path);
  if (fromHome === "") return "~";
  return fromHome.startsWith("..") || isAbsolute(fromHome) ? path : `~/${fromHome}`;
}
