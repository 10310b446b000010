// A PID namespace for one process tree (`openPidNamespace`): when its first process ends, the kernel ends all
// others in it.
//
//   - `unshare` makes the namespace with a /proc of its own. Its first process is `cat`, which reads a pipe
//     that only our process holds. The death of our process therefore ends the tree at once, whatever has
//     left its group or cleared its environment.
//   - `nsenter` starts the command inside and ends as the command does, also by the same signal. The command
//     is not the first process itself: the kernel ignores signals without a handler there, and nobody would
//     collect orphans.
//
// Root needs no user namespace. For another user the namespace maps only that user, so `sudo` does not work
// inside.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";

import { within } from "./within.ts";

export interface PidNamespace {
  /** The program and arguments that run a command inside. */
  enter(argv: readonly string[], cwd: string): readonly [string, ...string[]];
  /** Ends every process inside. @returns whether none is left. */
  destroy(): Promise<boolean>;
  /** As `destroy`, without waiting: for the moment in which our own process ends. */
  destroyNow(): void;
}

/** How namespaces are made here; `unavailable` says why they cannot be. */
export type NamespaceSupport =
  | { readonly flags: readonly string[]; readonly unshare: string; readonly nsenter: string }
  | { readonly unavailable: string };

const KINDS: readonly (readonly string[])[] = [[], ["--user", "--map-current-user"]];
const FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
const READY_MS = 5_000;
const DESTROYED_MS = 5_000;
/** SIGCHLD is ignored, and `cat` keeps that: the kernel collects orphans that end. */
const FIRST_PROCESS = "trap '' CHLD; echo ready; exec cat";

/** Makes a namespace and runs a program in it, once per kind: what a machine allows cannot be read anywhere. */
export async function findNamespaceSupport(): Promise<NamespaceSupport> {
  if (process.platform !== "linux") return { unavailable: "this system has no PID namespaces" };
  const [unshare, nsenter] = ["unshare", "nsenter"].map((name) =>
    FOLDERS.map((folder) => `${folder}/${name}`).find((path) => existsSync(path)),
  );
  if (unshare === undefined || nsenter === undefined)
    return { unavailable: "there is no unshare or nsenter" };
  for (const flags of KINDS) {
    const support = { flags, unshare, nsenter };
    if (await isUsable(support)) return support;
  }
  return { unavailable: "this system does not let unshare make a PID namespace" };
}

/** Rejects when the system refuses, for example because too many namespaces exist. */
export async function openPidNamespace(
  support: Extract<NamespaceSupport, { readonly unshare: string }>,
): Promise<PidNamespace> {
  const { flags, unshare, nsenter } = support;
  const holder = spawn(
    unshare,
    [...flags, "--pid", "--mount-proc", "--propagation", "slave", "--kill-child", "--fork", "--"].concat([
      "/bin/sh",
      "-c",
      FIRST_PROCESS,
    ]),
    { cwd: "/", env: { PATH: FOLDERS.join(":") }, detached: true, stdio: ["pipe", "pipe", "ignore"] },
  );
  holder.stdin.on("error", () => {});
  const gone = new Promise<void>((resolve) => {
    holder.once("exit", () => resolve());
    holder.once("error", () => resolve());
  });
  const ready = new Promise<boolean>((resolve) => {
    holder.stdout.once("data", () => resolve(true));
    void gone.then(() => resolve(false));
  });
  const isReady = (await within(ready, READY_MS)) && (await ready);
  if (!isReady || holder.pid === undefined) {
    end(holder);
    throw new Error("unshare made no PID namespace");
  }
  unreference(holder);
  const at = `/proc/${holder.pid}/ns`;
  const user = flags.length > 0 ? [`--user=${at}/user`, "--preserve-credentials"] : [];
  return {
    enter: (argv, cwd) => [
      nsenter,
      ...user,
      `--mount=${at}/mnt`,
      `--pid=${at}/pid_for_children`,
      `--wdns=${cwd}`,
      "--",
      ...argv,
    ],
    destroy: async () => {
      // The first process ends when its pipe does, and the kernel lets it go last.
      holder.stdin.destroy();
      if (await within(gone, DESTROYED_MS)) return true;
      end(holder);
      return false;
    },
    destroyNow: () => end(holder),
  };
}

/** The first process is killed when `unshare` dies. */
function end(holder: ChildProcess): void {
  holder.stdin?.destroy();
  holder.kill("SIGKILL");
}

/** The holder alone keeps no event loop alive. */
function unreference(holder: ChildProcess): void {
  holder.unref();
  for (const pipe of [holder.stdin, holder.stdout]) (pipe as { unref?: () => void } | null)?.unref?.();
}

/** The /proc inside must be that of the namespace, and the working directory must be reachable. */
const PROBE =
  'read pid rest < /proc/self/stat && test "$pid" = $$ && test $$ -lt 10 && test "$(pwd -P)" = "$1"';

async function isUsable(support: Extract<NamespaceSupport, { readonly unshare: string }>): Promise<boolean> {
  try {
    const namespace = await openPidNamespace(support);
    const argv = namespace.enter(["/bin/sh", "-c", PROBE, "probe", "/"], "/");
    const probe = spawn(argv[0], argv.slice(1), { cwd: "/", env: {}, stdio: "ignore" });
    const code = await new Promise<number | null>((resolve) => {
      probe.once("exit", resolve);
      probe.once("error", () => resolve(null));
    });
    return (await namespace.destroy()) && code === 0;
  } catch {
    return false;
  }
}
