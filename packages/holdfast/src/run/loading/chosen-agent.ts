// `chosenAgent`, `namesAgentFile`: an argument that names a file of code and perhaps one of its agents, or an agent file.

import { existsSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";

/** The endings of files of code. */
export const EXTENSIONS = [".ts", ".mts", ".js", ".mjs", ".cts", ".cjs", ".tsx"];

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

/** Whether `run` reads this argument as an agent file or the name of one, and not as a file of code. */
export function namesAgentFile(nameOrPath: string, cwd: string): boolean {
  const path = resolve(cwd, nameOrPath);
  if ([".md", ".toml"].includes(extname(path))) return true;
  if (existsSync(path)) return existsSync(join(path, "agent.json")) || basename(path) === "agent.json";
  // `run hello` beside hello.ts is a file whose ending was forgotten.
  if (EXTENSIONS.some((extension) => existsSync(`${path}${extension}`))) return false;
  return /^(?:[a-z]+:)?[\w.-]+$/.test(nameOrPath) && extname(path) === "";
}
