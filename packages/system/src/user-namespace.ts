// A user namespace for one command (`findUserNamespace`). The kernel then refuses the command the
// environment, the descriptors and the memory of every process outside, also of the same user.
//
//   - One trial decides, because what a machine allows cannot be read anywhere. The trial reads the
//     environment of this process, and has to fail.
//   - The command has the same user. For root all users stay what they are, so that root can install
//     packages. For another user `sudo` does not work inside.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

const FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
const PROBE = '! head -c 1 /proc/"$1"/environ >/dev/null 2>&1';

/**
 * @returns the words before a command line, which put the command into a namespace of its own; `undefined`
 *   where there is none.
 */
export async function findUserNamespace(): Promise<readonly [string, ...string[]] | undefined> {
  if (process.platform !== "linux") return undefined;
  const unshare = FOLDERS.map((folder) => `${folder}/unshare`).find((path) => existsSync(path));
  if (unshare === undefined) return undefined;
  for (const map of maps()) {
    const words = [unshare, "--user", ...map, "--"] as const;
    if (await isUsable([...words, "/bin/sh", "-c", PROBE, "probe", String(process.pid)])) return words;
  }
  return undefined;
}

function maps(): readonly (readonly string[])[] {
  const own = ["--map-current-user"];
  if (process.getuid?.() !== 0) return [own];
  const all = [...mapOf("users", "uid"), ...mapOf("groups", "gid")];
  return [all, own];
}

function mapOf(what: "users" | "groups", id: "uid" | "gid"): readonly string[] {
  const ranges = readFileSync(`/proc/self/${id}_map`, "utf8").trim().split("\n");
  return ranges.map((range) => {
    const [first, , count] = range.trim().split(/\s+/);
    return `--map-${what}=${first},${first},${count}`;
  });
}

/** Its output is closed, and it has no variable of ours. */
function isUsable([program, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = spawn(program, args, { cwd: "/", env: { PATH: FOLDERS.join(":") }, stdio: "ignore" });
    probe.once("exit", (code) => resolve(code === 0));
    probe.once("error", () => resolve(false));
  });
}
