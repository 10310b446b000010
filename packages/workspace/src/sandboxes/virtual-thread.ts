// The thread that runs commands of a virtual sandbox: a shell and its programs as JavaScript, without
// processes.
//
// The thread has no environment. The files are those of the workspace's folder, under their real path; every
// other path is kept in memory and gone after the command.

import { parentPort, workerData } from "node:worker_threads";
import { MIB, toError } from "@holdfast/core";
import { Bash, InMemoryFs, MountableFs, ReadWriteFs } from "just-bash";

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

/** Commands of one line; a loop that never ends reaches its time-out long before. */
const STEPS_MAX = 10_000_000;
/** Output that the shell keeps. The workspace cuts it to its own limit. */
const OUTPUT_BYTES = 64 * MIB;

const { root, fileBytes } = workerData as VirtualThreadData;
const folder = new ReadWriteFs({ root, maxFileReadSize: fileBytes });

parentPort?.on("message", (request: VirtualCommand) => {
  void run(request).then((result) => parentPort?.postMessage(result));
});

async function run({ command, cwd, env, input, mask }: VirtualCommand): Promise<VirtualResult> {
  try {
    const fs = new MountableFs({ base: new InMemoryFs() });
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
    const { exitCode, stdout, stderr } = await bash.exec(command, { rawScript: true, stdin: input });
    return { exitCode, stdout, stderr };
  } catch (error) {
    return { exitCode: 1, stdout: "", stderr: `${toError(error).message}\n` };
  }
}
