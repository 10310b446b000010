// `runCanaries`: tries to break out of a sandbox before its first use on a machine.
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
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIB } from "@holdfast/core";

import type { Workspace } from "../workspace/workspace.ts";

/** One attempt to break out. */
export interface Canary {
  readonly name: string;
  readonly escaped: boolean;
}

export interface CanaryTrial {
  /** Opens a workspace over the folder, for a user with this home folder. */
  readonly open: (root: string, home: string, limits: TrialLimits) => Promise<Workspace>;
  /** Whether the sandbox limits the memory of a command. */
  readonly limitsMemory?: boolean;
}

/** The limits of a trial, in place of those of sessions. */
export interface TrialLimits {
  readonly memoryBytes: number;
}

const TRIAL_LIMITS: TrialLimits = { memoryBytes: 200 * MIB };
const MEMORY_TRIED = 300 * MIB;

const SECRET = "holdfast-canary";
const CANARY_MS = 20_000;

/** @throws Error when the sandbox cannot run a command at all. */
export async function runCanaries({ open, limitsMemory = false }: CanaryTrial): Promise<readonly Canary[]> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-canary-")));
  const home = join(base, "home");
  const root = join(home, "project");
  const bare = join(home, "bare"); // A folder without a repository.
  for (const folder of [home, root, bare, join(root, ".git"), join(root, ".holdfast")]) mkdirSync(folder);
  writeFileSync(join(home, "credentials"), SECRET);
  writeFileSync(join(root, ".holdfast", "config.json"), SECRET);
  writeFileSync(join(root, ".git", "config"), "");
  const { server, port, visits } = await listen();
  const workspace = await open(root, home, TRIAL_LIMITS);
  const other = await open(bare, home, TRIAL_LIMITS);
  try {
    const run = (line: string) => workspace.execute(line, { timeoutMs: CANARY_MS });
    const works = await run("echo works > made; cat made");
    if (works.stdout !== "works\n")
      throw new Error(
        `it cannot run a command: ${works.stderr.trim().slice(0, 300) || JSON.stringify(works.end)}`,
      );
    await run(`echo x > ${base}/outside; echo x > ../outside; echo x >> .git/config; echo x > .holdfast/new`);
    const read = await run(
      `cat ../credentials ${home}/credentials .holdfast/config.json /proc/self/root${home}/credentials`,
    );
    const processes = await run(`cat /proc/${process.pid}/cmdline; readlink /proc/self/ns/net`);
    await run(
      `bash -c 'echo x > /dev/tcp/127.0.0.1/${port}'; curl -m 2 http://127.0.0.1:${port}/; ` +
        `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}), 2)'`,
    );
    const memory = limitsMemory
      ? await run(`dd if=/dev/zero of=/dev/null bs=${MEMORY_TRIED} count=1`)
      : undefined;
    const inBare = (line: string) => other.execute(line, { timeoutMs: CANARY_MS });
    await inBare("mkdir -p .git; echo x > .git/config");
    const isMade = exists(join(bare, ".git", "config"));
    rmSync(join(bare, ".git"), { recursive: true, force: true });
    await inBare("ln -s .. .git");
    const linked = await inBare("cat .git/credentials");
    return [
      {
        name: "write outside of the folder",
        escaped: exists(join(base, "outside")) || exists(join(home, "outside")),
      },
      {
        name: "change .git or .holdfast",
        escaped:
          readFileSync(join(root, ".git", "config"), "utf8") !== "" || exists(join(root, ".holdfast", "new")),
      },
      { name: "make a .git where there was none", escaped: isMade },
      { name: "read a file through a link named .git", escaped: linked.stdout.includes(SECRET) },
      { name: "read a file that is denied", escaped: read.stdout.includes(SECRET) },
      { name: "see processes of this machine", escaped: processes.stdout.includes(process.execPath) },
      {
        name: "reach an address of this machine",
        escaped: visits() > 0 || processes.stdout.includes(ownNetwork()),
      },
      ...(memory === undefined
        ? []
        : [
            {
              name: "use more memory than its limit",
              escaped: memory.end.type === "exit" && memory.end.exitCode === 0,
            },
          ]),
    ];
  } finally {
    await workspace.dispose();
    await other.dispose();
    await new Promise((resolve) => server.close(resolve));
    rmSync(base, { recursive: true, force: true });
  }
}

async function listen(): Promise<{
  readonly server: Server;
  readonly port: number;
  readonly visits: () => number;
}> {
  let count = 0;
  const server = createServer((socket) => {
    count++;
    socket.on("error", () => {}).destroy();
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port, visits: () => count };
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
