// Runs the program of an external agent in the sandbox `bubblewrap` (`openEnclosure`). Linux only.
// `seatbelt-enclosure.ts` does it on macOS.
//
//   - The program sees the system, its own installation, the folders that its adapter or its profile names,
//     and that of the session. It writes to these folders alone. The rest of the home folder is empty, and no
//     process of this machine is seen.
//   - It has the network of this machine, because it reaches its model and the tools of its session by it.
//   - `.git` is read-only and `.holdfast` is hidden, as for commands of our own agents. The program cannot
//     commit.
//   - A session that began in the sandbox never continues outside of it. Where the sandbox is missing, its
//     turn fails before a process starts.
//   - The folder itself opens no other place to the program than a repository of git.
//   - No program writes to a folder that holds the home folder or what decides about rights, also where a
//     profile names it.
//
// Leaky: the program can change its own settings, such as its hooks, and its next start outside of the
// sandbox reads them. It can also change the other places of the folder that give rights. Where they are
// read-only OpenCode does not start, and the own sandbox of Codex fails.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder } from "@holdfast/system";

import {
  bubblewrapSandbox,
  type GuardedPlaces,
  guardPlaces,
  hiddenPlaces,
  hostEnvironment,
  nestedGuards,
  pathOutside,
  programOnPath,
  type SandboxBackend,
  seatbeltSandbox,
  visiblePlaces,
} from "@holdfast/workspace";
import type {
  Enclose,
  ExternalAgentProtocol,
  ExternalIntent,
  IntendedProfile,
} from "../external-agent-protocol.ts";
import { seatbelted, type EnclosedPlaces } from "./seatbelt-enclosure.ts";

/** The sandboxes that can hold a whole program, and how each of them starts it. */
const ENCLOSURES: readonly (readonly [
  SandboxBackend,
  (enclosed: EnclosedPlaces, places: GuardedPlaces) => Enclose,
])[] = [
  [bubblewrapSandbox, bubblewrapped],
  [seatbeltSandbox, seatbelted],
];
const ENCLOSING = ENCLOSURES.map(([{ name }]) => name);
/** The sandboxes that were tried in this process, by commands that attempt to break out. */
const checked = new Map<string, ReturnType<SandboxBackend["check"]>>();

/**
 * @returns `undefined` for a session without a sandbox.
 * @throws HoldfastError where the program cannot work in one, or this machine has none.
 */
export async function openEnclosure(
  protocol: Pick<ExternalAgentProtocol, "name" | "ownFolders">,
  intent: Pick<ExternalIntent, "folder" | "program"> & {
    readonly sandbox?: string | undefined;
    readonly profile?: IntendedProfile | undefined;
  },
): Promise<Enclose | undefined> {
  const { sandbox, folder, program, profile } = intent;
  if (sandbox === undefined) return undefined;
  const found = ENCLOSURES.find(([{ name }]) => name === sandbox);
  if (found === undefined)
    throw new HoldfastError(
      "invalid_input",
      `the program of ${protocol.name} cannot run in the sandbox "${sandbox}"`,
      {
        expected: `${ENCLOSING.join(" or ")}: the others run commands and not a program that talks`,
        fix: `give \`--sandbox NAME\`, or \`"sandbox": "NAME"\` in the input, with the one of them that works here (\`holdfast doctor\`), or leave it out`,
      },
    );
  const [backend, enclose] = found;
  const own = protocol.ownFolders?.(profile);
  if (own === undefined)
    throw new HoldfastError(
      "invalid_input",
      `${protocol.name} cannot work in a sandbox: its own folders are not known`,
      {
        expected: "the folders of its settings and sessions",
        fix: "name them in a profile (`folders`, with `written` and `read`), or leave `sandbox` out",
      },
    );
  const wide = own.written.find(holdsRights);
  if (wide !== undefined)
    throw new HoldfastError("policy_denied", `${protocol.name} may not write to ${wide} in a sandbox`, {
      expected: "folders that hold neither your home folder nor the settings of Holdfast",
      fix: "name the folders below it that the program needs, in `folders` of the profile",
    });
  const check = await (checked.get(sandbox) ?? tried(backend));
  if (check.status !== "ready")
    throw new HoldfastError("config_invalid", `the sandbox ${sandbox} cannot be used: ${check.reason}`, {
      fix: check.fix,
    });
  const places = guardPlaces(folder, { granting: false });
  if (typeof places === "string") throw new HoldfastError("policy_denied", places);
  for (const path of own.written) makePrivateFolder(path);
  const readable = [
    ...own.read,
    dirname(program),
    ...installationOf(realpathSync(program)),
    dirname(process.execPath), // The program of the session's tools.
    ...(profile?.mcpFile ? [profile.mcpFile] : []),
    ...repositoryOf(places.git),
  ];
  return enclose({ folder, written: own.written, readable }, places);
}

function holdsRights(path: string): boolean {
  const { HOME = "/", XDG_DATA_HOME = join(HOME, ".local/share") } = hostEnvironment;
  return [HOME, join(HOME, ".holdfast"), join(XDG_DATA_HOME, "holdfast")].some(
    (kept) => kept === path || kept.startsWith(path.endsWith("/") ? path : `${path}/`),
  );
}

function tried(backend: SandboxBackend): ReturnType<SandboxBackend["check"]> {
  const check = backend.check();
  checked.set(backend.name, check);
  return check;
}

function bubblewrapped({ folder, written, readable }: EnclosedPlaces, places: GuardedPlaces): Enclose {
  const bwrap = programOnPath("bwrap", pathOutside(hostEnvironment["PATH"] ?? "", folder)) ?? "bwrap";
  const names = "/run/systemd/resolve"; // The names of the network.
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
    ...[...readable, names, ...more].flatMap((path) => ["--ro-bind-try", path, path]),
    ...[...written, folder].flatMap((path) => ["--bind", path, path]),
    "--tmpfs",
    places.own,
    "--remount-ro",
    places.own,
    "--ro-bind",
    places.git,
    places.git,
    ...nestedGuards(folder),
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

/** The repository of a worktree, which is in another folder. A file `.git` that came with the folder may name any place. */
function repositoryOf(git: string): readonly string[] {
  const [, named] = /^gitdir: (.+)/.exec(textOf(git) ?? "") ?? [];
  if (named === undefined) return [];
  const own = resolve(dirname(git), named);
  const shared = textOf(join(own, "commondir"))?.trim();
  const common = shared === undefined ? own : resolve(own, shared);
  const isRepository = ["objects", "refs"].every((name) => existsSync(join(common, name)));
  return isRepository && existsSync(join(own, "HEAD")) ? [...new Set([own, common])] : [];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // A folder, or nothing.
  }
}
