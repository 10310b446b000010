// A fresh copy of the example repository, with its first commit.

import { execFile } from "node:child_process";
import { appendFile, cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const FIXTURE = fileURLToPath(new URL("./fixture/", import.meta.url));
/** An author, and nothing that the user's own configuration would run at a commit. */
const CONFIG = `[user]
	name = Example
	email = example@holdfast.invalid
[commit]
	gpgSign = false
[core]
	hooksPath = /dev/null
`;

/** @param folder must not exist yet. */
export async function copyFixture(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await cp(FIXTURE, folder, { recursive: true });
  await git(folder, "init", "--quiet", "--initial-branch=main");
  await appendFile(join(folder, ".git/config"), CONFIG);
  await git(folder, "add", "--all");
  await git(folder, "commit", "--quiet", "--message=The till, as it is");
}

export async function git(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("git", args, { cwd: folder, env: withoutGit(process.env) });
  return stdout.trim();
}

/** Run from a hook of git, its variables would send us to the repository of the hook. */
function withoutGit(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("GIT_")));
}
