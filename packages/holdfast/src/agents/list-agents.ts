// `holdfast agents list` and `trust`.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { InstalledAgents } from "@holdfast/programs";
import {
  approveSkills,
  distrustFolder,
  findAgentFiles,
  foundAt,
  hasAgentFiles,
  isTrusted,
  listAgents,
  loadAgentFile,
  pushScriptsOf,
  readFolderContent,
  readHookFiles,
  readProfileAgents,
  trustFolder,
  type AgentPlaces,
  type AgentRecord,
  type ListedAgent,
} from "@holdfast/agents";
import { CONFIG_FILE } from "@holdfast/agents/trust";
import { NotFoundError } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { isFolder } from "@holdfast/terminal/frame/given-file";
import { count, cutTo, plainLine, quoted, table } from "@holdfast/terminal/frame/plain-text";
import { readConfig } from "@holdfast/place/settings/config";
import { agentPlaces, shownPath } from "./agent-places.ts";
import { trifectaText } from "@holdfast/machine/checks";
import { hiddenTextIn, noteHiddenText } from "./content-notes.ts";
import { noneTagged, wantedTags } from "@holdfast/terminal/frame/labels";
import { installedAgentsFolder } from "@holdfast/machine/external-agent-names";
import { doublesOf } from "@holdfast/machine/programs";

const DESCRIPTION_CHARS = 60;
const STARTED_CHARS = 4_000;
const NO_TAGS: readonly string[] = [];
const NO_FILES = "no agent files: `holdfast agents new NAME` writes one";

export async function showAgents(args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io, { trustsProject: args.has("trust") });
  const installed = installedAgentsFolder(io);
  const files = withRefusals(listAgents(places), places);
  const doubles = doublesOf(files, places);
  const filesNamed = (name: string): string[] =>
    doubles.has(name) ? files.filter((file) => file.name === name).map(({ path }) => path) : [];
  const found = [
    ...files.map(({ record, ...agent }) => ({
      ...agent,
      others: [...agent.others, ...[doubles.get(agent.name) ?? []].flat()],
      description: record?.description ?? null,
      tags: record?.tags ?? [],
    })),
    ...readProfileAgents(places).map(({ profile, problem, ...file }) => ({
      ...file,
      dialect: "external",
      qualifiedName: null,
      others: filesNamed(file.name),
      problem: problem === null ? null : { message: problem },
      description: profile?.description ?? null,
      tags: NO_TAGS,
    })),
    ...new InstalledAgents(installed).names().map((name) => ({
      name,
      path: join(installed, name),
      status: "loaded",
      scope: "user",
      dialect: "external",
      qualifiedName: null,
      others: filesNamed(name),
      verdicts: [],
      problem: null,
      description: "installed from a registry",
      tags: NO_TAGS,
    })),
  ];
  const wanted = wantedTags(args);
  const tagged = found.filter(({ tags }) => wanted.every((tag) => tags.includes(tag)));
  const listed = tagged.map((agent) =>
    doubles.has(agent.name) && !["hidden", "untrusted", "unapproved"].includes(agent.status)
      ? { ...agent, status: "doubled", description: null }
      : agent,
  );
  const hasTags = listed.some(({ tags }) => tags.length > 0);
  const rows = listed.map((agent) => [
    plainLine(agent.status === "hidden" ? (agent.qualifiedName ?? agent.name) : agent.name, 50),
    agent.status,
    agent.dialect,
    shownPath(agent.path, io),
    ...(hasTags ? [plainLine(agent.tags.join(", "), DESCRIPTION_CHARS, io.results.symbols.cut)] : []),
    plainLine(agent.description ?? reasonOf(agent, io), DESCRIPTION_CHARS, io.results.symbols.cut),
  ]);
  const lines = table([["NAME", "STATUS", "FORMAT", "FILE", ...(hasTags ? ["TAGS"] : []), ""], ...rows]);
  const text =
    rows.length === 0
      ? (noneTagged(
          wanted,
          found.map(({ tags }) => tags),
        ) ?? NO_FILES)
      : lines.map((line) => cutTo(line, io.results.columns, io.results.symbols.cut)).join("\n");
  io.show(
    listed.map(({ name, qualifiedName, status, dialect, scope, path, others, description, tags }) => ({
      name,
      qualifiedName,
      status,
      dialect,
      scope,
      path,
      others,
      description,
      tags,
    })),
    text,
  );
  noteUntrusted(listed, io);
  return 0;
}

