// `namedAgents`: the agents that `--agents` of a runner or of the local stack names, as `holdfast run` names
// them. `filesOf`: the files that another option names.
//
// The text of an agent is that of its source, as sessions store it (`AgentSource`). `run` compares it with the
// agent that it has loaded. The runner loads it in the folder that its agents work in, wherever it was started.

import { extname, resolve } from "node:path";
import { NotFoundError } from "@holdfast/core";
import { agentSourceText, programOf } from "@holdfast/machine/agent-source";
import { externalAgentName } from "@holdfast/machine/external-agent-names";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { lookAtPath } from "@holdfast/terminal/frame/given-file";
import { agentPlaces, namesAgentFile } from "./agent-places.ts";

/**
 * @param project the folder that the agents work in. A name means an agent file of its project.
 * @throws NotFoundError, and HoldfastError for a name that two agents have.
 */
export async function namedAgents(args: Arguments, project: string, io: Io): Promise<readonly string[]> {
  const named: string[] = [];
  for (const given of args.texts("agents")) named.push(await sourceTextOf(given, project, io));
  return [...new Set(named)];
}

async function sourceTextOf(given: string, project: string, io: Io): Promise<string> {
  const places = agentPlaces(io, { project });
  const program = externalAgentName(given, io);
  if (program !== undefined) {
    if (programOf(given) === undefined)
      (await import("@holdfast/machine/programs")).refuseDoubledName(program, places);
    return agentSourceText({ kind: "program", name: program });
  }
  const isPath = extname(given) !== "" || typeof lookAtPath(resolve(io.cwd, given)) !== "string";
  if (isPath || !namesAgentFile(given, io.cwd)) return fileOf(given, "agents", io);
  return (await import("@holdfast/agents")).findAgent(given, places).source.path;
}

/** The files that an option names, by absolute paths. @throws NotFoundError */
export function filesOf(args: Arguments, option: string, io: Pick<Io, "cwd">): readonly string[] {
  return args.texts(option).map((given) => fileOf(given, option, io));
}

function fileOf(given: string, option: string, { cwd }: Pick<Io, "cwd">): string {
  const file = resolve(cwd, given);
  if (typeof lookAtPath(file) !== "string") return file;
  throw new NotFoundError("file_not_found", `there is no file ${given}`, {
    at: `--${option}`,
    fix: "check the path; it is taken from the current folder",
  });
}
