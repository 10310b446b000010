// Runs the program of an external agent in the sandbox `bubblewrap` (`openEnclosure`). Linux only.
//
//   enclosure-1. The program sees the system, its own installation, the folders of its own that its adapter names, and the folder of the
//       session. It writes to the last two alone. The rest of the home folder is empty, and no process of this machine is seen.
//   enclosure-2. It has the network of this machine, because it reaches its model and the tools of its session by it.
//   enclosure-3. `.git` is read-only and `.holdfast` is hidden, as for commands of our own agents. The program cannot commit.
//   enclosure-4. A session that began in the sandbox never continues outside of it. Where the sandbox is missing, its turn fails before a process
//       starts.
//
// Leaky: the program can change its own settings, such as its hooks, and its next start outside of the sandbox reads them.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder } from "@holdfast/runtime/internal";

import { hiddenPlaces, visiblePlaces } from "../../sandboxes/bubblewrap-commands.ts";
import { bubblewrapSandbox } from "../../sandboxes/bubblewrap-sandbox.ts";
import { guardPlaces } from "../../workspace/guarded-places.ts";
import { hostEnvironment } from "../../workspace/host-environment.ts";
import { pathOutside, programOnPath } from "../../workspace/program-on-path.ts";
import type { Enclose, ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";

/** The sandbox was tried in this process, by commands that attempt to break out. */
let checked: ReturnType<typeof bubblewrapSandbox.check> | undefined;

/**
 * @returns `undefined` for a session without a sandbox.
 * @throws HoldfastError where the program cannot work in one, or this machine has none.
 */
export async function openEnclosure(
  protocol: Pick<ExternalAgentProtocol, "name" | "ownFolders">,
  { sandbox, folder, program, profile }: Pick<ExternalIntent, "sandbox" | "folder" | "program" | "profile">,
): Promise<Enclose | undefined> {
  if (sandbox === undefined) return undefined;
  if (sandbox !== bubblewrapSandbox.name)
    throw new HoldfastError(
      "invalid_input",
      `the program of ${protocol.name} cannot run in the sandbox "${sandbox}"`,
      {
        expected: "bubblewrap: the others run commands and not a program that talks",
        fix: 'write `"sandbox": "bubblewrap"` in the input, or leave it out',
      },
    );
  const own = protocol.ownFolders?.();
  if (own === undefined)
    throw new HoldfastError(
      "invalid_input",
      `${protocol.name} cannot work in a sandbox: its own folders are not known`,
      {
        expected: "claude-code, codex or pi",
        fix: "leave `sandbox` out, or choose one of these agents",
      },
    );
  checked ??= bubblewrapSandbox.check();
  const check = await checked;
  if (check.status !== "ready")
    throw new HoldfastError("config_invalid", `the sandbox bubblewrap cannot be used: ${check.reason}`, {
      fix: check.fix,
    });
  const places = guardPlaces(folder);
  if (typeof places === "string") throw new HoldfastError("policy_denied", places);
  for (const path of own.written) makePrivateFolder(path);
  const bwrap = programOnPath("bwrap", pathOutside(hostEnvironment["PATH"] ?? "", folder)) ?? "bwrap";
  const readable = [
    ...own.read,
    dirname(program),
    ...installationOf(realpathSync(program)),
    dirname(process.execPath), // The program of the session's tools.
    "/run/systemd/resolve", // The names of the network.
    ...(profile?.mcpFile ? [profile.mcpFile] : []),
    ...repositoryOf(places.git),
  ];
  return (argv, { HOME = "/", PATH = "" }, more = []) => [
    bwrap,
    ..."--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent".split(
      " ",
    ),
    ..."--new-session --cap-drop ALL".split(" "),
    ...visiblePlaces(PATH),
    ...hiddenPlaces(),
    ..."--proc /proc --dev /dev --tmpfs /tmp --dir /run --setenv TMPDIR /tmp --dir".split(" "),
    HOME,
    ...[...readable, ...more].flatMap((path) => ["--ro-bind-try", path, path]),
    ...[...own.written, folder].flatMap((path) => ["--bind", path, path]),
    "--tmpfs",
    places.own,
    "--remount-ro",
    places.own,
    "--ro-bind",
    places.git,
    places.git,
    "--chdir",
    folder,
    "--",
    ...argv,
  ];
}

/** The folder of a program, and the packages beside that of a program from npm. */
function installationOf(program: string): readonly string[] {
  const [packages] = /^.*?\/node_modules(?=\/)/.exec(program) ?? [];
  return [dirname(program), ...(packages === undefined ? [] : [packages])];
}

/** The repository of a worktree, which is in another folder. */
function repositoryOf(git: string): readonly string[] {
  const [, named] = /^gitdir: (.+)/.exec(textOf(git) ?? "") ?? [];
  if (named === undefined) return [];
  const own = resolve(dirname(git), named);
  const common = textOf(join(own, "commondir"))?.trim();
  return [own, ...(common === undefined ? [] : [resolve(own, common)])].filter((path) => existsSync(path));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // A folder, or nothing.
  }
}
