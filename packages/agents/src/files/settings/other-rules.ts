// `otherRules`: the rules outside of agent files of Codex, Gemini CLI and GitHub Copilot.
//
//   - A rule of a form that is not read here refuses the agents of its tool.
//   - Rules that allow calls are not taken over, since Holdfast asks where no rule decides.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import * as toml from "smol-toml";
import { z } from "zod";

import { layersOf, namesIn, workFolderOf, type AgentPlaces } from "../../places/agent-places.ts";
import { globsInFolder } from "../../places/layered-glob.ts";
import type { PermissionDecision } from "../../record/agent-record.ts";
import { denyChanges } from "../dialects/dialect.ts";
import { GEMINI_TOOLS } from "../dialects/gemini.ts";
import { addRule, denyTools, type AgentDraft } from "../../format/agent-draft.ts";
import { mapped, refused, type Ruling } from "../../format/fields.ts";
import type { ToolNames } from "../../record/tool-names.ts";
import { ruleTools } from "../../format/tool-rules.ts";
import type { ProjectPath } from "../../places/project-inputs.ts";
import type { RuledField } from "./claude-rules.ts";
import { readSettings, type SettingsFile, type SettingsOwner } from "../../places/settings-file.ts";

const parseToml = (text: string): Readonly<Record<string, unknown>> => toml.parse(text);

/** @param own the fields of the agent's file. */
export function otherRules(
  dialect: "codex" | "gemini" | "copilot",
  places: AgentPlaces,
  own: Readonly<Record<string, unknown>>,
  draft: AgentDraft,
): readonly RuledField[] {
  switch (dialect) {
    case "codex":
      return codexRules(places, own, draft);
    case "gemini":
      return geminiRules(places, draft);
    case "copilot":
      return copilotRules(places, draft);
  }
}

/** The folder of a tool for the project, for the user and for all of the machine. */
function foldersOf(
  places: AgentPlaces,
  name: ProjectPath,
  machine: string,
  ofUser?: string,
): readonly (readonly [folder: string, owner: SettingsOwner])[] {
  const { home } = places;
  const user = ofUser ?? (home === undefined ? undefined : join(home, name));
  return [
    ...layersOf(places).map(({ project }) => [join(project, name), "project"] as const),
    ...(user === undefined ? [] : ([[user, "user"]] as const)),
    [machine, "managed"],
  ];
}

type Folders = ReturnType<typeof foldersOf>;

function settingsIn(
  folders: Folders,
  names: readonly string[],
  parse?: (text: string, name: string) => Readonly<Record<string, unknown>>,
): readonly SettingsFile[] {
  return folders.flatMap(([folder, owner]) =>
    names.flatMap((name) => readSettings(join(folder, name), owner, parse)),
  );
}

function filesBelow(folders: Folders, folder: string, ending: string): Folders {
  return folders.flatMap(([outer, owner]) =>
    namesIn(join(outer, folder)).flatMap((name) =>
      name.endsWith(ending) ? [[join(outer, folder, name), owner] as const] : [],
    ),
  );
}

/** The verdict on a field of each file; nothing where the file has no such rule. */
function ruled(
  files: readonly SettingsFile[],
  field: string,
  rule: (values: Readonly<Record<string, unknown>>, file: SettingsFile) => Ruling | undefined,
): readonly RuledField[] {
  return files.flatMap((file) => {
    const ruling = file.problem === undefined ? rule(file.values, file) : refused(file.problem);
    return ruling === undefined ? [] : [{ file, field, ruling }];
  });
}

function codexRules(
  places: AgentPlaces,
  own: Readonly<Record<string, unknown>>,
  draft: AgentDraft,
): readonly RuledField[] {
  const folders = foldersOf(places, ".codex", "/etc/codex", places.env["CODEX_HOME"] || undefined);
  const files = settingsIn(folders, ["config.toml", "managed_config.toml", "requirements.toml"], parseToml);
  const rules = filesBelow(folders, "rules", ".rules").flatMap(([path, owner]) =>
    readSettings(path, owner, (text) => ({ rules: text })),
  );
  return [
    ...ruled(files, "sandbox_mode", ({ sandbox_mode: mode, allowed_sandbox_modes: allowed }) => {
      const isOnly = Array.isArray(allowed) && allowed.every((one) => one === "read-only");
      const isDefault = mode === "read-only" && own["sandbox_mode"] === undefined;
      return isOnly || isDefault ? mapped(denyChanges(draft)) : undefined;
    }),
    ...ruled(rules, "rules", ({ rules: text }) => prefixRules(String(text), draft)),
  ];
}

