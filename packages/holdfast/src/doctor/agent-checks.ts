// The check of agents: files of the project that define agents, and executors (`checkAgents`).
//
// The files are not loaded, because loading runs their code. A file counts when it calls `defineAgent`.

import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { listExecutors } from "@holdfast/programs";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count } from "@holdfast/terminal/frame/plain-text";
import { findProject } from "@holdfast/place/project";
import { readRunnerPolicy } from "@holdfast/place/settings/runner-policy-file";
import { listed, type Finding } from "./check.ts";

const CODE = /\.[cm]?[jt]s$/;
const NOT_ENTERED = new Set(["node_modules", "dist", "build", "coverage"]);
const ENTRIES_MAX = 5_000;
const DEPTH_MAX = 6;
const FILE_BYTES_MAX = 256 * 1024;
const SEARCH_MS = 3_000;

export async function checkAgents(args: Arguments, io: Io): Promise<Finding> {
  const project = findProject(io);
  const { files, isWhole } = await filesWithAgents(project);
  const names = files.map((file) => relative(project, file)).toSorted();
  const executors = listExecutors(executorsFolderOf(project, args, io));
  const broken = executors.find(({ problem }) => problem !== undefined);
  const some = isWhole ? "" : " (a part of the project was searched)";
  const texts = [
    names.length === 0
      ? `no file in ${project} calls defineAgent${some}`
      : `${count(names.length, "file")} with defineAgent: ${listed(names)}${some}`,
    `${count(executors.length, "executor")}: ${listed(executors.map(({ name }) => name))}`,
  ];
  if (broken === undefined) return { status: "ok", found: texts.join("; ") };
  return {
    status: "warning",
    found: `${texts.join("; ")}; ${broken.name} cannot be used: ${broken.problem}`,
    fix: "correct it, or remove it",
  };
}

function executorsFolderOf(project: string, args: Arguments, io: Io): string {
  try {
    return readRunnerPolicy(args, io, project).executorsFolder;
  } catch {
    return project; // The check of the settings reports it.
  }
}

async function filesWithAgents(project: string) {
  const files: string[] = [];
  const giveUpAt = performance.now() + SEARCH_MS;
  let folders = [project];
  let entries = 0;
  for (let depth = 0; depth < DEPTH_MAX && folders.length > 0; depth++) {
    const below: string[] = [];
    for (const folder of folders) {
      for (const entry of await entriesOf(folder)) {
        if (++entries > ENTRIES_MAX || performance.now() > giveUpAt) return { files, isWhole: false };
        const path = join(folder, entry.name);
        const isHidden = entry.name.startsWith(".") || NOT_ENTERED.has(entry.name);
        if (entry.isDirectory() && !isHidden) below.push(path);
        if (entry.isFile() && CODE.test(entry.name) && (await definesAgent(path))) files.push(path);
      }
    }
    folders = below;
  }
  return { files, isWhole: folders.length === 0 };
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    return []; // A folder that this user may not read.
  }
}

async function definesAgent(path: string): Promise<boolean> {
  try {
    const { size } = await stat(path);
    return size <= FILE_BYTES_MAX && /\bdefineAgent\s*[<(]/.test(await readFile(path, "utf8"));
  } catch {
    return false;
  }
}
