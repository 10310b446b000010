// Tries to break out of a sandbox before its first use on a machine (`runCanaries`), and answers the check of
// a backend by that (`checkByCanaries`).
//
//   - A sandbox that wraps a command without confining it is refused: a program that is installed proves
//     nothing.
//   - The canaries need no internet and leave nothing behind. They try what the capabilities say is held in.
//   - The canary of memory runs with a small limit of its own. Where nothing limits it, it takes
//     `MEMORY_TRIED` and no more.

import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIB } from "@holdfast/core";

import type { WorkspaceCapabilities } from "../../workspace/capabilities.ts";
import type { Execution } from "../../workspace/execute.ts";
import { hostEnvironment } from "../../workspace/host-environment.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import type { SandboxCheck, SandboxOptions } from "../sandbox-backend.ts";
import { tryEach } from "./attempts.ts";
import { tryNetwork, WAYS } from "./network-attempts.ts";

/** One attempt to break out. */
export interface Canary {
  readonly name: string;
  readonly escaped: boolean;
}

export interface CanaryTrial {
  /** The promises of the sandbox. Nothing else is tried. */
  readonly capabilities: WorkspaceCapabilities;
  /** Opens a workspace over a folder, with the options and the limits of the trial. */
  readonly open: (root: string, options: SandboxOptions, limits: TrialLimits) => Promise<Workspace>;
}

/** The limits of a trial, in place of those of sessions. */
export interface TrialLimits {
  readonly memoryBytes: number;
}

export interface CanaryCheck extends CanaryTrial {
  /** The program that would run the commands, for people. */
  readonly found: string;
  /** The advice where the sandbox runs no command. */
  readonly fix: string;
  /** The words by which the machine refuses what the sandbox needs, in the error of a command that did not run. */
  readonly refusal?: RegExp;
}

/** How the kernel refuses a program of namespaces, as in a container or where an administrator forbids them. */
export const NAMESPACES_REFUSED =
  /(namespace|uid.?map|setgroups|loopback|mount|pivot_root|make \/ slave|clone|unshare).*(not permitted|denied|No space left|not allow)/i;

const TRIAL_LIMITS: TrialLimits = { memoryBytes: 200 * MIB };
const MEMORY_TRIED = 300 * MIB;

const SECRET = "holdfast-canary";
const CANARY_MS = 20_000;
/** The start of Node takes longer than all other ways together, and reaches nothing that they do not. */
const QUICK_WAYS = WAYS.filter(({ program, target }) => program !== "node" && target !== "metadata");

/** The answer of `SandboxBackend.check`, once the programs of the sandbox are there. */
export async function checkByCanaries({ found, fix, refusal, ...trial }: CanaryCheck): Promise<SandboxCheck> {
  try {
    const canaries = await runCanaries(trial);
    const escaped = canaries.filter((canary) => canary.escaped).map(({ name }) => name);
    if (escaped.length === 0)
      return { status: "ready", found: `${found}, which held in ${canaries.length} attempts to break out` };
    return {
      status: "unavailable",
      reason: `a command could ${escaped.join(", and ")}`,
      fix: "use another sandbox on this machine, and report this",
    };
  } catch (error) {
    const reason = (error as Error).message;
    const isRefused = refusal?.test(reason) === true;
    return { status: "unavailable", reason, fix, ...(isRefused ? { cause: "forbidden" } : {}) };
  }
}

/** @throws Error when the sandbox cannot run a command at all. */
export async function runCanaries({ capabilities, open }: CanaryTrial): Promise<readonly Canary[]> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-canary-")));
  const place = { base, home: join(base, "home"), root: join(base, "home", "project") };
  const bare = join(place.home, "bare"); // A folder without a repository.
  for (const folder of [place.home, place.root, bare]) mkdirSync(folder);
  for (const folder of [".git", ".holdfast"]) mkdirSync(join(place.root, folder));
  writeFileSync(join(place.home, "credentials"), SECRET);
  writeFileSync(join(place.root, ".holdfast", "config.json"), SECRET);
  writeFileSync(join(place.root, ".git", "config"), "");
  const options: SandboxOptions = { inherit: { ...hostEnvironment, HOME: place.home } };
  const opened: Workspace[] = [];
  const runIn = async (root: string): Promise<Run> => {
    const workspace = await open(root, options, TRIAL_LIMITS);
    opened.push(workspace);
    return (line) => workspace.execute(line, { timeoutMs: CANARY_MS });
  };
  try {
    const run = await runIn(place.root);
    const works = await run("echo works > made; cat made");
    if (works.stdout !== "works\n")
      throw new Error(
        `it cannot run a command: ${works.stderr.trim().slice(0, 300) || JSON.stringify(works.end)}`,
      );
    const { files, credentials, network, limits, exec } = capabilities;
    const runBare = await runIn(bare);
    return [
      ...(files === "workspace" ? await tryFiles(run, runBare, place, bare) : []),
      ...(credentials === "hidden" ? await tryCredentials(run, runBare, place, bare) : []),
      ...(network === "none" ? await tryAddresses(run, base) : []),
      // The emulated shell has no program that takes memory at once.
      ...(limits.includes("memory") && exec !== "emulated" ? await tryMemory(run) : []),
    ];
  } finally {
    await Promise.all(opened.map((workspace) => workspace.dispose()));
    rmSync(base, { recursive: true, force: true });
  }
}

