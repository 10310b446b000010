// The profile of an external agent's session, as its session takes it (`takeProfile`): read once, before the
// session begins.
//
//   - A later change of the profile changes no session that has begun. Its MCP servers may hold keys, which
//     may stand in no journal and no argument. They are kept in a file for this user alone, named by its
//     content.
//   - The settings and the agents of a profile, its program and its variables are kept in the same way. A
//     record that names others, or other servers, was not made on this machine (`isKept`).

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defined, HoldfastError } from "@holdfast/core";
import { createPrivate, makePrivateFolder } from "@holdfast/system";

import type { AgentProfile, PermissionRule } from "@holdfast/agents";
import type { ExternalAgentProtocol, IntendedProfile } from "../external-agent-protocol.ts";
import { CHOSEN_FIELDS } from "../program/find-program.ts";

/** Files of profiles. No session renews them. */
export const KEPT_FILE = /^(servers|profile)-[\da-f]{32}\.json$/;

export interface TakenProfile {
  readonly intended: IntendedProfile;
  readonly model: string | null;
  readonly permissionMode: string | null;
  readonly rules: readonly PermissionRule[];
}

/**
 * @param startable the agents that a profile may permit to start.
 * @throws HoldfastError `config_invalid` for a field that the program does not take, or an agent that is not
 *   there.
 */
export function takeProfile(
  profile: AgentProfile,
  protocol: Pick<ExternalAgentProtocol, "name" | "capabilities">,
  permissionModes: readonly string[],
  folder: string | undefined,
  startable: readonly string[],
): TakenProfile {
  const { name, agent, model = null, permissionMode = null, rules, settings, mcpServers, agents } = profile;
  const { deletesSessions, program, variables, keys, folders } = profile;
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
  for (const field of ["settings", "mcpServers", ...CHOSEN_FIELDS] as const)
    if (profile[field] !== undefined && !profileFields.includes(field))
      throw refuse(field, `no ${field}, which ${protocol.name} does not take from a profile`);
  const missing = agents?.find((one) => !startable.includes(one));
  if (missing !== undefined)
    throw refuse(`agents: ${missing}`, "names of external agents, which `holdfast doctor` lists");
  // An argument is readable by every process of the machine.
  if (settings !== undefined && "env" in settings)
    throw refuse("settings.env", "no variables in the settings");
  const kept: KeptFields = {
    settings: settings === undefined ? null : JSON.stringify(settings),
    ...defined({ agents, deletesSessions, program, variables, keys, folders }),
  };
  if (needsKeeping(kept)) keep("profile", textOf(kept), folder);
  return {
    intended: {
      name,
      ...kept,
      mcpFile:
        mcpServers === undefined
          ? null
          : keep("servers", `${JSON.stringify({ mcpServers }, null, 2)}\n`, folder),
    },
    model,
    permissionMode,
    rules,
  };
}

export function isKept(profile: IntendedProfile, folder: string | undefined): boolean {
  const { mcpFile } = profile;
  if (!needsKeeping(profile) && mcpFile === null) return true;
  if (folder === undefined) return false;
  if (needsKeeping(profile) && !existsSync(pathOf("profile", textOf(profile), folder))) return false;
  if (mcpFile === null) return true;
  if (dirname(mcpFile) !== folder || !existsSync(mcpFile)) return false;
  return pathOf("servers", readFileSync(mcpFile, "utf8"), folder) === mcpFile;
}

type KeptFields = Omit<IntendedProfile, "name" | "mcpFile">;

/** Whether the profile gives its session something that no other session of the machine has. */
function needsKeeping({ settings, ...fields }: KeptFields): boolean {
  const { agents, deletesSessions, program, variables, keys, folders } = fields;
  const chosen = [agents, deletesSessions, program, variables, keys, folders];
  return settings !== null || chosen.some((field) => field !== undefined);
}

/** Fields that are absent are in no text. */
function textOf({ settings, agents = [], ...fields }: KeptFields): string {
  const { program, variables, keys, deletesSessions, folders } = fields;
  return JSON.stringify({ settings, agents, program, variables, keys, deletesSessions, folders });
}

/** @returns the path of the file. */
function keep(kind: KeptKind, text: string, folder: string | undefined): string {
  if (folder === undefined)
    throw new HoldfastError("config_invalid", `there is no folder to keep the ${kind} of a profile in`, {
      expected: "the option `mirrors` of this agent",
      fix: "give the option, or take the field out of the profile",
    });
  const path = pathOf(kind, text, folder);
  makePrivateFolder(folder);
  if (!existsSync(path)) createPrivate(path, text);
  return path;
}

type KeptKind = "servers" | "profile";

function pathOf(kind: KeptKind, text: string, folder: string): string {
  return join(folder, `${kind}-${createHash("sha256").update(text).digest("hex").slice(0, 32)}.json`);
}
