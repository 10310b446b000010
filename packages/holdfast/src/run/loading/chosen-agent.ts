// `chosenAgent`: an argument that names a file of code and perhaps one of its agents.

import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";

/** The endings of files of code. */
export const EXTENSIONS = [".ts", ".mts", ".js", ".mjs", ".cts", ".cjs"];

/** `FILE#NAME` chooses one of the agents of a file of code. A file whose name has a `#` is itself. */
export function chosenAgent(
  fileAndName: string,
  cwd: string,
): { readonly path: string; readonly chosen: string | undefined } {
  const at = fileAndName.lastIndexOf("#");
  const path = fileAndName.slice(0, at);
  const isWhole = at <= 0 || !EXTENSIONS.includes(extname(path)) || existsSync(resolve(cwd, fileAndName));
  return isWhole ? { path: fileAndName, chosen: undefined } : { path, chosen: fileAndName.slice(at + 1) };
}
