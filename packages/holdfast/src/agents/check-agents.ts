// `holdfast agents check`: for each file and field, whether it is honoured, mapped, ignored or refused.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { foundAt, listAgents, loadAgentFile, type FieldVerdict, type ListedAgent } from "@holdfast/agents";
import { NotFoundError } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { isFolder } from "../frame/given-file.ts";
import { count } from "../frame/plain-text.ts";
import { agentPlaces, shownPath } from "./agent-places.ts";

/** @returns the exit code: 3 when a file is refused. */
export async function checkAgents(paths: readonly string[], io: Io): Promise<number> {
  // Looking at a file is no use of it, so a project needs no trust here.
  const files =
    paths.length === 0
      ? listAgents(agentPlaces(io, { trustsProject: true }))
      : paths.flatMap((path) => filesAt(resolve(io.cwd, path), io));
  const refused = files.filter(({ status }) => status === "refused" || status === "doubled");
  const summary =
    files.length === 0
      ? "no agent files: `holdfast agents new NAME` writes one"
      : `${count(files.length, "file")}, ${refused.length} refused`;
  io.show(
    files.map(({ path, name, dialect, scope, status, others, problem, verdicts }) => ({
      path,
      name,
      dialect,
      scope,
      status,
      others,
      problem,
      fields: verdicts,
    })),
    [...files.map((file) => fileText(file, io)), summary].join("\n\n"),
  );
  return refused.length === 0 ? 0 : 3;
}

/** One file, the folder of an agent, or all files of a project. */
function filesAt(path: string, io: Io): readonly ListedAgent[] {
  if (!existsSync(path))
    throw new NotFoundError("file_not_found", "there is no such file", {
      at: path,
      fix: "check the path; it is taken from the current folder",
    });
  if (isFolder(path) && !existsSync(resolve(path, "agent.json")))
    return listAgents({ ...agentPlaces(io, { project: path, trustsProject: true }), home: undefined });
  const file = loadAgentFile(foundAt(path));
  return [{ ...file, status: file.record === null ? "refused" : "loaded", others: [] }];
}

function fileText(file: ListedAgent, io: Io): string {
  const { paint } = io.results;
  const { path, name, dialect, status, others, problem, verdicts } = file;
  const state =
    status === "loaded"
      ? paint.green(status)
      : status === "hidden"
        ? paint.yellow(status)
        : paint.red(status);
  const lines = [`${paint.bold(shownPath(path, io))}: ${name} (${dialect}), ${state}`];
  if (others.length > 0) {
    const where = others.map((other) => shownPath(other, io)).join(", ");
    lines.push(
      `  ${status === "hidden" ? "an agent of the project has its name" : "another file has its name"}: ${where}`,
    );
  }
  if (problem !== null) {
    const place = problem.line === null ? "" : `line ${problem.line}: `;
    lines.push(`  ${place}${problem.message}`, `  fix: ${problem.fix}`);
  }
  return [...lines, ...verdicts.map((verdict) => verdictText(verdict, io))].join("\n");
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
