// `hookWarnings`: the hooks whose program does not exist. Such a hook fails at each call, and a guard blocks it.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { isGuard, type AgentPlaces, type AgentRecord } from "@holdfast/agents";

/** The first word of a line for the shell, with its quotes. */
const WORD = /^\s*((?:"[^"]*"|'[^']*'|[^\s"';&|<>()`])+)/;
/** Programs whose first argument is the file that they run. */
const INTERPRETER = /^(?:sh|bash|zsh|dash|node|bun|deno|ruby|perl|python[\d.]*)$/;
const ROOT = /\$\{?CLAUDE_PROJECT_DIR\}?/g;

export function hookWarnings(
  hooks: AgentRecord["hooks"],
  { project, env }: Pick<AgentPlaces, "project" | "env">,
): readonly string[] {
  return hooks.flatMap((hook) => {
    const { point, run, onError } = hook;
    const missing = run.type === "command" ? missingProgram(run.command, project, env) : undefined;
    if (missing === undefined) return [];
    const effect = onError === "block" || isGuard(hook) ? "it blocks everything" : "it does nothing";
    return [`a hook at ${point} cannot run, so ${effect}: there is no ${missing}`];
  });
}

/** Nothing where the program cannot be told from the line alone. The line itself is not run. */
function missingProgram(line: string, project: string, env: AgentPlaces["env"]): string | undefined {
  const [program, rest] = firstWord(line, project);
  if (program === undefined || program.includes("=")) return undefined;
  if (!isThere(program, project, env)) return program;
  const [file] = INTERPRETER.test(program) ? firstWord(rest, project) : [];
  const isFile = file?.includes("/") === true && !file.startsWith("-");
  return isFile && !existsSync(resolve(project, file)) ? file : undefined;
}

function firstWord(line: string, project: string): readonly [string | undefined, string] {
  const [all = "", word = ""] = WORD.exec(line) ?? [];
  const plain = word.replaceAll(ROOT, () => project).replaceAll(/["']/g, "");
  return [plain === "" || /[$~*?\\]/.test(plain) ? undefined : plain, line.slice(all.length)];
}

function isThere(program: string, project: string, env: AgentPlaces["env"]): boolean {
  if (program.includes("/")) return existsSync(resolve(project, program));
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  if (folders.some((folder) => existsSync(join(folder, program)))) return true;
  // A word of the shell itself, such as `if` or `cd`.
  const { status } = spawnSync("/bin/sh", ["-c", 'command -v -- "$1"', "sh", program], {
    env: { PATH: env["PATH"] ?? "" },
    stdio: "ignore",
  });
  return status === 0 || status === null;
}
