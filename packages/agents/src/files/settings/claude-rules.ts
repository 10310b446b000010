// `claudeRules`: the permissions of Claude Code's settings, for its agents.
//
//   - The rules of all files count together: managed settings, those of the user, and those of the project.
//   - A path begins at the folder of the session, or of a layer above it. `/` is the folder of the settings,
//     `~/` that of the user, and `//` the root. A name without a folder is one in any folder.

import { dirname, join } from "node:path";
import { z } from "zod";

import { layersOf, workFolderOf, type AgentPlaces } from "../../places/agent-places.ts";
import { globsInFolder } from "../../places/layered-glob.ts";
import type { PermissionDecision } from "../../record/agent-record.ts";
import { denyChanges } from "../dialects/dialect.ts";
import { toolsLike } from "../../permissions/permissions.ts";
import { addRule, type AgentDraft } from "../../format/agent-draft.ts";
import type { Ruling } from "../../format/fields.ts";
import { ignored, mapped, refused } from "../../format/fields.ts";
import { CLAUDE_TOOLS } from "../../record/tool-names.ts";
import { ruleTools } from "../../format/tool-rules.ts";
import type { ProjectPath } from "../../places/project-inputs.ts";
import {
  MANAGED_SETTINGS,
  readSettings,
  userClaudeSettings,
  type SettingsFile,
} from "../../places/settings-file.ts";

const PROJECT: readonly ProjectPath[] = [".claude/settings.json", ".claude/settings.local.json"];

/** The files with settings of Claude Code, those that count most first. */
export function claudeSettings(places: AgentPlaces): readonly SettingsFile[] {
  const { home, env } = places;
  const own = userClaudeSettings(home, env);
  return [
    ...MANAGED_SETTINGS.flatMap((path) => readSettings(path, "managed")),
    ...layersOf(places).flatMap(({ project }) =>
      PROJECT.toReversed()
        .map((path) => join(project, path))
        .filter((path) => path !== own)
        .flatMap((path) => readSettings(path, "project", undefined, project)),
    ),
    ...(own === undefined ? [] : readSettings(own, "user")),
  ];
}

const texts = z.array(z.string()).default([]);
const permissions = z.looseObject({
  allow: texts,
  ask: texts,
  deny: texts,
  defaultMode: z.string().optional(),
  additionalDirectories: z.array(z.string()).optional(),
});

/** One verdict on each field of the permissions of a file. */
export interface RuledField {
  readonly file: SettingsFile;
  readonly field: string;
  readonly ruling: Ruling;
}

export interface OutsideOptions {
  readonly places: AgentPlaces;
  /** Whether rules of a file that allow calls count. */
  readonly isBelieved: (file: SettingsFile) => boolean;
}

/** Adds the rules to an agent. */
export function claudeRules(
  files: readonly SettingsFile[],
  draft: AgentDraft,
  options: OutsideOptions,
): readonly RuledField[] {
  const isManagedOnly = files.some(
    ({ owner, values }) => owner === "managed" && values["allowManagedPermissionRulesOnly"] === true,
  );
  let hasMode = false;
  return files.flatMap((file): readonly RuledField[] => {
    const said = (field: string, ruling: Ruling): RuledField => ({ file, field, ruling });
    if (file.problem !== undefined) return [said("permissions", refused(file.problem))];
    if (file.values["permissions"] === undefined) return [];
    const read = permissions.safeParse(file.values["permissions"]);
    if (!read.success) return [said("permissions", refused(z.prettifyError(read.error)))];
    const { allow, ask, deny, defaultMode, additionalDirectories } = read.data;
    const found: RuledField[] = [];
    for (const [decision, rules] of [
      ["deny", deny],
      ["ask", ask],
    ] as const)
      if (rules.length > 0)
        found.push(said(`permissions.${decision}`, addRules(rules, decision, draft, file, options)));
    if (allow.length > 0) {
      const why = whyNotAllowed(file, isManagedOnly, options);
      found.push(said("permissions.allow", why ?? addRules(allow, "allow", draft, file, options)));
    }
    if (defaultMode !== undefined && !hasMode)
      found.push(said("permissions.defaultMode", modeOf(defaultMode, draft)));
    hasMode ||= defaultMode !== undefined;
    if (additionalDirectories !== undefined)
      found.push(said("permissions.additionalDirectories", ignored("no file tool leaves the workspace")));
    return found;
  });
}

