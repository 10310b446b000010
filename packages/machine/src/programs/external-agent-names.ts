// The names of the external agents (`externalAgentName`), apart from their code, which loads slowly.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { INCLUDED_NAMES, isIncluded } from "@holdfast/programs/included-programs";
import { dataFolder, type Environment } from "@holdfast/system";
import { programOf } from "../agent-source.ts";

/** The folder and the variables of a call. */
export interface Place {
  readonly cwd: string;
  readonly env: Environment;
}

const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/** The external agent that an argument of `run` names. A file at this path in the folder counts more. */
export function externalAgentName(nameOrPath: string, { cwd, env }: Place): string | undefined {
  const program = programOf(nameOrPath);
  const name = program ?? nameOrPath;
  const isKnown = isIncluded(name) || isOfProfile(name, env["HOME"]) || isInstalled(name, { cwd, env });
  return isKnown && (program !== undefined || !existsSync(resolve(cwd, name))) ? name : undefined;
}

/** The names of all external agents: the included ones, those of profiles of the user, and the installed ones. */
export function externalAgentNames(io: Place): readonly string[] {
  const { HOME: home } = io.env;
  const profiles = home === undefined ? [] : namesIn(join(home, ".holdfast", "profiles"));
  return [
    ...INCLUDED_NAMES,
    ...profiles.map((file) => file.replace(/\.yaml$/, "")).filter((name) => isOfProfile(name, home)),
    ...namesIn(installedAgentsFolder(io)).filter((name) => isInstalled(name, io)),
  ];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // There is none that can be read.
  }
}

/** A look at the file alone. Its content is checked when the agent is made. */
function isOfProfile(name: string, home: string | undefined): boolean {
  if (home === undefined || !NAME.test(name)) return false;
  try {
    return /^(a2a|mcp|custom|harness)[ \t]*:/m.test(
      readFileSync(join(home, ".holdfast", "profiles", `${name}.yaml`), "utf8"),
    );
  } catch {
    return false; // There is none that can be read.
  }
}

/** The folder of the agents that the user installed from a registry. */
export function installedAgentsFolder({ env }: Pick<Place, "env">): string {
  return join(dataFolder({ env }), "external-agents");
}

function isInstalled(name: string, io: Place): boolean {
  return /^[a-z][a-z0-9-]*$/.test(name) && existsSync(join(installedAgentsFolder(io), name, "install.json"));
}
