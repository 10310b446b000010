// `hideFromGit` and `showToGit`: the `.gitignore` of a project's folder. Git takes the project's own files,
// and nothing else from it: databases, their sockets and locks are the user's. It hides itself as well, so a
// repository in which Holdfast has only run stays clean. Every user of the project gets one.

import { lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The files of a project's folder that belong into its repository. */
const SHOWN = ["config.json", "agents/", "scripts/", "skills/", "profiles/"] as const;

/** Writes the file where there is none. An existing file is the user's, and is not changed, nor is a link. */
export function hideFromGit(projectFolder: string): void {
  const path = join(projectFolder, ".gitignore");
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  writeFileSync(path, `${["*", ...SHOWN.flatMap(linesOf)].join("\n")}\n`, { flag: "wx" });
}

/** As `hideFromGit`. A file that hides all, as Holdfast wrote it before, gets the lines for a folder. */
export function showToGit(folder: "agents" | "scripts", projectFolder: string): void {
  hideFromGit(projectFolder);
  const path = join(projectFolder, ".gitignore");
  if (lstatSync(path).isSymbolicLink()) return; // It may lead out of the project.
  const text = readFileSync(path, "utf8");
  if (text.split("\n").includes(`!${folder}/**`) || !text.split("\n").includes("*")) return;
  writeFileSync(path, `${text.trimEnd()}\n${linesOf(`${folder}/`).join("\n")}\n`);
}

function linesOf(shown: string): readonly string[] {
  return shown.endsWith("/") ? [`!${shown}`, `!${shown}**`] : [`!${shown}`];
}