function whyNotAllowed(
  file: SettingsFile,
  isManagedOnly: boolean,
  { isBelieved }: OutsideOptions,
): Ruling | undefined {
  if (isManagedOnly && file.owner !== "managed") return ignored("the managed settings allow no other rules");
  if (!isBelieved(file))
    return ignored(
      "you have not trusted this project with this file; its rules that forbid or ask count all the same",
    );
  return undefined;
}

/** Modes that restrict. Others would permit more, and an agent's own `permissionMode` says so. */
function modeOf(mode: string, draft: AgentDraft): Ruling {
  if (mode === "plan") {
    draft.planFirst = true;
    return mapped("only tools that read run until a person has approved a plan");
  }
  if (mode === "dontAsk") return mapped(denyChanges(draft));
  return ignored(
    "it restricts nothing; `permissionMode` of the agent file says what runs without a question",
  );
}

function addRules(
  rules: readonly string[],
  decision: PermissionDecision,
  draft: AgentDraft,
  file: SettingsFile,
  options: OutsideOptions,
): Ruling {
  const said: string[] = [];
  for (const text of rules.map((rule) => rule.trim())) {
    const [, name = text, pattern] = /^([^()]+)\((.*)\)$/s.exec(text) ?? [];
    const paths = decision === "allow" ? undefined : pathRule(name, pattern ?? "*", file, options);
    if (paths !== undefined) {
      for (const [tool, glob] of paths) addRule(draft, decision, tool, glob);
      said.push(...paths.map(([tool, glob]) => `${decision} ${tool}(${glob})`));
      continue;
    }
    if (name === "Task" || name === "Agent") {
      if (decision !== "allow" && pattern !== undefined && !draft.agents.includes("*")) {
        draft.agents = draft.agents.filter((agent) => agent !== pattern);
        said.push(`${pattern} is not started`);
        continue;
      }
    }
    const [verdict, told = ""] = ruleTools([text], decision, CLAUDE_TOOLS, draft);
    said.push(verdict === "refused" ? `${text} concerns no tool of Holdfast` : told);
  }
  return mapped(said.join("; "));
}

/** The first tool of each kind. Rules for it hold for the others that do the same. */
const PATH_TOOLS: Readonly<Record<string, string>> = {
  Read: "read_file",
  Grep: "read_file",
  Glob: "read_file",
  LS: "read_file",
  Edit: "edit_file",
  MultiEdit: "edit_file",
  Write: "edit_file",
  NotebookEdit: "edit_file",
};

/** @returns nothing for a rule that is no path of a file tool. */
function pathRule(
  name: string,
  pattern: string,
  { path, layer }: SettingsFile,
  { places }: OutsideOptions,
): readonly (readonly [tool: string, glob: string])[] | undefined {
  const tool = Object.hasOwn(PATH_TOOLS, name) ? PATH_TOOLS[name] : undefined;
  if (tool === undefined) return undefined;
  const globs = globsOf(pattern.trim(), layer ?? dirname(path), layer, places);
  return globs.flatMap((glob) =>
    (glob === "*" ? toolsLike(tool) : [tool]).map((one) => [one, glob] as const),
  );
}

function globsOf(
  pattern: string,
  outer: string,
  layer: string | undefined,
  places: AgentPlaces,
): readonly string[] {
  const { home } = places;
  if (/^(\.?\/?(\*\*?)?)$/.test(pattern) || (pattern.startsWith("~/") && home === undefined)) return ["*"];
  const rooted = pattern.startsWith("//")
    ? pattern.slice(1)
    : pattern.startsWith("~/")
      ? `${home}${pattern.slice(1)}`
      : pattern.startsWith("/")
        ? `${outer}${pattern}`
        : undefined;
  const folder = workFolderOf(places);
  if (rooted !== undefined) return globsInFolder(rooted, folder).flatMap(withBelow);
  const plain = pattern.replace(/^(\.\/)+/, "");
  const isName = !plain.replace(/\/(\*\*\/?)?$/, "").includes("/");
  // A pattern of a layer further out also means the place below that layer.
  const further = layer === undefined || layer === folder ? [] : globsInFolder(join(layer, plain), folder);
  return [...new Set([plain, ...(isName ? [`**/${plain}`] : []), ...further].flatMap(withBelow))];
}

/** The patterns of a place and of everything below it. */
function withBelow(pattern: string): readonly string[] {
  const base = pattern.replace(/\/(\*\*\/?)?$/, "");
  return base === "" || base === "*" ? ["*"] : [base, `${base}/**`];
}