function noteUntrusted(listed: readonly { readonly status: string }[], io: Io): void {
  const untrusted = listed.filter(({ status }) => status === "untrusted" || status === "unapproved").length;
  if (untrusted > 0)
    io.note(
      `${io.notes.symbols.warn} ${count(untrusted, "file")} of this project ${untrusted === 1 ? "is" : "are"} not loaded: read ${untrusted === 1 ? "it" : "them"} (\`${io.call("agents check")}\`), then \`${io.call("agents trust")}\``,
    );
}

/** A file that is refused stays so when the project is trusted. Reading it is no use of it, so this needs no trust. */
function withRefusals(files: readonly ListedAgent[], places: AgentPlaces): readonly ListedAgent[] {
  if (files.every(({ status }) => status !== "untrusted")) return files;
  const refused = new Map(
    listAgents({ ...places, trustsProject: true })
      .filter(({ status }) => status === "refused")
      .map((file) => [file.path, file] as const),
  );
  return files.map((file) => (file.status === "untrusted" ? (refused.get(file.path) ?? file) : file));
}

function reasonOf(
  {
    status,
    problem,
    verdicts,
    others,
  }: Pick<ListedAgent, "verdicts" | "others"> & {
    readonly status: string;
    readonly problem: { readonly message: string } | null;
  },
  io: Io,
): string {
  if (status === "hidden" || status === "doubled")
    return `also in ${others.map((path) => shownPath(path, io)).join(", ")}`;
  if (problem !== null) return problem.message;
  const first = verdicts.find(({ verdict }) => verdict === "refused");
  return first === undefined ? "" : `${first.field}: ${first.text}`;
}

