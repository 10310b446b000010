// `findCommands`: the commands of a conversation (`/name arguments`) in files of other tools, and the skills that
// a person may use. `expandCommand` makes the message of one.
//
//   - A command is a text that a person sends. It gives no right: its `allowed-tools`, model and agent have no
//     effect, and the agent's own tools and approvals hold.
//   - Nothing in it is carried out. A shell command behind `!` and a file behind `@` stay in the text. The agent
//     runs and reads what it may.
//   - Files of a project count when the user trusts the project. They lie inside of it, also behind links.
//   - The nearest layer of a project goes first, the project before the user, and then the order of `FOLDERS`. A skill goes before a command of its
//     name. A command of a project without trust hides no other one.

import { dirname, join, relative, sep } from "node:path";
import { parse, TomlError } from "smol-toml";
import { FileProblem, readText } from "../format/front-matter.ts";
import {
  filesIn,
  homesOfTools,
  layerOf,
  layersOf,
  realPath,
  requireInside,
  type AgentPlaces,
} from "../places/agent-places.ts";
import type { ProjectPath } from "../places/project-inputs.ts";
import { findSkills } from "../skills/find-skills.ts";
import { readSkillText } from "../skills/skill-fields.ts";
import { isTrusted } from "../trust/trusted-folders.ts";
import { filledIn, type CommandTool } from "./fill-arguments.ts";

export interface TypedCommand {
  /** The name behind the slash. Folders are parts of it, as in `git:commit`. */
  readonly name: string;
  readonly tool: CommandTool;
  readonly path: string;
  readonly scope: "project" | "user";
  /** Whether the user trusts the project of the file. */
  readonly isTrusted: boolean;
}

interface CommandFolder {
  readonly path: string;
  readonly tool: CommandTool;
}

const FOLDERS: readonly (readonly [folder: ProjectPath, tool: CommandTool])[] = [
  [".claude/commands", "claude"],
  [".opencode/commands", "opencode"],
  [".opencode/command", "opencode"],
  [".gemini/commands", "gemini"],
  [".github/prompts", "copilot"],
];

const ENDINGS: Readonly<Record<CommandTool, string>> = {
  skill: "SKILL.md",
  claude: ".md",
  opencode: ".md",
  codex: ".md",
  gemini: ".toml",
  copilot: ".prompt.md",
};

/** Fields that would give a command rights, or a model or an agent of its own. They have no effect. */
const WITHOUT_EFFECT = ["allowed-tools", "tools", "model", "agent", "mode", "subtask", "context", "hooks"];

/** The first command of each name. @throws HoldfastError `config_invalid` */
export function findCommands(places: AgentPlaces): readonly TypedCommand[] {
  const { home, env } = places;
  const skills = findSkills(places)
    .filter(({ status, scope, isForPeople }) => status === "loaded" && scope !== "coordinator" && isForPeople)
    .map(({ name, path, scope }): TypedCommand => ({
      name,
      tool: "skill",
      path,
      scope: scope === "project" ? "project" : "user",
      isTrusted: true,
    }));
  const found = [
    ...skills,
    ...layersOf(places).flatMap(commandsOfLayer),
    ...foldersOfUser(home, env).flatMap((folder) => commandsIn(folder, "user", true)),
  ];
  const all = found.toSorted((a, b) => Number(b.isTrusted) - Number(a.isTrusted));
  const first = new Map(all.toReversed().map((command) => [command.name, command] as const));
  return all.filter((command) => first.get(command.name) === command);
}

function commandsOfLayer({
  project,
  home,
  trustFile,
  trustsProject = false,
}: AgentPlaces): readonly TypedCommand[] {
  if (home !== undefined && realPath(home) === realPath(project)) return [];
  const isOwn = trustsProject || isTrusted(trustFile, project);
  return FOLDERS.flatMap(([path, tool]) => commandsIn({ path: join(project, path), tool }, "project", isOwn));
}

/** The command of this name, or the only one whose last part it is. */
export function commandNamed(wanted: string, commands: readonly TypedCommand[]): TypedCommand | undefined {
  const trusted = commands.filter((command) => command.isTrusted);
  return namedAmong(wanted, trusted) ?? namedAmong(wanted, commands);
}

