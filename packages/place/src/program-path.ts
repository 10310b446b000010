// `withoutProject`: the PATH without what a project put there. `npm` and `npx` put `node_modules/.bin` of the
// current folder first, and of the folders above it. A clone may bring programs of any name in them.
//
// Programs are found outside of a project. One inside is run by its explicit path, which a profile or an
// agent file names, and both need trust.

import { existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, sep } from "node:path";
import type { Io } from "@holdfast/terminal/frame/command";
import { findProject } from "./project.ts";

export function withoutProject(path: string, io: Pick<Io, "cwd" | "env">): string {
  const project = real(findProject(io));
  // The programs of a user lie below the home folder, and nobody cloned that.
  const isClone =
    project !== io.env["HOME"] && [".git", ".holdfast"].some((name) => existsSync(join(project, name)));
  const above = foldersAbove(io.cwd).map((folder) => real(join(folder, "node_modules", ".bin")));
  const isProjects = (entry: string): boolean =>
    !isAbsolute(entry) ||
    above.includes(real(entry)) ||
    (isClone && `${real(entry)}${sep}`.startsWith(`${project}${sep}`));
  return path
    .split(delimiter)
    .filter((entry) => !isProjects(entry))
    .join(delimiter);
}

function foldersAbove(folder: string): readonly string[] {
  return folder === dirname(folder) ? [folder] : [folder, ...foldersAbove(dirname(folder))];
}

function real(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
