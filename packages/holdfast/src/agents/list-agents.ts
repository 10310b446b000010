// `holdfast agents list`, `show` and `trust`.

import { join, resolve } from "node:path";
import {
  InstalledAgents,
  approveSkills,
  distrustFolder,
  findAgent,
  findAgentFiles,
  listAgents,
  pushScriptsOf,
  readProfileAgents,
  readProjectInstructions,
  trustFolder,
  type AgentRecord,
  type ListedAgent,
  type ProjectInstructions,
} from "@holdfast/agents";
import { NotFoundError } from "@holdfast/core";
import type { Arguments, Io } from "../frame/command.ts";
import { isFolder } from "../frame/given-file.ts";
import { count, cutTo, plainLine, table } from "../frame/plain-text.ts";
import { agentPlaces, shownPath } from "./agent-places.ts";
import { installedAgentsFolder } from "./external-agent-names.ts";

const DESCRIPTION_CHARS = 60;

export async function showAgents(args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io, { trustsProject: args.has("trust") });
  const installed = installedAgentsFolder(io);
  const listed = [
    ...listAgents(places).map(({ record, ...agent }) => ({
      ...agent,
      description: record?.description ?? null,
    })),
    ...readProfileAgents(places).map(({ profile, problem, ...file }) => ({
      ...file,
      dialect: "external",
      others: [],
      problem: problem === null ? null : { message: problem },
      description: profile?.description ?? null,
    })),
    ...new InstalledAgents(installed).names().map((name) => ({
      name,
      path: join(installed, name),
      status: "loaded",
      scope: "user",
      dialect: "external",
      others: [],
      verdicts: [],
      problem: null,
      description: "installed from a registry",
    })),
  ];
  const rows = listed.map((agent) => [
    plainLine(agent.name, 40),
    agent.status,
    agent.dialect,
    shownPath(agent.path, io),
    plainLine(agent.description ?? reasonOf(agent, io), DESCRIPTION_CHARS, io.results.symbols.cut),
  ]);
  const lines = table([["NAME", "STATUS", "FORMAT", "FILE", ""], ...rows]);
  const text =
    rows.length === 0
      ? "no agent files: `holdfast agents new NAME` writes one"
      : lines.map((line) => cutTo(line, io.results.columns, io.results.symbols.cut)).join("\n");
  io.show(
    listed.map(({ name, status, dialect, scope, path, others, description }) => ({
      name,
      status,
      dialect,
      scope,
      path,
      others,
      description,
    })),
    text,
  );
  const untrusted = listed.filter(({ status }) => status === "untrusted").length;
  if (untrusted > 0)
    io.note(
      `${io.notes.symbols.warn} ${count(untrusted, "file")} of this project ${untrusted === 1 ? "is" : "are"} not loaded: read ${untrusted === 1 ? "it" : "them"} (\`${io.call("agents check")}\`), then \`${io.call("agents trust")}\``,
    );
  return 0;
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

export async function showAgent(nameOrPath: string, args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io, { trustsProject: args.has("trust") });
  const record = findAgent(nameOrPath, places, io.cwd);
  const { files, leftOut, nested } = readProjectInstructions(places, io.cwd);
  const instructions = { files, leftOut, nested };
  const parts = [recordText(record), ...instructionTexts(instructions, io)];
  io.show({ ...record, instructions }, parts.join("\n\n"));
  return 0;
}

/** The `AGENTS.md` files that a session in this folder reads, and the others with the reason. */
function instructionTexts(
  { files, leftOut, nested }: Omit<ProjectInstructions, "text">,
  io: Io,
): readonly string[] {
  const lines = [
    ...files.map((path) => [shownPath(path, io), "read"]),
    ...nested.map((path) => [path, "named to the model"]),
    ...leftOut.map(({ path, reason }) => [shownPath(path, io), `left out: ${reason}`]),
  ];
  return lines.length === 0 ? [] : [["Instructions:", ...table(lines)].join("\n")];
}

/** The fields that differ from those of an empty file, and the prompt. */
function recordText({ prompt, source, permissions, subAgents, ...fields }: AgentRecord): string {
  const rules = rulesText(permissions);
  const rows = Object.entries({ ...fields, permissions: rules })
    .filter(([, value]) => value !== null && value !== false && !isEmpty(value))
    .map(([name, value]) => [name, typeof value === "string" ? value : shortJson(value)]);
  const origin = [
    ["file", source.path],
    ["format", source.dialect],
    ["version", source.hash],
  ];
  const inner = Object.entries(subAgents).flatMap(([name, agent]) => ["", ...subAgentText(name, agent)]);
  return [...table([...rows, ...origin]), "", prompt.trimEnd(), ...inner].join("\n");
}

function rulesText(permissions: AgentRecord["permissions"]): readonly string[] {
  return permissions.map(
    ({ decision, tool, pattern }) => `${decision} ${tool}${pattern === null ? "" : `(${pattern})`}`,
  );
}

/** An agent that the file itself defines. It has its other fields from the agent of its file. */
function subAgentText(name: string, agent: AgentRecord["subAgents"][string]): readonly string[] {
  const { description, model, tools, deniedTools, permissions, turnsMax, prompt } = agent;
  const rows = [
    ["description", description],
    ["model", model ?? ""],
    ["tools", tools?.join(", ") ?? ""],
    ["denied tools", deniedTools.join(", ")],
    ["permissions", rulesText(permissions).join(", ")],
    ["turns at most", turnsMax === null ? "" : String(turnsMax)],
  ].filter(([, value]) => value !== "");
  const lines = [...table(rows), ...prompt.trimEnd().split("\n")];
  return [`Agent of this file: ${name}`, ...lines.map((line) => (line === "" ? "" : `  ${line}`))];
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function shortJson(value: unknown): string {
  return Array.isArray(value) && value.every((item) => typeof item === "string")
    ? value.join(", ")
    : JSON.stringify(value);
}

export async function trustProject(path: string | undefined, args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io, path === undefined ? {} : { project: resolve(io.cwd, path) });
  const { project, trustFile } = places;
  if (!isFolder(project))
    throw new NotFoundError("file_not_found", "there is no such folder", {
      at: project,
      fix: "name the folder of a project, or leave it out for the current one",
    });
  if (args.has("remove")) {
    const wasTrusted = distrustFolder(trustFile, project);
    io.show({ folder: project, trusted: false }, `${project} is ${wasTrusted ? "no longer" : "not"} trusted`);
    return 0;
  }
  const folder = trustFolder(trustFile, project);
  const files = findAgentFiles(places).filter(({ scope }) => scope === "project").length;
  const skills = approveSkills(places).map(({ name }) => name);
  const scripts = pushScriptsOf(places, Date.now());
  const found = [
    ...(skills.length === 0 ? [] : [count(skills.length, "skill")]),
    ...(scripts.length === 0 ? [] : [count(scripts.length, "script")]),
  ];
  const approved = found.length === 0 ? "" : `, and its ${found.join(" and ")} with their present content`;
  io.show(
    { folder, trusted: true, files, skills, scripts },
    `${folder} is trusted: its ${count(files, "agent file")} can be used${approved}`,
  );
  return 0;
}