const CODEX_DECISIONS: Readonly<Record<string, PermissionDecision | undefined>> = {
  forbidden: "deny",
  prompt: "ask",
};
const words = z.array(z.union([z.string().min(1), z.array(z.string().min(1)).min(1)])).min(1);

/** `prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "forbidden")`. */
function prefixRules(text: string, draft: AgentDraft): Ruling | undefined {
  const plain = text.replaceAll(/("(?:\\.|[^"\\\n])*"?)|#[^\n]*/g, (_found, quoted?: string) => quoted ?? "");
  const said: string[] = [];
  const rest = plain.replaceAll(
    /\bprefix_rule\s*\(((?:"(?:\\.|[^"\\\n])*"|[^"()])*)\)/g,
    (whole, inner: string) => {
      const pattern = /\bpattern\s*=\s*(\[(?:"(?:\\.|[^"\\])*"|[^"[\]]|\[[^\]]*\])*\])/.exec(inner)?.[1];
      const decision = /\bdecision\s*=\s*"(\w+)"/.exec(inner)?.[1] ?? "allow";
      const read = words.safeParse(parsedJson(pattern?.replaceAll(/,\s*(?=\])/g, "")));
      if (!read.success || !["allow", "prompt", "forbidden"].includes(decision)) return whole;
      const mappedTo = CODEX_DECISIONS[decision];
      if (mappedTo === undefined) return "";
      for (const prefix of combinations(read.data)) {
        addRule(draft, mappedTo, "shell", `${prefix}:*`);
        said.push(`${mappedTo} shell(${prefix}:*)`);
      }
      return "";
    },
  );
  if (rest.trim() !== "") return refused(`it is not read: ${rest.trim().slice(0, 100)}`);
  return said.length === 0 ? undefined : mapped(said.join("; "));
}

function combinations(steps: z.output<typeof words>): readonly string[] {
  const quoted = (word: string): string =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return steps
    .map((step) => [step].flat().map(quoted))
    .reduce((before, step) => before.flatMap((one) => step.map((word) => `${one} ${word}`.trim())), [""]);
}

function parsedJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

const names = z.union([z.string(), z.array(z.string())]).transform((one) => [one].flat());
const geminiTools = z.looseObject({ exclude: names.optional(), core: names.optional() });
const geminiSettings = z.looseObject({
  tools: geminiTools.optional(),
  excludeTools: names.optional(),
  coreTools: names.optional(),
});
const policy = z.looseObject({
  rule: z
    .array(
      z.looseObject({
        toolName: names.optional(),
        commandPrefix: names.optional(),
        decision: z.enum(["allow", "deny", "ask_user"]),
      }),
    )
    .default([]),
});

/** The tools that a rule for a tool of Gemini CLI restricts. Differences of git show the contents of files, too. */
const RESTRICTED: ToolNames = {
  ...GEMINI_TOOLS,
  read_file: ["read_file", "git_diff"],
  read_many_files: ["read_file", "git_diff"],
};

