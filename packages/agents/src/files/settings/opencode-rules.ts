// `opencodeRules`: the rules of OpenCode's settings for an agent that has a file of its own.
//
//   - OpenCode takes the rules of the settings, then those of the agent, and the last that matches counts.
//     They are read as one list, in this order.
//   - Rules of a project that is not trusted only restrict. They are added on their own, and the strictest
//     counts. The same holds for what a layer of the project restricts, whatever a nearer one allows.

import { join } from "node:path";
import { z } from "zod";

import { layersOf, workFolderOf, type AgentPlaces } from "../../places/agent-places.ts";
import { globsInFolder } from "../../places/layered-glob.ts";
import { applyPermission, permission, permissionEntries, type Permissions } from "../dialects/opencode.ts";
import type { AgentDraft } from "../../format/agent-draft.ts";
import { ignored, refused, type Ruling } from "../../format/fields.ts";
import type { ProjectPath } from "../../places/project-inputs.ts";
import { readSettings, type SettingsFile } from "../../places/settings-file.ts";
import type { OutsideOptions, RuledField } from "./claude-rules.ts";

const PROJECT: readonly ProjectPath[] = [
  "opencode.json",
  "opencode.jsonc",
  ".opencode/opencode.json",
  ".opencode/opencode.jsonc",
];

/** The files with settings of OpenCode. A later one counts more. */
export function opencodeSettings(places: AgentPlaces): readonly SettingsFile[] {
  const { home, env } = places;
  const config = env["XDG_CONFIG_HOME"] || (home === undefined ? undefined : join(home, ".config"));
  const named = env["OPENCODE_CONFIG"] || undefined;
  const inFolder = (folder: string, names: readonly string[], owner: SettingsFile["owner"]) =>
    names.flatMap((name) => readSettings(join(folder, name), owner));
  const both = ["opencode.json", "opencode.jsonc"];
  return [
    ...(config === undefined ? [] : inFolder(join(config, "opencode"), ["config.json", ...both], "user")),
    ...(named === undefined ? [] : readSettings(named, "user")),
    ...layersOf(places)
      .toReversed()
      .flatMap(({ project }) =>
        PROJECT.flatMap((path) => readSettings(join(project, path), "project", undefined, project)),
      ),
    ...["/etc/opencode", "/Library/Application Support/opencode"].flatMap((folder) =>
      inFolder(folder, both, "managed"),
    ),
  ];
}

const switches = z.record(z.string(), z.boolean());
const settings = z.looseObject({ permission: permission.optional(), tools: switches.optional() });
const agentSettings = settings.extend({ disable: z.boolean().optional(), disabled: z.boolean().optional() });
const agents = z.record(z.string(), z.unknown()).optional();

/** The rules of the settings, in the order in which OpenCode reads them. */
interface Found {
  readonly all: Permissions;
  readonly entries: Permissions;
  readonly restrictions: Permissions;
  readonly fields: readonly RuledField[];
}

/**
 * Adds the rules of the settings and those of the agent's own file.
 *
 * @param own the fields of the agent's file. The result leaves out the fields that were read here.
 */
export function opencodeRules(
  files: readonly SettingsFile[],
  own: Readonly<Record<string, unknown>>,
  draft: AgentDraft,
  { places, isBelieved }: OutsideOptions,
): { readonly fields: readonly RuledField[]; readonly left: Readonly<Record<string, unknown>> } {
  const folder = workFolderOf(places);
  const nearest = files.findLast(({ layer }) => layer !== undefined)?.layer;
  const parts = ["of all agents", "of the agent"].flatMap((part) =>
    files.map((file) => {
      const found = rulesIn(file, part === "of the agent" ? draft.name : undefined, isBelieved(file), folder);
      return file.layer === undefined || file.layer === nearest
        ? found
        : { ...found, restrictions: restrictionsOf(found.all) };
    }),
  );
  const found: Omit<Found, "all"> = {
    entries: parts.flatMap(({ entries }) => entries),
    restrictions: parts.flatMap(({ restrictions }) => restrictions),
    fields: parts.flatMap(({ fields }) => fields),
  };
  const ownRules = settings.safeParse(own);
  if (!ownRules.success || (found.entries.length === 0 && found.restrictions.length === 0))
    return { fields: found.fields, left: own };
  const { permission: _permission, tools: _tools, ...left } = own;
  const rulings: Ruling[] = [
    applyPermission([...found.entries, ...entriesOf(ownRules.data)], draft),
    ...(found.restrictions.length === 0 ? [] : [applyPermission(found.restrictions, draft)]),
  ];
  const [file] = files;
  const fields = rulings.flatMap((ruling) =>
    file === undefined ? [] : [{ file, field: "permission", ruling }],
  );
  return { fields: [...found.fields, ...fields], left };
}

