// Runs commands of a workspace in namespaces of their own, by `bwrap` (`bubblewrapCommands`). Linux only.
//
//   - A command sees the system's programs and libraries, read-only, and the folder. It sees nothing else of
//     this machine: no home folder, no socket, no process, no network, also not the one of this machine.
//   - In the folder, `.git` and the places that give rights are read-only, and `.holdfast` is hidden. A
//     folder without them gets empty ones, because only a place that exists can be guarded. A command is
//     refused where one of them is a link (`guardPlaces`). Below any folder the places that are there are
//     guarded too, and a place that a command makes there is renamed after it (`nested-places.ts`). No
//     database of Holdfast in the folder is there for a command. Files that rules of the agent deny are
//     hidden or read-only (`masked-places.ts`).
//   - A command has no capability and cannot gain one. Its memory is limited for each process, and so are its
//     files.
//   - When `bwrap` ends, the kernel ends every process of the command, also one that left its group or
//     session.
//   - Holdfast's own calls of git run on this machine. A command can change no `.git`, so git finds no
//     program of the command there.

import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import { MIB } from "@holdfast/core";

import { ISOLATED_CAPABILITIES } from "../workspace/capabilities.ts";
import { hostCommands, type CommandRunner } from "../workspace/command-runner.ts";
import type { Launch } from "../workspace/execute.ts";
import { guardPlaces, refusedExecution, type GuardedPlaces } from "../workspace/guarded-places.ts";
import { findMasked, type MaskedPlaces } from "./mounts/masked-places.ts";
import { mountsOf, type Mount } from "./mounts/mount-list.ts";
import { findNested, withoutNewPlaces } from "./mounts/nested-places.ts";

export interface BubblewrapOptions {
  /** Absolute paths. */
  readonly bwrap: string;
  readonly prlimit: string;
  /** The folder, without symbolic links. */
  readonly root: string;
  readonly fileBytes: number;
  /** The memory of each process of a command. */
  readonly memoryBytes?: number;
}

/** Compilers and test runners need some gigabytes. */
const MEMORY_BYTES = 4 * 1024 * MIB;
/** The kernel exempts root from this limit. */
const PROCESSES = 4_096;
/** The folders that programs need, apart from those of PATH. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store"];
/** Files of the system with secrets. Only root can read them. */
const SECRET_FILES = ["/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers"];
const SECRET_FOLDERS = ["/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d"];

export function bubblewrapCommands(options: BubblewrapOptions): CommandRunner {
  const host = hostCommands();
  return {
    sandbox: "bubblewrap",
    capabilities: ISOLATED_CAPABILITIES,
    containment:
      "commands run in namespaces without network; they see the system's programs and can change the files of this folder alone",
    run: async (request, isOwn) => {
      // A command can change no `.git`, so git finds no program of the command there.
      if (isOwn) return host.run(request, true);
      const places = guardPlaces(options.root);
      if (typeof places === "string") return refusedExecution(request, places);
      const masked = findMasked(options.root, request.mask);
      if (typeof masked === "string") return refusedExecution(request, masked);
      const argv = wrapped(request, places, masked, options);
      return withoutNewPlaces(options.root, masked, () => host.run({ ...request, argv }, false));
    },
    endTagged: (tag) => host.endTagged(tag),
    close: () => host.close(),
  };
}

/** The command line that starts a command in its namespaces. */
function wrapped(
  request: Launch,
  places: GuardedPlaces,
  masked: MaskedPlaces,
  options: BubblewrapOptions,
): Launch["argv"] {
  const { bwrap, prlimit, root, fileBytes, memoryBytes = MEMORY_BYTES } = options;
  const { HOME = "/", PATH = "" } = request.env;
  const isolation = "--unshare-all --unshare-user --die-with-parent --new-session --cap-drop ALL".split(" ");
  const scratch = `--proc /proc --dev /dev --tmpfs /tmp --dir /run --setenv TMPDIR /tmp`.split(" ");
  const folder = ["--dir", HOME, "--bind", root, root, "--chdir", request.cwd];
  const guards = mountsOf(root, places, findNested(root), masked).flatMap(mountOptions);
  const limits = [`--fsize=${fileBytes}`, `--data=${memoryBytes}`, `--nproc=${PROCESSES}`, "--core=0"];
  // The shell reports a program that does not exist by the exit code 127.
  const command = ["/bin/sh", "-c", 'exec "$@"', "sh", ...request.argv];
  return [
    bwrap,
    ...isolation,
    ...visiblePlaces(PATH),
    ...hiddenPlaces(),
    ...scratch,
    ...folder,
    ...guards,
    "--",
    prlimit,
    ...limits,
    "--",
    ...command,
  ];
}

function mountOptions({ path, kind }: Mount): readonly string[] {
  switch (kind) {
    case "hidden folder":
      return ["--tmpfs", path, "--remount-ro", path];
    case "hidden file":
      return ["--ro-bind", "/dev/null", path];
    case "read-only":
      return ["--ro-bind", path, path];
    case "writable":
      return ["--bind", path, path];
  }
}

/** Options for the places below a folder that `guardPlaces` does not know. */
export function nestedGuards(root: string): readonly string[] {
  const { guarded, hiddenFolders, hiddenFiles } = findNested(root);
  const mounts = (kind: Mount["kind"], paths: readonly string[]) =>
    paths.flatMap((path) => mountOptions({ path, kind }));
  return [
    ...mounts("read-only", guarded),
    ...mounts("hidden folder", hiddenFolders),
    ...mounts("hidden file", hiddenFiles),
  ];
}

/** Options that show the programs and libraries of the system and of PATH, read-only. */
export function visiblePlaces(path: string): readonly string[] {
  return [...SYSTEM, ...programFolders(path)].flatMap((folder) => ["--ro-bind-try", folder, folder]);
}

/**
 * The folders of PATH that are not the system's, such as that of a Node of the user's, each with the
 * libraries beside it.
 */
export function programFolders(path: string): readonly string[] {
  return path
    .split(":")
    .filter(
      (folder) => isAbsolute(folder) && folder !== "/" && !SYSTEM.some((known) => isWithin(folder, known)),
    )
    .flatMap((folder) => [folder, join(dirname(folder), "lib")]);
}

function isWithin(path: string, folder: string): boolean {
  const rest = relative(folder, path);
  return rest === "" || (!rest.startsWith("..") && !isAbsolute(rest));
}

/** Options that hide the secrets among the visible places. */
export function hiddenPlaces(): readonly string[] {
  return [
    ...SECRET_FILES.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...SECRET_FOLDERS.filter((path) => existsSync(path)).flatMap((path) => ["--tmpfs", path]),
  ];
}