function namedAmong(wanted: string, commands: readonly TypedCommand[]): TypedCommand | undefined {
  const exact = commands.find(({ name }) => name === wanted);
  if (exact !== undefined) return exact;
  const [only, ...others] = commands.filter(({ name }) => name.endsWith(`:${wanted}`));
  return others.length === 0 ? only : undefined;
}

function foldersOfUser(home: string | undefined, env: AgentPlaces["env"]): readonly CommandFolder[] {
  if (home === undefined) return [];
  const homes = homesOfTools(home, env);
  return [
    { path: join(homes.claude, "commands"), tool: "claude" },
    { path: join(homes.opencode, "commands"), tool: "opencode" },
    { path: join(homes.opencode, "command"), tool: "opencode" },
    { path: join(homes.codex, "prompts"), tool: "codex" },
    { path: join(homes.gemini, "commands"), tool: "gemini" },
  ];
}

function commandsIn(
  { path: folder, tool }: CommandFolder,
  scope: TypedCommand["scope"],
  isOwn: boolean,
): readonly TypedCommand[] {
  const ending = ENDINGS[tool];
  return filesIn(folder, ending).map((path) => ({
    name: relative(folder, path).slice(0, -ending.length).split(sep).join(":"),
    tool,
    path,
    scope,
    isTrusted: isOwn,
  }));
}

export interface ExpandedCommand {
  /** The message that the agent gets. */
  readonly text: string;
  /** Parts of the file without an effect, for a person. */
  readonly notes: readonly string[];
}

/** @returns the reason as a text for a file that cannot be used, and for arguments that are missing. */
export function expandCommand(
  { path, tool, scope }: Pick<TypedCommand, "path" | "tool" | "scope">,
  given: string,
  places: Pick<AgentPlaces, "project" | "layers">,
): ExpandedCommand | string {
  try {
    requireInside(path, scope === "project" ? realPath(layerOf(places, path).project) : null, {
      what: "command",
    });
    const { values, body } = partsOf(readText(path), tool);
    return expanded(values, filledIn(body, tool, given), { body, tool, folder: dirname(path) });
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return `${error.message}: ${error.fix}`;
  }
}

function expanded(
  values: Readonly<Record<string, unknown>>,
  text: string,
  { body, tool, folder }: { readonly body: string; readonly tool: CommandTool; readonly folder: string },
): ExpandedCommand {
  const hasShell = (tool === "gemini" ? /!\{(?:(?!!\{)[^}])+\}/ : /!`[^`\n]+`|^```!/m).test(body);
  const unused = WITHOUT_EFFECT.filter((name) => Object.hasOwn(values, name));
  return {
    text: [
      text,
      ...(hasShell ? ["(Shell commands behind ! in this text were not run. Run those that you need.)"] : []),
      ...(tool === "skill" ? [`(Other files of this skill are in ${folder}.)`] : []),
    ].join("\n\n"),
    notes: [
      ...(unused.length === 0
        ? []
        : [`${unused.join(", ")} of the file: without effect, the agent's own rights hold`]),
      ...(hasShell
        ? ["commands behind ! are not run: the agent runs them by its own tools and approvals"]
        : []),
    ],
  };
}

/** The description for a list, or the reason why there is none. */
export function commandDescription({ path, tool }: Pick<TypedCommand, "path" | "tool">): string {
  try {
    const { description } = partsOf(readText(path), tool).values;
    return typeof description === "string" ? description : "";
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return error.message;
  }
}

function partsOf(
  text: string,
  tool: CommandTool,
): { readonly values: Readonly<Record<string, unknown>>; readonly body: string } {
  if (tool !== "gemini") return readSkillText(text);
  try {
    const { prompt, ...values } = parse(text);
    if (typeof prompt === "string" && prompt.trim() !== "") return { values, body: prompt.trim() };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new FileProblem(`it is no TOML: ${error.message.split("\n", 1)[0]}`, "correct that line");
  }
  throw new FileProblem("it has no text", 'write `prompt = "…"`');
}
