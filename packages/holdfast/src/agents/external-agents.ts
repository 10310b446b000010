// The external programs of this machine: the agent of one for a command that runs agents
// (`loadExternalAgent`), and the list of all.

import { chosenByProfile, externalNames, protocolOf } from "@holdfast/machine/programs";
import { type ExternalAgentCapabilities } from "@holdfast/programs";
import { isIncluded } from "@holdfast/programs/included-programs";
import { defined, HoldfastError } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import type { Io } from "@holdfast/terminal/frame/command";
import { agentPlaces, type AgentSearch } from "./agent-places.ts";
import { namedSecrets } from "@holdfast/terminal/secrets/supplied-secrets";
import { keyReachText } from "@holdfast/terminal/view/key-reach-text";
import { thisMachine } from "./this-machine.ts";

/**
 * The agent of an external program, after a look at the program.
 *
 * @param io `profile` is the name of a profile, which may choose the program.
 * @param isContinued the session has begun, and checks the program itself.
 * @throws HoldfastError when the program is missing or too old, or the profile cannot be used with this
 *   agent.
 */
export async function loadExternalAgent(
  name: string,
  { profile, ...io }: AgentSearch & { readonly profile?: string | undefined },
  isContinued: boolean,
): Promise<Agent> {
  const place = { places: agentPlaces(io), folder: io.cwd };
  const chosen = profile === undefined ? undefined : chosenByProfile(profile, name, place);
  const programs = await thisMachine(io).programs();
  if (!isContinued) await programs.check(name, place, chosen);
  return programs.agent(name, place);
}

export interface ExternalProgram {
  readonly name: string;
  readonly status: "ready" | "missing" | "refused";
  /** The version and abilities, or the problem. */
  readonly found: string;
  readonly fix?: string;
}

/** The programs that Holdfast can run as agents, whether they are there, and their abilities. */
export async function findExternalPrograms(io: Io): Promise<readonly ExternalProgram[]> {
  // Which program would get a stored key does not depend on its value.
  const stored = (await namedSecrets(io)).map(({ name }) => [name, "stored"]);
  const env = { ...Object.fromEntries(stored), ...io.env };
  return Promise.all(externalNames(agentPlaces(io)).map((name) => findProgram(name, { cwd: io.cwd, env })));
}

async function findProgram(name: string, io: Pick<Io, "cwd" | "env">): Promise<ExternalProgram> {
  try {
    const protocol = protocolOf(name, { places: agentPlaces(io), folder: io.cwd });
    const { version } = await protocol.find();
    const { resume, steer, followUp, usage } = protocol.capabilities();
    const access = protocol.keyAccess?.();
    const abilities = [
      resume === "none" ? "sessions end with their process" : "resumes sessions",
      MESSAGES[steer],
      ...(followUp === "queue" ? ["keeps messages for after its answer"] : []),
      usage === "none" ? "reports no usage" : `reports usage per ${usage}`,
      protocol.ownFolders?.() === undefined ? "works in no sandbox" : "works in a sandbox",
      ...(access === undefined ? [] : [keyReachText(access)]),
    ];
    return { name, status: "ready", found: `${name} ${version} (${abilities.join(", ")})` };
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    const { code, message, got, fix } = error;
    if (code === "program_missing" && isIncluded(name))
      return { name, status: "missing", found: `${name} is not installed` };
    const found = got === undefined ? message : `${message}: ${got}`;
    return { name, status: "refused", found, ...defined({ fix }) };
  }
}

const MESSAGES: Readonly<Record<ExternalAgentCapabilities["steer"], string>> = {
  inject: "takes messages while it works",
  restart: "is interrupted for a message",
  none: "takes no message while it works",
};
