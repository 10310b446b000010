// `holdfast agents new` and `import`: write a file to begin with, or one made of a file of another tool.

import { existsSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  agentFileText,
  findAgent,
  importedAgents,
  isTrusted,
  trustAgentFile,
  listAgents,
  nameProblem,
  type AgentFile,
  type ListedAgent,
} from "@holdfast/agents";
import { makePrivateFolder } from "@holdfast/system";
import { UsageError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";
import { requireInProject } from "@holdfast/place/project";
import { showToGit } from "@holdfast/place/settings/git-ignore";
import { agentPlaces, shownPath } from "../agent-places.ts";
import { fileText, warningsHere } from "../check-agents.ts";

export async function newAgent(name: string, isUsers: boolean, io: Io): Promise<number> {
  const problem = nameProblem(name);
  if (problem !== undefined)
    throw new UsageError(problem, { got: name, fix: "choose another name, such as code-reviewer" });
  return writeAgent(name, template(name), isUsers, io);
}

/** Writes the agents of a file of another tool in our own form. The file itself is not changed. */
export async function importAgent(path: string, isUsers: boolean, io: Io): Promise<number> {
  const at = resolve(io.cwd, path);
  const imported = importedAgents(at);
  if (imported?.some(({ record: usable }) => usable !== null) === true)
    return importAgents(imported, isUsers, io);
  const record = findAgent(at, agentPlaces(io), io.cwd);
  const exitCode = writeAgent(record.name, agentFileText(record), isUsers, io);
  noteDoubled([record.name], io);
  return exitCode;
}

/** The agents that can be used are written, all or none of them. The report says of each field what became of it. */
function importAgents(files: readonly AgentFile[], isUsers: boolean, io: Io): number {
  const usable = files.flatMap(({ record }) => record ?? []);
  const taken = usable.map(({ name }) => pathOf(name, isUsers, io)).find((path) => existsSync(path));
  if (taken !== undefined) throw nameTaken(taken);
  const written = usable.map((record) => {
    const path = pathOf(record.name, isUsers, io);
    write(path, agentFileText(record), isUsers, io);
    return { name: record.name, path };
  });
  const listed = files.map((file): ListedAgent => ({
    ...file,
    status: file.record === null ? "refused" : "loaded",
    others: [],
    qualifiedName: null,
  }));
  const warningsOf = warningsHere(io);
  const report = listed.map((file) => fileText(file, warningsOf, io));
  io.show(
    {
      written,
      agents: listed.map(({ name, dialect, status, problem, verdicts }) => ({
        name,
        dialect,
        status,
        problem,
        fields: verdicts,
      })),
    },
    [...report, ...written.map(({ path }) => `wrote ${shownPath(path, io)}`)].join("\n\n"),
  );
  noteDoubled(
    written.map(({ name }) => name),
    io,
  );
  noteTrust(isUsers, io);
  return usable.length === files.length ? 0 : 3;
}

function noteDoubled(names: readonly string[], io: Io): void {
  const listed = listAgents(agentPlaces(io, { trustsProject: true }));
  for (const one of names.filter((name) =>
    listed.some((file) => file.name === name && (file.status === "doubled" || file.status === "hidden")),
  ))
    io.note(
      `${io.notes.symbols.warn} two files have the agent ${one} now: rename or remove one of them, or use its path`,
    );
}

function writeAgent(name: string, text: string, isUsers: boolean, io: Io): number {
  const path = pathOf(name, isUsers, io);
  write(path, text, isUsers, io);
  io.show({ name, path }, `wrote ${shownPath(path, io)}`);
  io.note(`next: edit it, then \`${io.call(`agents check ${quoted(shownPath(path, io))}`)}\``);
  noteTrust(isUsers, io);
  return 0;
}

function pathOf(name: string, isUsers: boolean, io: Io): string {
  const { project, home } = agentPlaces(io);
  if (isUsers && home === undefined)
    throw new UsageError("there is no home folder for --user", { fix: "set HOME to an absolute path" });
  const root = isUsers ? (home ?? project) : project;
  return join(root, ".holdfast", "agents", `${name}.md`);
}

/** @throws UsageError for a file that is there, HoldfastError `config_invalid` for a link that leads out of the project. */
function write(path: string, text: string, isUsers: boolean, io: Io): void {
  const { project, trustFile } = agentPlaces(io);
  if (!isUsers) requireInProject(path, project);
  makePrivateFolder(dirname(path));
  if (!isUsers) showToGit("agents", join(project, ".holdfast"));
  try {
    writeFileSync(path, text, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw nameTaken(path);
  }
  // The user has just asked for it, and need not be asked about what it gives.
  if (!isUsers && isTrusted(trustFile, project)) trustAgentFile(trustFile, project, path);
}

function nameTaken(path: string): UsageError {
  return new UsageError("there is a file of that name already", {
    at: path,
    fix: "choose another name, or edit that file",
  });
}

function noteTrust(isUsers: boolean, io: Io): void {
  const { project, trustFile } = agentPlaces(io);
  if (!isUsers && !isTrusted(trustFile, project))
    io.note(`${io.notes.symbols.warn} this project is not trusted yet: \`${io.call("agents trust")}\``);
}

function template(name: string): string {
  return `---
name: ${name}
description: Say in one sentence when to use this agent.
# The tools that it gets. Without this line it gets all of them.
tools: Read, Grep, Glob
holdfast:
  budget: { tokens: 1000000 }
  ttl: 1h
---

You are ${name}. Say here what the agent does, step by step, and what its answer looks like.
`;
}
