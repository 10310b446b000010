// `holdfast agents check`: for each file and field, whether it is honoured, mapped, ignored or refused.
// Without a path it also reports on plugins, skills, MCP servers, hooks and profiles of external agents.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import {
  agentPathsIn,
  expandCommand,
  findCommands,
  findPlugins,
  findSkills,
  findUnusedFiles,
  foundAt,
  importedAgents,
  listAgents,
  loadAgentFile,
  ofTool,
  OutsideRules,
  readHookFiles,
  readMcpFiles,
  readProfiles,
  skillsLeftOut,
  type FieldVerdict,
  type HookFile,
  type ListedAgent,
  type McpFile,
  type Plugin,
  type ProfileFile,
  type Skill,
  type UnusedFile,
} from "@holdfast/agents";
import { NotFoundError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { isFolder } from "@holdfast/terminal/frame/given-file";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces, shownPath } from "./agent-places.ts";
import { agentWarnings, hookWarnings, type WarningsOf } from "@holdfast/machine/checks";
import { hiddenTextIn } from "./content-notes.ts";
import { findSandbox, requireSandbox } from "./sandbox-settings.ts";

/**
 * @returns the exit code: 3 when a file is refused.
 * @throws UsageError for a sandbox of the environment that is none, where an agent names no other.
 */
export async function checkAgents(namesOrPaths: readonly string[], io: Io): Promise<number> {
  const found =
    namesOrPaths.length === 0
      ? allFiles(io)
      : { ...NOTHING, agents: namesOrPaths.flatMap((one) => filesAt(one, io)) };
  const { agents, plugins, skills, mcpFiles, hookFiles, profiles, commands, unused } = found;
  const warningsOf = warningsHere(io);
  const all = [...agents, ...plugins, ...skills, ...mcpFiles, ...hookFiles, ...profiles];
  const refused = all.filter(
    ({ status, verdicts }) =>
      status === "refused" || status === "doubled" || verdicts.some(({ verdict }) => verdict === "refused"),
  );
  const summary =
    all.length === 0
      ? "no agent files: `holdfast agents new NAME` writes one"
      : `${count(all.length, "file")}, ${refused.length} refused`;
  io.show(
    reportOf(found, warningsOf),
    [
      ...agents.map((file) => fileText(file, warningsOf, io)),
      ...plugins.map((plugin) => otherText(plugin, `${plugin.name} (plugin)`, io)),
      ...skills.map((skill) => otherText(skill, `${skill.name} (skill)`, io)),
      ...skillsLeftOut(skills),
      ...mcpFiles.map((file) => otherText(file, "MCP servers", io)),
      ...hookFiles.map((file) => otherText(file, "hooks", io)),
      ...profiles.map((file) => otherText(file, `${file.name} (profile)`, io)),
      ...(commands.length === 0 ? [] : [commandsText(commands, io)]),
      ...(unused.length === 0 ? [] : [unusedText(unused, io)]),
      summary,
    ].join("\n\n"),
  );
  if (agents.some(({ record }) => record?.sandbox === null)) requireSandbox(io);
  return refused.length === 0 ? 0 : 3;
}

/** The same report on all files for the page. */
export function agentReport(io: Io): object {
  return reportOf(allFiles(io), warningsHere(io));
}

/** Looking at a file is no use of it, so a project needs no trust here. */
export function warningsHere(io: Io): WarningsOf {
  return agentWarnings(agentPlaces(io, { trustsProject: true }), findSandbox(io).value);
}

/**
 * All files with their fields. A file that could be used, if the user trusted the project or approved its
 * content, has the state that keeps it out of runs.
 */
function allFiles(io: Io): Found {
  const forRuns = filesOf(agentPlaces(io));
  const agents = new Map(forRuns.agents.map((agent) => [agent.path, agent] as const));
  const states = new Map(
    Object.values(forRuns).flatMap((files: readonly ReportedPath[]) =>
      files.map(({ path, status }) => [path, status] as const),
    ),
  );
  // Looking at a file is no use of it, so a project needs no trust here.
  const all = filesOf(agentPlaces(io, { trustsProject: true }));
  const withState = <File extends ReportedPath>(file: File): File =>
    file.status === "loaded" ? { ...file, status: states.get(file.path) ?? file.status } : file;
  return {
    agents: all.agents.map((agent) => readForRuns(agents.get(agent.path)) ?? withState(agent)),
    plugins: all.plugins.map(withState),
    skills: all.skills.map(withState),
    mcpFiles: all.mcpFiles.map(withState),
    hookFiles: all.hookFiles.map(withState),
    profiles: all.profiles.map(withState),
    commands: commandsIn(agentPlaces(io, { trustsProject: true })),
    unused: findUnusedFiles(agentPlaces(io), { withHome: true }),
  };
}

/** An agent as a run reads it, with the rules that count there. @returns nothing for one that a run does not read. */
function readForRuns(agent: ListedAgent | undefined): ListedAgent | undefined {
  return agent?.status === "untrusted" || agent?.status === "unapproved" ? undefined : agent;
}