function geminiRules(places: AgentPlaces, draft: AgentDraft): readonly RuledField[] {
  const folders = foldersOf(places, ".gemini", "/etc/gemini-cli");
  const policies = filesBelow(folders, "policies", ".toml").flatMap(([path, owner]) =>
    readSettings(path, owner, parseToml),
  );
  return [
    ...ruled(settingsIn(folders, ["settings.json", "system-defaults.json"]), "tools", (values) => {
      const read = geminiSettings.safeParse(values);
      if (!read.success) return refused(z.prettifyError(read.error));
      const excluded = [...(read.data.tools?.exclude ?? []), ...(read.data.excludeTools ?? [])];
      const core = read.data.tools?.core ?? read.data.coreTools;
      const said = [
        ...excluded.map((text) => geminiRule(text, "deny", draft)),
        ...(core === undefined ? [] : [onlyCore(core, draft)]),
      ];
      return said.length === 0 ? undefined : mapped(said.join("; "));
    }),
    ...ruled(policies, "rule", (values) => {
      const read = policy.safeParse(values);
      if (!read.success) return refused(z.prettifyError(read.error));
      const said = read.data.rule.flatMap(({ toolName, commandPrefix, decision }) => {
        if (decision === "allow") return [];
        const rule = decision === "deny" ? "deny" : "ask";
        const tools =
          toolName ?? (commandPrefix === undefined ? Object.keys(GEMINI_TOOLS) : ["run_shell_command"]);
        return tools.flatMap((tool) =>
          (commandPrefix ?? [""]).map((prefix) =>
            geminiRule(prefix === "" ? tool : `${tool}(${prefix})`, rule, draft),
          ),
        );
      });
      return said.length === 0 ? undefined : mapped(said.join("; "));
    }),
  ];
}

function geminiRule(text: string, decision: PermissionDecision, draft: AgentDraft): string {
  const [, tool = text, prefix] = /^([^()]+)\((.*)\)$/s.exec(text) ?? [];
  const server = /^mcp_([^_]+)_(.+)$/.exec(tool);
  const name = server === null ? tool : `mcp__${server[1]}__${server[2]}`;
  const given = prefix === undefined ? name : `${name}(${prefix.replace(/(:\*|\s*\*)?$/, ":*")})`;
  const [verdict, said = ""] = ruleTools([given], decision, RESTRICTED, draft);
  return verdict === "refused" ? `${text} concerns no tool of Holdfast` : said;
}

/** Tools that the list does not name, or names with a pattern, are denied. */
function onlyCore(core: readonly string[], draft: AgentDraft): string {
  const kept = core.flatMap((name) => RESTRICTED[name] ?? []);
  const denied = [...new Set(Object.values(RESTRICTED).flatMap((own) => own ?? []))].filter(
    (tool) => !kept.includes(tool),
  );
  denyTools(draft, denied);
  return `deny ${denied.join(", ")}`;
}

const approvals = z.record(z.string(), z.unknown()).optional();
const vscode = z.looseObject({
  "chat.tools.terminal.autoApprove": approvals,
  "chat.tools.edits.autoApprove": approvals,
});

function copilotRules(places: AgentPlaces, draft: AgentDraft): readonly RuledField[] {
  const { home } = places;
  const user = home === undefined ? [] : [".config/Code/User", "Library/Application Support/Code/User"];
  const folders: Folders = [
    ...layersOf(places).map(({ project }) => [join(project, ".vscode"), "project"] as const),
    ...user.map((folder) => [join(home ?? "", folder), "user"] as const),
  ];
  const files = settingsIn(
    folders.filter(([folder]) => existsSync(folder)),
    ["settings.json"],
  );
  return ruled(files, "chat.tools", (values, { path: file, owner }) => {
    const read = vscode.safeParse(values);
    if (!read.success) return refused(z.prettifyError(read.error));
    const asked = (given: z.output<typeof approvals>): readonly string[] =>
      Object.entries(given ?? {}).flatMap(([key, value]) => (isDenial(value) ? [key] : []));
    const commands = asked(read.data["chat.tools.terminal.autoApprove"]);
    const layer = dirname(dirname(file));
    const folder = workFolderOf(places);
    const paths = asked(read.data["chat.tools.edits.autoApprove"]).flatMap((path) =>
      owner === "project" && layer !== folder ? [path, ...globsInFolder(join(layer, path), folder)] : [path],
    );
    for (const command of commands)
      addRule(draft, "ask", "shell", command.startsWith("/") ? "*" : `${command}:*`);
    for (const path of paths) addRule(draft, "ask", "edit_file", path);
    const said = [
      ...commands.map((one) => `ask shell(${one})`),
      ...paths.map((one) => `ask edit_file(${one})`),
    ];
    return said.length === 0 ? undefined : mapped(said.join("; "));
  });
}

function isDenial(value: unknown): boolean {
  return (
    value === false ||
    (typeof value === "object" && value !== null && "approve" in value && value.approve === false)
  );
}
