// Scripts whose name another command has: `otherCommand` on this machine, and `hiddenIn` in a workspace.
//
//   - The commands of scripts stand behind all others on the PATH, so the other command runs. An agent then
//     calls the script by its path (`commandPath`).
//   - The sandbox of a session has other programs than this machine, so a session asks its own shell.

import { programOnPath, type Workspace } from "@holdfast/workspace";

import { SCRIPT_BIN } from "../tasks/script-calls.ts";

/** The words of a shell that a script can be named like: reserved ones, and commands of its own. */
const SHELL_WORDS: ReadonlySet<string> = new Set(
  (
    "alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown do done echo elif else " +
    "enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs kill let local logout popd " +
    "printf pushd pwd read readarray readonly return select set shift shopt source suspend test then time times trap true type " +
    "typeset ulimit umask unalias unset until wait while"
  ).split(" "),
);
const LOOK_MS = 30_000;

/** The command as the shell of an agent finds it in any case, from the root of the workspace. */
export function commandPath(name: string): string {
  return `${SCRIPT_BIN}/${name}`;
}

/** The command of this machine that hides a script in a shell, for people. */
export function otherCommand(name: string, path = ""): string | undefined {
  return SHELL_WORDS.has(name) ? "a command of the shell itself" : programOnPath(name, path);
}

/** The names that another command has in the shell of a workspace. It is empty where the shell does not answer. */
export async function hiddenIn(workspace: Workspace, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const look = `for name in ${names.join(" ")}; do command -v "$name" >/dev/null 2>&1 && echo "$name"; done; true`;
  const { stdout } = await workspace.execute(look, { timeoutMs: LOOK_MS });
  const found = new Set(stdout.split("\n"));
  return new Set(names.filter((name) => SHELL_WORDS.has(name) || found.has(name)));
}