export async function trustProject(path: string | undefined, args: Arguments, io: Io): Promise<number> {
  const named = path === undefined ? undefined : resolve(io.cwd, path);
  // An agent file that is named by its path may lie anywhere in the project.
  const isAgentFile = named !== undefined && existsSync(named) && !isFolder(named);
  const places = agentPlaces(io, named === undefined || isAgentFile ? {} : { project: named });
  const { project, trustFile } = places;
  if (!isFolder(project))
    throw new NotFoundError("file_not_found", "there is no such folder", {
      at: project,
      fix: "name the folder of a project, or leave it out for the current one",
    });
  const layers = layersToTrust(places);
  if (args.has("remove")) {
    const removed = layers.filter((layer) => distrustFolder(trustFile, layer));
    const folders = removed.length === 0 ? [project] : removed;
    const are = folders.length === 1 ? "is" : "are";
    io.show(
      { folder: project, folders, trusted: false },
      `${folders.join(" and ")} ${are} ${removed.length > 0 ? "no longer" : "not"} trusted`,
    );
    return 0;
  }
  const settings = Object.keys(readConfig(join(project, CONFIG_FILE))).filter((key) => !key.startsWith("$"));
  const own = findAgentFiles(places).filter(({ scope }) => scope === "user");
  const tasks = [...own, ...(isAgentFile ? [foundAt(named)] : [])].flatMap(
    (found) => loadAgentFile(found).record?.tasks ?? [],
  );
  const [folder, ...others] = [project, ...layers.filter((layer) => layer !== project)].map((layer) =>
    trustFolder(trustFile, layer, layer === project ? tasks : []),
  );
  if (settings.length > 0)
    io.note(`its configuration sets ${settings.join(", ")}: \`${io.call("config list")}\` shows the values`);
  const trusted = { ...places, layers };
  noteLayersAbove(places, io);
  const agentFiles = findAgentFiles(trusted).filter(({ scope }) => scope === "project");
  const files = agentFiles.length;
  for (const { path: file } of agentFiles)
    for (const line of hiddenTextIn(file, shownPath(file, io))) io.note(`${io.notes.symbols.warn} ${line}`);
  for (const { record, name } of agentFiles.map((found) => loadAgentFile(found)))
    for (const text of record === null ? [] : [...startedBy(record), ...trifectaText(record)])
      io.note(`${io.notes.symbols.warn} ${plainLine(name, 40)}: ${text}`);
  for (const { path: file, hooks, isOuter } of readHookFiles({ ...trusted, trustsProject: true }))
    for (const text of isOuter ? [] : startedByHooks(hooks))
      io.note(`${io.notes.symbols.warn} ${shownPath(file, io)}: ${text}`);
  const skills = approveSkills(trusted).map(({ name, path: file }) => {
    noteHiddenText(`the skill ${name}`, readFolderContent(dirname(file)).files, io);
    return name;
  });
  const scripts = pushScriptsOf(trusted, Date.now());
  const found = [
    ...(skills.length === 0 ? [] : [count(skills.length, "skill")]),
    ...(scripts.length === 0 ? [] : [count(scripts.length, "script")]),
  ];
  const approved = found.length === 0 ? "" : `, and its ${found.join(" and ")} with their present content`;
  const usable = listAgents(trusted).filter(
    ({ scope, status }) => scope === "project" && status === "loaded",
  ).length;
  const unusable = files - usable;
  const refused = unusable === 0 ? "" : `, and ${unusable} cannot (\`${io.call("agents check")}\` says why)`;
  io.show(
    { folder, folders: [folder, ...others], trusted: true, files, usable, skills, scripts },
    `${[folder, ...others].join(" and ")} ${others.length === 0 ? "is" : "are"} trusted: ${count(usable, "agent file")} can be used${refused}${approved}`,
  );
  return 0;
}

/** The programs and the code that an agent's file starts once its project is trusted, a line for each. */
function startedBy({ hooks, mcpServers, tasks }: AgentRecord): readonly string[] {
  const ofServers = Object.entries(mcpServers).flatMap(([name, server]) =>
    typeof server === "object" && "command" in server
      ? [`its MCP server ${name} runs ${[server.command, ...(server.args ?? [])].join(" ")}`]
      : [],
  );
  const ofTasks = tasks.map((file) => `its tools run the code of ${file}`);
  return [
    ...startedByHooks(hooks),
    ...[...ofServers, ...ofTasks].map((line) => plainLine(line, STARTED_CHARS)),
  ];
}

function startedByHooks(hooks: AgentRecord["hooks"]): readonly string[] {
  return hooks.flatMap(({ run, point }) => {
    if (run.type === "agent") return [];
    const started = run.type === "command" ? run.command : `the script ${run.name}`;
    return [plainLine(`its hook at ${point} runs ${started}`, STARTED_CHARS)];
  });
}

/** The project, and the folders with files for agents from the current one up to it. */
function layersToTrust({ project, layers = [project] }: AgentPlaces): readonly string[] {
  return layers
    .slice(0, layers.indexOf(project) + 1)
    .filter((layer) => layer === project || hasAgentFiles(layer));
}

/** Folders above a project have the trust of their own. */
function noteLayersAbove({ project, layers = [], trustFile }: AgentPlaces, io: Io): void {
  const above = layers.slice(layers.indexOf(project) + 1);
  const unused = above.filter((layer) => hasAgentFiles(layer) && !isTrusted(trustFile, layer));
  for (const layer of unused)
    io.note(
      `${layer} above is not trusted, so of its files only rules that forbid or ask count here: \`${io.call(`agents trust ${quoted(layer)}`)}\``,
    );
}
