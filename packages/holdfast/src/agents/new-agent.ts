// `holdfast agents new` and `import`: write a file to begin with, or one made of a file of another tool.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { agentFileText, findAgent, isTrusted, listAgents, nameProblem } from "@holdfast/agents";
import { makePrivateFolder } from "@holdfast/runtime/internal";
import { UsageError } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { quoted } from "../frame/plain-text.ts";
import { agentPlaces, shownPath } from "./agent-places.ts";

export async function newAgent(name: string, isUsers: boolean, io: Io): Promise<number> {
  const problem = nameProblem(name);
  if (problem !== undefined)
    throw new UsageError(problem, { got: name, fix: "choose another name, such as code-reviewer" });
  return writeAgent(name, template(name), isUsers, io);
}

/** Writes the agent of a file of another tool in our own form. The file itself is not changed. */
export async function importAgent(path: string, isUsers: boolean, io: Io): Promise<number> {
  const record = findAgent(resolve(io.cwd, path), agentPlaces(io), io.cwd);
  const exitCode = writeAgent(record.name, agentFileText(record), isUsers, io);
  const listed = listAgents(agentPlaces(io, { trustsProject: true }));
  if (listed.some(({ name, status }) => name === record.name && status === "doubled"))
    io.note(
      `${io.notes.symbols.warn} two files have the agent ${record.name} now: rename or remove one of them, or use its path`,
    );
  return exitCode;
}

function writeAgent(name: string, text: string, isUsers: boolean, io: Io): number {
  const { project, home, trustFile } = agentPlaces(io);
  if (isUsers && home === undefined)
    throw new UsageError("there is no home folder for --user", { fix: "set HOME to an absolute path" });
  const root = isUsers ? (home ?? project) : project;
  const path = join(root, ".holdfast", "agents", `${name}.md`);
  makePrivateFolder(dirname(path));
  if (!isUsers) showToGit("agents", join(project, ".holdfast", ".gitignore"));
  try {
    writeFileSync(path, text, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new UsageError("there is a file of that name already", {
      at: path,
      fix: "choose another name, or edit that file",
    });
  }
  io.show({ name, path }, `wrote ${shownPath(path, io)}`);
  io.note(`next: edit it, then \`${io.call(`agents check ${quoted(shownPath(path, io))}`)}\``);
  if (!isUsers && !isTrusted(trustFile, project))
    io.note(`${io.notes.symbols.warn} this project is not trusted yet: \`${io.call("agents trust")}\``);
  return 0;
}

/** The project's folder keeps all files from git but those that this file names. */
export function showToGit(folder: "agents" | "scripts", path: string): void {
  if (!existsSync(path)) return;
  const text = readFileSync(path, "utf8");
  if (text.split("\n").includes(`!${folder}/**`) || !text.split("\n").includes("*")) return;
  writeFileSync(path, `${text.trimEnd()}\n!${folder}/\n!${folder}/**\n`);
}

function template(name: string): string {
  return `---
name: ${name}
description: Say in one sentence when to use this agent.
# The tools that it gets. Without this line it gets all of them.
tools: Read, Grep, Glob
holdfast:
  budget: { usd: 1 }
  ttl: 1h
---

You are ${name}. Say here what the agent does, step by step, and what its answer looks like.
`;
}
