// `chosenAgent`, `refuseFolder`: an argument that names a file of code and perhaps one of its agents.

import { existsSync, readdirSync } from "node:fs";
import { extname, resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { CODE_ENDINGS } from "@holdfast/machine/agent-source";
import { isFolder } from "@holdfast/terminal/frame/given-file";
import { quoted } from "@holdfast/terminal/frame/plain-text";

/** `FILE#NAME` chooses one of the agents of a file of code. A file whose name has a `#` is itself. */
export function chosenAgent(
  fileAndName: string,
  cwd: string,
): { readonly path: string; readonly chosen: string | undefined } {
  const at = fileAndName.lastIndexOf("#");
  const path = fileAndName.slice(0, at);
  const isWhole = at <= 0 || !CODE_ENDINGS.includes(extname(path)) || existsSync(resolve(cwd, fileAndName));
  return isWhole ? { path: fileAndName, chosen: undefined } : { path, chosen: fileAndName.slice(at + 1) };
}

/**
 * A file that is added to a folder later would not be noticed, so the files are named.
 *
 * @throws HoldfastError `agent_invalid` for a folder.
 */
export function refuseFolder(path: string): void {
  if (!isFolder(path)) return;
  const endings = readdirSync(path).map((name) => extname(name));
  const ending = [".md", ".toml", ...CODE_ENDINGS].find((one) => endings.includes(one)) ?? ".md";
  throw new HoldfastError("agent_invalid", `${path} is a folder`, {
    at: path,
    got: "a folder",
    expected: "files of agents, in Markdown or in code",
    fix: `name its files; a shell does so for a pattern: \`--agents ${quoted(path)}/*${ending}\``,
  });
}