/** A command that a person types in a conversation, and what of its file has no effect or keeps it from use. */
interface ReportedCommand {
  readonly name: string;
  readonly path: string;
  readonly notes: readonly string[];
}

function commandsIn(places: ReturnType<typeof agentPlaces>): readonly ReportedCommand[] {
  return findCommands(places)
    .filter(({ tool }) => tool !== "skill")
    .map((command) => {
      const made = expandCommand(command, "", places);
      return {
        name: command.name,
        path: command.path,
        notes: typeof made === "string" ? [made] : made.notes,
      };
    });
}

function commandsText(commands: readonly ReportedCommand[], io: Io): string {
  const lines = commands.map(({ name, path, notes }) =>
    [
      `  /${plainLine(name, 60)}: ${plainLine(shownPath(path, io), 200)}`,
      ...notes.map((note) => plainLine(note, 300)),
    ].join("; "),
  );
  return ["commands that a person can type in a conversation:", ...lines].join("\n");
}

function unusedText(unused: readonly UnusedFile[], io: Io): string {
  const lines = unused.map(
    ({ path, reason }) => `  ${plainLine(shownPath(path, io), 200)}: ${plainLine(reason, 400)}`,
  );
  return ["files of other tools that no session uses:", ...lines].join("\n");
}

function filesOf(places: ReturnType<typeof agentPlaces>): Omit<Found, "unused" | "commands"> {
  return {
    agents: listAgents(places),
    plugins: findPlugins(places),
    skills: findSkills(places),
    mcpFiles: readMcpFiles(places),
    hookFiles: readHookFiles(places).map((file) => ({
      ...file,
      warnings: hookWarnings(file.hooks, { ...places, project: file.folder }),
    })),
    profiles: readProfiles(places),
  };
}

interface ReportedPath {
  readonly path: string;
  readonly status: string;
}

interface Warned {
  readonly warnings?: readonly string[];
}

interface Found {
  readonly agents: readonly ListedAgent[];
  readonly plugins: readonly Plugin[];
  readonly skills: readonly Skill[];
  readonly mcpFiles: readonly McpFile[];
  readonly hookFiles: readonly (HookFile & Warned)[];
  readonly profiles: readonly ProfileFile[];
  readonly commands: readonly ReportedCommand[];
  readonly unused: readonly UnusedFile[];
}

const NOTHING: Found = {
  agents: [],
  plugins: [],
  skills: [],
  mcpFiles: [],
  hookFiles: [],
  profiles: [],
  commands: [],
  unused: [],
};

function reportOf(found: Found, warningsOf: WarningsOf) {
  return {
    agents: found.agents.map(({ path, name, dialect, scope, status, others, problem, verdicts, record }) => ({
      path,
      name,
      dialect,
      scope,
      status,
      others,
      problem,
      warnings: [
        ...hiddenTextIn(path, path),
        ...(record === null ? [] : [...warningsOf(record), ...misspeltTools(verdicts)]),
      ],
      fields: verdicts,
    })),
    plugins: found.plugins.map((file) => ({ name: file.name, scope: file.scope, ...fileJson(file) })),
    skills: found.skills.map(({ verdicts, ...skill }) => ({
      ...skill,
      warnings: hiddenTextIn(skill.path, skill.path),
      fields: verdicts,
    })),
    mcpFiles: found.mcpFiles.map(fileJson),
    hookFiles: found.hookFiles.map(fileJson),
    profiles: found.profiles.map((file) => ({ name: file.name, scope: file.scope, ...fileJson(file) })),
    commands: found.commands,
    unused: found.unused,
  };
}

function fileJson({
  path,
  status,
  problem,
  verdicts,
  warnings = [],
}: (Plugin | McpFile | HookFile | ProfileFile) & Warned) {
  return { path, status, problem, warnings: [...hiddenTextIn(path, path), ...warnings], fields: verdicts };
}

/** One file, the folder of an agent, all files of a project or of a folder, or the files of an agent's name. */
function filesAt(nameOrPath: string, io: Io): readonly ListedAgent[] {
  const path = resolve(io.cwd, nameOrPath);
  if (!existsSync(path)) return filesNamed(nameOrPath, path, io);
  if (!isFolder(path) || existsSync(resolve(path, "agent.json"))) return filesOfPaths([path], io);
  const places = { ...agentPlaces(io, { project: path, trustsProject: true }), layers: [path] };
  const listed = listAgents({ ...places, home: undefined });
  const found = listed.length > 0 ? listed : filesOfPaths(agentPathsIn(path), io);
  if (found.length > 0) return found;
  throw new NotFoundError("file_not_found", "there is no agent file in this folder", {
    at: path,
    got: nameOrPath,
    expected: "the folder of a project, or one with agent files, such as .claude/agents",
    fix: "check the path, which is taken from the current folder",
  });
}

function filesOfPaths(paths: readonly string[], io: Io): readonly ListedAgent[] {
  const outside = new OutsideRules(agentPlaces(io));
  const files = paths.flatMap((path) => importedAgents(path) ?? [loadAgentFile(foundAt(path), outside)]);
  return files.map((file) => ({
    ...file,
    status: file.record === null ? "refused" : "loaded",
    others: [],
    qualifiedName: null,
  }));
}

