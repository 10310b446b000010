// `holdfast agents show`: an agent file, or a profile of an external agent, in the words and units of people.

import {
  findAgent,
  findUsableProfile,
  listAgents,
  readProfiles,
  readProjectInstructions,
  type AgentPlaces,
  type AgentRecord,
  type ProfileFile,
  type ProjectInstructions,
} from "@holdfast/agents";
import { agentPlaces, shownPath } from "./agent-places.ts";
import { trifectaText } from "@holdfast/machine/checks";
import { programOf } from "@holdfast/machine/agent-source";
import { externalAgentName } from "@holdfast/machine/external-agent-names";
import { refuseDoubledName } from "@holdfast/machine/programs";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { duration, table } from "@holdfast/terminal/frame/plain-text";
import { limitsText } from "@holdfast/terminal/view/budget-text";

export async function showAgent(nameOrPath: string, args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io, { trustsProject: args.has("trust") });
  const program = programOf(nameOrPath);
  const isExact = program !== undefined;
  const name = program ?? nameOrPath;
  if (!isExact && externalAgentName(name, io) !== undefined) refuseDoubledName(name, places);
  const profile = isExact ? findProfileFile(name, places) : profileNamed(name, places);
  if (profile !== undefined) {
    io.show(profile, profileText(profile));
    return 0;
  }
  const record = findAgent(nameOrPath, places, io.cwd);
  const { files, leftOut, nested } = readProjectInstructions(places, io.cwd);
  const instructions = { files, leftOut, nested };
  const parts = [recordText(record), ...instructionTexts(instructions, io)];
  const warnings = trifectaText(record);
  io.show({ ...record, instructions, warnings }, parts.join("\n\n"));
  for (const text of warnings) io.note(`${io.notes.symbols.warn} ${text}`);
  return 0;
}

/** The profile of an external agent, where no agent file has its name. @throws HoldfastError for one that cannot be used. */
function profileNamed(name: string, places: AgentPlaces): ProfileFile | undefined {
  return listAgents(places).some((agent) => agent.name === name) ? undefined : findProfileFile(name, places);
}

function findProfileFile(name: string, places: AgentPlaces): ProfileFile | undefined {
  const file = readProfiles(places).find((one) => one.name === name);
  if (file !== undefined) findUsableProfile(name, places);
  return file;
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

/** The fields whose names in a record are not words. */
const TITLES: Readonly<Record<string, string>> = {
  turnsMax: "turns at most",
  ttlMs: "time at most",
  isConversation: "conversation",
  relaysMessages: "messages between children",
  mcpServers: "MCP servers",
  inputSchema: "input",
  outputSchema: "output",
};

/** The fields that differ from those of an empty file, and the prompt. */
function recordText({
  prompt,
  source,
  permissions,
  subAgents,
  budget,
  ttlMs,
  ...fields
}: AgentRecord): string {
  const rows = rowsOf({
    ...fields,
    permissions: rulesOf(permissions),
    budget: budget === null ? null : limitsText(budget),
    ttlMs: ttlMs === null ? null : duration(ttlMs),
  });
  const origin = [
    ["file", source.path],
    ["format", source.dialect],
    ["version", source.hash],
  ];
  const inner = Object.entries(subAgents).flatMap(([name, agent]) => ["", ...subAgentText(name, agent)]);
  return [...table([...rows, ...origin]), "", prompt.trimEnd(), ...inner].join("\n");
}

function profileText({ path, name, profile }: ProfileFile): string {
  const { rules = [], ...fields } = profile ?? {};
  const rows = rowsOf({
    ...fields,
    name,
    allowedTools: rulesOf(rules).map((rule) => rule.replace(/^allow /, "")),
  });
  return table([...rows, ["file", path], ["format", "profile of an external agent"]]).join("\n");
}

/** An agent that the file itself defines. It has its other fields from the agent of its file. */
function subAgentText(name: string, { prompt, permissions, ...fields }: SubAgent): readonly string[] {
  const lines = [
    ...table(rowsOf({ ...fields, permissions: rulesOf(permissions) })),
    ...prompt.trimEnd().split("\n"),
  ];
  return [`Agent of this file: ${name}`, ...lines.map((line) => (line === "" ? "" : `  ${line}`))];
}

type SubAgent = AgentRecord["subAgents"][string];

function rowsOf(fields: Readonly<Record<string, unknown>>): readonly string[][] {
  return Object.entries(fields)
    .filter(([, value]) => value !== null && value !== undefined && value !== false && !isEmpty(value))
    .map(([name, value]) => [titleOf(name), valueText(value)]);
}

function titleOf(name: string): string {
  return TITLES[name] ?? name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function rulesOf(permissions: AgentRecord["permissions"]): readonly string[] {
  return permissions.map(
    ({ decision, tool, pattern }) => `${decision} ${tool}${pattern === null ? "" : `(${pattern})`}`,
  );
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function valueText(value: unknown): string {
  if (value === true) return "yes";
  if (typeof value === "string") return value;
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isTexts ? value.join(", ") : JSON.stringify(value);
}
