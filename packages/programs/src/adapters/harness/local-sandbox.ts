// `localSandbox`: the sandbox that a harness of the AI SDK works in. It is the folder of the session, without
// isolation.
//
// The processes that it starts are in the process group of the harness program and carry its tag, so they end
// with their turn.

import { existsSync } from "node:fs";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";

interface CommandOptions {
  readonly command: string;
  readonly workingDirectory?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly abortSignal?: AbortSignal;
}

interface ReadOptions {
  readonly path: string;
  readonly encoding?: BufferEncoding;
  /** The first and the last line, counted from 1. */
  readonly startLine?: number;
  readonly endLine?: number;
}

interface WriteOptions<Content> {
  readonly path: string;
  readonly content: Content;
  readonly encoding?: BufferEncoding;
}

/** @param environment that of the commands. */
export function localSandbox(folder: string, environment: NodeJS.ProcessEnv) {
  const at = (path: string): string => resolve(folder, path);
  const readBytes = async ({ path }: ReadOptions): Promise<Uint8Array | null> => {
    try {
      return await readFile(at(path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  };
  const write = async (path: string, content: string | Uint8Array, encoding?: BufferEncoding) => {
    await makeFolder(dirname(at(path)));
    await writeFile(at(path), content, encoding);
  };
  const start = ({ command, workingDirectory = ".", env, abortSignal: signal }: CommandOptions) => {
    const child: ChildProcessByStdio<null, Readable, Readable> = spawn("/bin/sh", ["-c", command], {
      cwd: at(workingDirectory),
      env: { ...environment, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      ...(signal === undefined ? {} : { signal }),
    });
    const ended = new Promise<{ readonly exitCode: number }>((settle, reject) => {
      child.once("error", reject);
      child.once("close", (code) => settle({ exitCode: code ?? 1 }));
    });
    ended.catch(() => {}); // A harness need not wait.
    return { child, ended };
  };
  const session = {
    description: `The folder ${folder} of this machine.`,
    defaultWorkingDirectory: folder,
    readBinaryFile: readBytes,
    readFile: async (options: ReadOptions) => {
      const bytes = await readBytes(options);
      return bytes === null ? null : Readable.toWeb(Readable.from([bytes]));
    },
    readTextFile: async (options: ReadOptions) => {
      const bytes = await readBytes(options);
      if (bytes === null) return null;
      const text = Buffer.from(bytes).toString(options.encoding);
      const { startLine = 1, endLine } = options;
      return startLine === 1 && endLine === undefined
        ? text
        : text
            .split("\n")
            .slice(startLine - 1, endLine)
            .join("\n");
    },
    writeBinaryFile: ({ path, content }: WriteOptions<Uint8Array>) => write(path, content),
    writeTextFile: ({ path, content, encoding }: WriteOptions<string>) => write(path, content, encoding),
    writeFile: async ({ path, content }: WriteOptions<ReadableStream>) =>
      write(path, await buffer(Readable.fromWeb(content))),
    spawn: (options: CommandOptions) => {
      const { child, ended } = start(options);
      return Promise.resolve({
        pid: child.pid,
        stdout: Readable.toWeb(child.stdout),
        stderr: Readable.toWeb(child.stderr),
        wait: () => ended,
        kill: () => Promise.resolve(void child.kill()),
      });
    },
    run: async (options: CommandOptions) => {
      const { child, ended } = start(options);
      const [stdout, stderr, { exitCode }] = await Promise.all([
        buffer(child.stdout),
        buffer(child.stderr),
        ended,
      ]);
      return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    },
  };
  return session;
}

/** Makes a folder and those above it. */
async function makeFolder(path: string): Promise<void> {
  if (existsSync(path)) return;
  await makeFolder(dirname(path));
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}
