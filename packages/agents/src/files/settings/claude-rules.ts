// `claudeRules`: the permissions of Claude Code's settings, for its agents.
//
//   - The rules of all files count together: managed settings, those of the user, and those of the project.
//   - A path begins at the folder of the project. `/` is the folder of the settings, `~/` that of the user,
//     and `//` the root. A name without a folder is one in any folder.

import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { z } from "zod";

import type { AgentPlaces } from "../../places/agent-places.ts";
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
export function claudeSettings({ project, home, env }: AgentPlaces): readonly SettingsFile[] {
  const own = userClaudeSettings(home, env);
  return [
    ...MANAGED_SETTINGS.flatMap((path) => readSettings(path, "managed")),
    ...PROJECT.toReversed()
      .map((path) => join(project, path))
      .filter((path) => path !== own)
      .flatMap((path) => readSettings(path, "project")),
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

export interface ClaudeRulesOptions {
  readonly places: AgentPlaces;
  /** Whether rules of a file that allow calls count. */
  readonly isBelieved: (file: SettingsFile) => boolean;
}

/** Adds the rules to an agent. */
export function claudeRules(
  files: readonly SettingsFile[],
  draft: AgentDraft,
  options: ClaudeRulesOptions,
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
  { isBelieved }: ClaudeRulesOptions,
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
  options: ClaudeRulesOptions,
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
  { path, owner }: SettingsFile,
  { places }: ClaudeRulesOptions,
): readonly (readonly [tool: string, glob: string])[] | undefined {
  const tool = Object.hasOwn(PATH_TOOLS, name) ? PATH_TOOLS[name] : undefined;
  if (tool === undefined) return undefined;
  const outer = owner === "project" ? places.project : dirname(path);
  const globs = globsOf(pattern.trim(), outer, places);
  return globs.flatMap((glob) =>
    (glob === "*" ? toolsLike(tool) : [tool]).map((one) => [one, glob] as const),
  );
}

function globsOf(pattern: string, outer: string, { project, home }: AgentPlaces): readonly string[] {
  if (/^(\.?\/?(\*\*?)?)$/.test(pattern) || (pattern.startsWith("~/") && home === undefined)) return ["*"];
  const rooted = pattern.startsWith("//")
    ? pattern.slice(1)
    : pattern.startsWith("~/")
      ? `${home}${pattern.slice(1)}`
      : pattern.startsWith("/")
        ? `${outer}${pattern}`
        : undefined;
  const inside = rooted === undefined ? pattern.replace(/^(\.\/)+/, "") : insideOf(rooted, project);
  if (inside === undefined) return ["*"];
  const base = inside.replace(/\/(\*\*\/?)?$/, "");
  if (base === "") return ["*"];
  const isName = rooted === undefined && !base.includes("/");
  const places = isName ? [base, `**/${base}`] : [base];
  return places.flatMap((one) => [one, `${one}/**`]);
}

/**
 * The pattern from the folder of the project; a place elsewhere stays as it is. @returns nothing for a
 * pattern that covers the project.
 */
function insideOf(rooted: string, project: string): string | undefined {
  const fixed = /^[^*?[{]*/.exec(rooted)?.[0] ?? "";
  const folder = fixed === rooted ? rooted : fixed.slice(0, fixed.lastIndexOf("/") + 1) || "/";
  const way = relative(project, folder);
  const isInside = way === "" || (!way.startsWith("..") && !isAbsolute(way));
  if (isInside) return `${way.split(sep).join("/")}${way === "" ? "" : "/"}${rooted.slice(folder.length)}`;
  const covers = `${project}/`.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
  return covers ? undefined : rooted;
}