/** @param agent the name of an agent, for its own part of the file. */
function rulesIn(file: SettingsFile, agent: string | undefined, isBelieved: boolean, folder: string): Found {
  const refuse = (field: string, text: string): Found => ({
    all: [],
    entries: [],
    restrictions: [],
    fields: [{ file, field, ruling: refused(text) }],
  });
  if (file.problem !== undefined) return refuse("permission", file.problem);
  const given = agent === undefined ? file.values : partOf(file.values, agent);
  if (given === undefined) return { all: [], entries: [], restrictions: [], fields: [] };
  const field = agent === undefined ? "permission" : `agent.${agent}`;
  const read = agentSettings.safeParse(given);
  if (!read.success) return refuse(field, z.prettifyError(read.error));
  if (agent !== undefined && (read.data.disable === true || read.data.disabled === true))
    return refuse(`${field}.disable`, "the agent is switched off");
  const all = entriesOf(read.data).map(
    ([tool, value]) => [tool, inLayer(value, file.layer, folder)] as const,
  );
  const others = agent === undefined ? [] : Object.keys(given as object).filter((name) => !READ.has(name));
  const fields = others.map((name) => ({
    file,
    field: `${field}.${name}`,
    ruling: LIMITS.has(name)
      ? refused("it limits the agent, and only the agent's own file can say it; write it there")
      : ignored("the agent's own file says it"),
  }));
  return isBelieved
    ? { all, entries: all, restrictions: [], fields }
    : { all, entries: [], restrictions: restrictionsOf(all), fields };
}

/** A restriction of paths of a layer further out also means the place below that layer. */
function inLayer(
  value: Permissions[number][1],
  layer: string | undefined,
  folder: string,
): Permissions[number][1] {
  if (typeof value === "string" || layer === undefined || layer === folder) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([pattern, decision]) => {
      const isRestricted = decision !== "allow" && pattern.includes("/");
      const further = isRestricted ? globsInFolder(join(layer, pattern), folder) : [];
      return [pattern, ...further].map((one) => [one, decision] as const);
    }),
  );
}

const READ: ReadonlySet<string> = new Set(["permission", "tools", "disable", "disabled"]);
const LIMITS: ReadonlySet<string> = new Set(["steps", "maxSteps"]);

function partOf(values: Readonly<Record<string, unknown>>, agent: string): unknown {
  for (const name of ["agent", "agents", "mode"]) {
    const read = agents.safeParse(values[name]);
    if (!read.success) continue;
    if (read.data !== undefined && Object.hasOwn(read.data, agent)) return read.data[agent];
  }
  return undefined;
}

function entriesOf({ permission: rules, tools = {} }: z.output<typeof settings>): Permissions {
  const denied = Object.entries(tools).filter(([, isOffered]) => !isOffered);
  return [
    ...denied.map(([tool]) => [tool, "deny"] as const),
    ...(rules === undefined ? [] : permissionEntries(rules)),
  ];
}

function restrictionsOf(entries: Permissions): Permissions {
  return entries.flatMap(([tool, value]): Permissions => {
    if (typeof value === "string") return value === "allow" ? [] : [[tool, value]];
    const kept = Object.entries(value).filter(([, action]) => action !== "allow");
    return kept.length === 0 ? [] : [[tool, Object.fromEntries(kept)]];
  });
}