/** The files of this name, also those that cannot be used. */
function filesNamed(name: string, path: string, io: Io): readonly ListedAgent[] {
  const { agents: listed, profiles } = allFiles(io);
  const qualified = ofTool(name);
  const found = listed.filter(
    (file) =>
      file.name === (qualified?.name ?? name) && (qualified === undefined || file.dialect === qualified.tool),
  );
  if (found.length > 0) return found;
  throw new NotFoundError("file_not_found", `there is no file and no agent file of the name "${name}"`, {
    at: path,
    got: name,
    expected:
      listed.length === 0
        ? "the path of a file"
        : `a path, or one of ${listed.map((one) => one.name).join(", ")}`,
    fix: profiles.some((profile) => profile.name === name)
      ? "the name is that of a profile of an external agent: `holdfast agents check` without a name reports on it"
      : "check the path, which is taken from the current folder, or the name (`holdfast agents list`)",
  });
}

export function fileText(file: ListedAgent, warningsOf: WarningsOf, io: Io): string {
  const { path, name, dialect, status, others, qualifiedName, problem, verdicts, record } = file;
  const lines = [titleText(path, `${name} (${dialect})`, status, io), ...wayIn(status, "agents trust", io)];
  if (others.length > 0) {
    const where = others.map((other) => shownPath(other, io)).join(", ");
    const way = qualifiedName === null ? "" : `; it runs as ${qualifiedName}`;
    lines.push(`  ${status === "hidden" ? "a file before it" : "another file"} has its name: ${where}${way}`);
  }
  if (problem !== null) {
    const place = problem.line === null ? "" : `line ${problem.line}: `;
    lines.push(`  ${place}${problem.message}`, `  fix: ${problem.fix}`);
  }
  const warnings = record === null ? [] : [...warningsOf(record), ...misspeltTools(verdicts)];
  return [
    ...lines,
    ...warningLines(path, io, warnings),
    ...verdicts.map((verdict) => verdictText(verdict, io)),
  ].join("\n");
}

/** A file with such a tool is used without it. */
function misspeltTools(verdicts: readonly FieldVerdict[]): readonly string[] {
  return verdicts.flatMap(({ field, verdict, text }) => {
    const [, said] = /; (there is no tool .*)$/s.exec(text) ?? [];
    return verdict === "mapped" && said !== undefined ? [`${field}: ${said}`] : [];
  });
}

/** Names in a warning are as a file has them. */
const WARNING_CHARS = 1_000;

function warningLines(path: string, io: Io, others: readonly string[] = []): readonly string[] {
  return [...hiddenTextIn(path, shownPath(path, io)), ...others].map(
    (line) => `  ${io.results.paint.yellow("warning")}: ${plainLine(line, WARNING_CHARS)}`,
  );
}

export function otherText(
  {
    path,
    status,
    problem,
    verdicts,
    warnings,
    ...rest
  }: (Plugin | Skill | McpFile | HookFile | ProfileFile) & Warned,
  what: string,
  io: Io,
): string {
  const approve = status === "unapproved" && "hash" in rest ? `skill approve ${rest.name}` : "agents trust";
  return [
    titleText(path, what, status, io),
    ...wayIn(status, approve, io),
    ...(problem === null ? [] : [`  ${problem}`]),
    ...warningLines(path, io, warnings),
    ...verdicts.map((verdict) => verdictText(verdict, io)),
  ].join("\n");
}

function titleText(
  path: string,
  what: string,
  status: ListedAgent["status"] | Skill["status"],
  io: Io,
): string {
  const { paint } = io.results;
  const colour = {
    loaded: paint.green,
    hidden: paint.yellow,
    untrusted: paint.yellow,
    unapproved: paint.yellow,
    inactive: paint.yellow,
    denied: paint.yellow,
    refused: paint.red,
    doubled: paint.red,
  };
  return `${paint.bold(shownPath(path, io))}: ${what}, ${colour[status](status)}`;
}

/** The command after which sessions use a file. @param approve the command that approves its present content. */
function wayIn(status: ListedAgent["status"] | Skill["status"], approve: string, io: Io): readonly string[] {
  if (status === "untrusted")
    return [`  no session uses it: read it, and then trust the project (\`${io.call("agents trust")}\`)`];
  if (status !== "unapproved") return [];
  return [
    `  no session uses its present content, which you have not approved: read it, and then \`${io.call(approve)}\``,
  ];
}

const WORDS: Readonly<Record<FieldVerdict["verdict"], string>> = {
  honoured: "honoured",
  mapped: "mapped to",
  ignored: "ignored because",
  refused: "refused because",
};

function verdictText({ field, verdict, text, line }: FieldVerdict, io: Io): string {
  const { paint } = io.results;
  const colour = { honoured: paint.green, mapped: paint.cyan, ignored: paint.yellow, refused: paint.red }[
    verdict
  ];
  const place = line === null || verdict === "honoured" ? "" : paint.dim(` (line ${line})`);
  return `  ${field}: ${colour(WORDS[verdict])}${text === "" ? "" : ` ${text.replaceAll("\n", " ")}`}${place}`;
}
