// `baseValuesOf`: the values of the base environment for an MCP server that is looked at without a session.

import { dirname } from "node:path";
import { readEnvironments, serverEnvironment, type AgentPlaces, environmentsBeside } from "@holdfast/agents";
import { variablesOfServer } from "@holdfast/mcp";
import { signInStore } from "@holdfast/machine/sign-in-store";

type Server = Parameters<typeof variablesOfServer>[0];

const NO_AGENT = { name: "", environments: [], secrets: [], source: { path: "" } };

/** A secret without a value is left out: the error about its placeholder names it. */
export async function baseValuesOf(
  server: Server,
  { trustFile, env }: Pick<AgentPlaces, "trustFile" | "env">,
): Promise<{ readonly values: Record<string, string>; readonly secrets: Record<string, string> }> {
  const environments = readEnvironments(environmentsBeside(trustFile));
  const found = serverEnvironment(NO_AGENT, environments, undefined, variablesOfServer(server));
  const secrets: Record<string, string> = {};
  for (const name of found.secrets) {
    const value = env[name] ?? (await signInStore(dirname(trustFile), { env }).read(name));
    if (value !== undefined) secrets[name] = value;
  }
  return { values: { ...found.values }, secrets };
}
