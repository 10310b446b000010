// The thread that runs commands of a virtual sandbox: a shell and its programs as JavaScript, without
// processes.
//
// A redirection to a file that is refused fails its command, and the line goes on.
//
// The thread has no environment. The files are those of the workspace's folder, under their real path; every
// other path is kept in memory and gone after the command.

import { parentPort, workerData } from "node:worker_threads";
import { MIB, toError } from "@holdfast/core";
import { Bash, getCommandNames, InMemoryFs, MountableFs, ReadWriteFs, type TransformPlugin } from "just-bash";

import type { PathMask } from "../workspace/paths/path-mask.ts";
import { guardedFiles } from "./guarded-files.ts";

export interface VirtualThreadData {
  readonly root: string;
  readonly fileBytes: number;
}

export interface VirtualCommand {
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
  readonly mask?: PathMask;
}

export interface VirtualResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One redirection of the shell's tree, as far as it is read and written here. */
interface Redirection {
  readonly type: "Redirection";
  readonly fd: number | null;
  readonly operator: string;
  readonly target: object;
}

/** A descriptor that the shell can have, and that no command line has a reason to use. */
const SPARE_FD = 63;

/** Commands of one line; a loop that never ends reaches its time-out long before. */
const STEPS_MAX = 10_000_000;
/** Output that the shell keeps. The workspace cuts it to its own limit. */
const OUTPUT_BYTES = 64 * MIB;

/** A file for each program of the shell. Without one, a program of the workspace on the PATH would go before. */
const PROGRAMS = Object.fromEntries(
  getCommandNames().flatMap((name) =>
    ["/bin", "/usr/bin"].map((folder) => [
      `${folder}/${name}`,
      { content: `# ${name}, a program of the emulated shell\n`, mode: 0o755 },
    ]),
  ),
);

const { root, fileBytes } = workerData as VirtualThreadData;
const folder = new ReadWriteFs({ root, maxFileReadSize: fileBytes });

parentPort?.on("message", (request: VirtualCommand) => {
  void run(request).then((result) => parentPort?.postMessage(result));
});

async function run({ command, cwd, env, input, mask }: VirtualCommand): Promise<VirtualResult> {
  try {
    const fs = new MountableFs({ base: new InMemoryFs(PROGRAMS) });
    fs.mount(root, guardedFiles(folder, fileBytes, mask));
    await fs.mkdir("/tmp", { recursive: true });
    await fs.mkdir(env["HOME"] ?? "/home/user", { recursive: true });
    const bash = new Bash({
      fs,
      cwd,
      env,
      executionLimits: {
        maxCommandCount: STEPS_MAX,
        maxLoopIterations: STEPS_MAX,
        maxOutputSize: OUTPUT_BYTES,
      },
    });
    bash.registerTransformPlugin(REFUSABLE_REDIRECTIONS);
    const { exitCode, stdout, stderr } = await bash.exec(command, { rawScript: true, stdin: input });
    return { exitCode, stdout, stderr };
  } catch (error) {
    const said = "[the shell ended here; what the commands before have written to the output is lost]";
    return { exitCode: 1, stdout: "", stderr: `${toError(error).message}\n${said}\n` };
  }
}

/**
 * Opens the file of each redirection in a way that fails its command alone. For `> FILE` of the descriptors 1
 * and 2 the library throws what the file system throws, which ends the whole line and loses its output. For
 * other descriptors it reports the file that it cannot open, as shells do.
 */
const REFUSABLE_REDIRECTIONS: TransformPlugin = {
  name: "refusable-redirections",
  transform: ({ ast }) => ({ ast: withSpareDescriptor(ast) as typeof ast }),
};

function withSpareDescriptor(node: unknown): unknown {
  if (Array.isArray(node))
    return node.flatMap((one: unknown) =>
      isRedirection(one) ? openedApart(one).map(withSpareChildren) : [withSpareDescriptor(one)],
    );
  return typeof node === "object" && node !== null ? withSpareChildren(node) : node;
}

function withSpareChildren(node: object): object {
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, withSpareDescriptor(value)]));
}

function isRedirection(node: unknown): node is Redirection {
  return typeof node === "object" && node !== null && "type" in node && node.type === "Redirection";
}

/** `2> FILE` as `63> FILE 2>&63 63>&-`, and `&> FILE` as `63> FILE 1>&63 2>&63 63>&-`. */
function openedApart(redirection: Redirection): readonly Redirection[] {
  const { fd, operator } = redirection;
  const opening = operator.replace("&", "");
  const isForFile = [">", ">>", ">|"].includes(opening) && operator !== ">&";
  const targets = operator.startsWith("&") ? [1, 2] : [fd ?? 1];
  if (!isForFile || !targets.every((one) => one === 1 || one === 2)) return [redirection];
  return [
    { ...redirection, fd: SPARE_FD, operator: opening },
    ...targets.map((one) => duplicate(one, String(SPARE_FD))),
    duplicate(SPARE_FD, "-"),
  ];
}

function duplicate(fd: number, from: string): Redirection {
  const target = { type: "Word", parts: [{ type: "Literal", value: from }] };
  return { type: "Redirection", fd, operator: ">&", target };
}