type Run = (line: string) => Promise<Execution>;
interface TrialPlace {
  readonly base: string;
  readonly home: string;
  readonly root: string;
}

async function tryFiles(
  run: Run,
  runBare: Run,
  { base, home, root }: TrialPlace,
  bare: string,
): Promise<readonly Canary[]> {
  await tryEach(run, [
    `echo x > ${base}/outside`,
    "echo x > ../outside",
    "echo x >> .git/config",
    "echo x > .holdfast/new",
  ]);
  const seen = await tryEach(run, [`cat /proc/${process.pid}/cmdline`, "cat .holdfast/config.json"]);
  await tryEach(runBare, ["mkdir -p .git", "echo x > .git/config"]);
  const isMade = exists(join(bare, ".git", "config"));
  rmSync(join(bare, ".git"), { recursive: true, force: true });
  const config = readFileSync(join(root, ".git", "config"), "utf8");
  return [
    {
      name: "write outside of the folder",
      escaped: exists(join(base, "outside")) || exists(join(home, "outside")),
    },
    {
      name: "change .git, or read or change .holdfast",
      escaped: config !== "" || seen.stdout.includes(SECRET) || exists(join(root, ".holdfast", "new")),
    },
    { name: "make a .git where there was none", escaped: isMade },
    { name: "see processes of this machine", escaped: seen.stdout.includes(process.execPath) },
  ];
}

async function tryCredentials(
  run: Run,
  runBare: Run,
  { home }: TrialPlace,
  bare: string,
): Promise<readonly Canary[]> {
  const read = await tryEach(
    run,
    ["../credentials", `${home}/credentials`, `/proc/self/root${home}/credentials`].map(
      (path) => `cat ${path}`,
    ),
  );
  rmSync(join(bare, ".git"), { recursive: true, force: true });
  const linked = await tryEach(runBare, ["ln -s .. .git", "cat .git/credentials"]);
  return [
    { name: "read a file of the home folder", escaped: read.stdout.includes(SECRET) },
    { name: "read a file through a link named .git", escaped: linked.stdout.includes(SECRET) },
  ];
}

async function tryAddresses(run: Run, base: string): Promise<readonly Canary[]> {
  const { reached } = await tryNetwork(run, base, QUICK_WAYS);
  const { stdout } = await run("readlink /proc/self/ns/net");
  const ofSockets = reached.filter((way) => !way.startsWith("server") && way !== "a server");
  return [
    {
      name: "reach an address of this machine",
      escaped: reached.length > ofSockets.length || stdout.includes(ownNetwork()),
    },
    { name: "reach a Unix socket of this machine", escaped: ofSockets.length > 0 },
  ];
}

async function tryMemory(run: Run): Promise<readonly Canary[]> {
  const take = (bytes: number) => run(`dd if=/dev/zero of=/dev/null bs=${bytes} count=1`);
  const small = await take(MIB);
  if (small.end.type !== "exit" || small.end.exitCode !== 0)
    throw new Error(`its limit of memory cannot be tried: ${small.stderr.trim().slice(0, 300)}`);
  const { end } = await take(MEMORY_TRIED);
  const escaped = end.type === "exit" && end.exitCode === 0;
  return [{ name: "use more memory than its limit", escaped }];
}

/** The name of the network namespace of this process. */
function ownNetwork(): string {
  try {
    return readlinkSync("/proc/self/ns/net");
  } catch {
    return "no such namespace";
  }
}

function exists(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}
