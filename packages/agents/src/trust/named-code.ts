// Code of a project that its files name: what it consists of, and the hash of that.
//
//   - A file counts with the files that it imports by a relative path, and these with theirs. Every file
//     counts that such a path could mean, so that a new one beside it is a change.
//   - leaky: a path that is computed, and packages in `node_modules`, are not followed.

import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, extname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { MIB } from "@holdfast/core";

import { hashOf } from "./trust-file.ts";

/** The largest file that is read for its imports. */
const SOURCE_BYTES_MAX = 4 * MIB;

const SOURCES = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"];
const PROGRAMS = new Set([...SOURCES, ".sh", ".bash", ".zsh", ".py", ".rb", ".pl", ".php", ".lua", ".ps1"]);
const EXECUTABLE = 0o111;

/** The files of code inside of the project that the words of a text name. */
export function codeOf(project: string, text: string): readonly string[] {
  const words = new Set(text.split(/[\s"'`=,;:|&<>()[\]{}\\]+/));
  return [...words].flatMap((word) => {
    if (word === "" || word.length > 1_000) return [];
    // Behind a variable for the project, a path begins with a slash.
    const paths = isAbsolute(word) ? [word, join(project, word)] : [join(project, word)];
    return paths.filter((path) => isCode(path) && isInside(project, path));
  });
}

/** @param paths files, absolute or from the project. */
export function hashOfCode(project: string, paths: readonly string[]): string {
  const found = new Map<string, string>();
  const queue = paths.map((path) => resolve(project, path));
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (found.has(path)) continue; // No file is left out: a change of it would not be seen.
    const content = read(path);
    found.set(path, content === undefined ? "missing" : hashOf(content));
    if (content === undefined || content.length > SOURCE_BYTES_MAX) continue;
    if (SOURCES.includes(extname(path))) queue.push(...importsOf(path, content.toString("utf8"), project));
  }
  const lines = [...found].map(([path, hash]) => `${relative(project, path)} ${hash}`);
  return hashOf(lines.toSorted().join("\n"));
}

function importsOf(path: string, text: string, project: string): readonly string[] {
  const specifiers = text.matchAll(/["'`](\.{1,2}\/[^"'`\n]{1,500})["'`]/g);
  return [...specifiers].flatMap(([, specifier = ""]) =>
    candidates(resolve(dirname(path), specifier)).filter(
      (file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true && isInside(project, file),
    ),
  );
}

/** The files that a path of an import could mean. */
function candidates(path: string): readonly string[] {
  const stem = path.slice(0, path.length - extname(path).length);
  return [
    path,
    ...SOURCES.flatMap((ending) => [`${path}${ending}`, `${stem}${ending}`, join(path, `index${ending}`)]),
  ];
}

function isCode(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return false;
  return PROGRAMS.has(extname(path)) || (found.mode & EXECUTABLE) !== 0;
}

function isInside(project: string, path: string): boolean {
  if (!existsSync(path)) return false;
  const steps = relative(realpathSync(project), realpathSync(path)).split(sep);
  return steps[0] !== ".." && !steps.includes("node_modules");
}

function read(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
