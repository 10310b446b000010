// The profile of an external agent's session, as its session takes it (`takeProfile`): read once, before the session begins.
//
//   session-profile-1. A later change of the profile changes no session that has begun. Its MCP servers may hold keys, which may stand in no
//       journal and no argument. They are kept in a file for this user alone, named by its content.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { createPrivate, makePrivateFolder } from "@holdfast/runtime/internal";

import type { AgentProfile, PermissionRule } from "../agent-files/agent-record.ts";
import type { ExternalAgentProtocol, IntendedProfile } from "./external-agent-protocol.ts";

/** The beginning of the names of files with MCP servers. */
export const KEPT_SERVERS = "servers-";

export interface TakenProfile {
  readonly intended: IntendedProfile;
  readonly model: string | null;
  readonly permissionMode: string | null;
  readonly rules: readonly PermissionRule[];
}

/**
 * @param startable the agents that a profile may permit to start.
 * @throws HoldfastError `config_invalid` for a field that the program does not take, or an agent that is not there.
 */
export function takeProfile(
  profile: AgentProfile,
  protocol: Pick<ExternalAgentProtocol, "name" | "capabilities">,
  permissionModes: readonly string[],
  folder: string | undefined,
  startable: readonly string[],
): TakenProfile {
  const { name, agent, model = null, permissionMode = null, rules, settings, mcpServers, agents } = profile;
  const { model: takesModel, profileFields = [] } = protocol.capabilities();
  const refuse = (got: string, expected: string): HoldfastError =>
    new HoldfastError("config_invalid", `the profile "${name}" cannot be used with ${protocol.name}`, {
      got,
      expected,
      fix: "correct the profile, or use another one",
    });
  if (agent !== undefined && agent !== protocol.name)
    throw refuse(`agent: ${agent}`, `agent: ${protocol.name}`);
  if (model !== null && !takesModel)
    throw refuse("model", `no model, which ${protocol.name} takes from its own settings`);
  if (permissionMode !== null && !permissionModes.includes(permissionMode))
    throw refuse(`permissionMode: ${permissionMode}`, permissionModes.join(", "));
  for (const field of ["settings", "mcpServers"] as const)
    if (profile[field] !== undefined && !profileFields.includes(field))
      throw refuse(field, `no ${field}, which ${protocol.name} does not take from a profile`);
  const missing = agents?.find((one) => !startable.includes(one));
  if (missing !== undefined)
    throw refuse(`agents: ${missing}`, "names of external agents, which `holdfast doctor` lists");
  // An argument is readable by every process of the machine.
  if (settings !== undefined && "env" in settings)
    throw refuse("settings.env", "no variables in the settings");
  return {
    intended: {
      name,
      settings: settings === undefined ? null : JSON.stringify(settings),
      mcpFile: mcpServers === undefined ? null : keepServers(mcpServers, folder),
      ...(agents === undefined ? {} : { agents }),
    },
    model,
    permissionMode,
    rules,
  };
}

/** session-profile-1. */
function keepServers(mcpServers: Readonly<Record<string, unknown>>, folder: string | undefined): string {
  if (folder === undefined)
    throw new HoldfastError("config_invalid", "there is no folder to keep the MCP servers of a profile in", {
      expected: "the option `mirrors` of this agent",
      fix: "give the option, or take `mcpServers` out of the profile",
    });
  const text = `${JSON.stringify({ mcpServers }, null, 2)}\n`;
  const path = join(
    folder,
    `${KEPT_SERVERS}${createHash("sha256").update(text).digest("hex").slice(0, 32)}.json`,
  );
  makePrivateFolder(folder);
  if (!existsSync(path)) createPrivate(path, text);
  return path;
}
