// Runs commands of a workspace in a sandbox of a remote service (`remoteCommands`).
//
//   - A session has one machine. It is found by its label, also by another process, and made when there is
//     none.
//   - Commands of one session take turns, because they share the machine and the folder.
//   - The folder of this machine stays the place of the files: what has changed goes there before a command,
//     and comes back after it. A machine that is gone loses nothing but what lies outside of the folder.
//   - A command whose service did not answer may have run. Its end says so.

import { createHash } from "node:crypto";
import { HoldfastError } from "@holdfast/core";
import { OutputCapture } from "@holdfast/system";

import type { WorkspaceCapabilities } from "../../workspace/capabilities.ts";
import { hostCommands, type CommandRunner } from "../../workspace/command-runner.ts";
import type { Execution, ExecutionEnd, Launch } from "../../workspace/execute.ts";
import type { SandboxPlace } from "../sandbox-backend.ts";
import { FolderMirror } from "./folder-mirror.ts";
import { END_ALL, packJob, readJob, type JobResult } from "./remote-job.ts";
import type { RemoteMachine, RemoteService } from "./remote-service.ts";

export const REMOTE_CAPABILITIES: WorkspaceCapabilities = {
  exec: "image",
  files: "workspace",
  pty: false,
  ports: false,
  snapshot: "git_tree",
  changes: "after_command",
  network: "none",
  limits: ["time", "output", "file_size"],
  credentials: "hidden",
};

/** A command that has ended is cleaned up and packed in this time. */
const AFTER_MS = 60_000;
const END_MS = 20_000;

export interface RemoteCommandsOptions {
  readonly service: RemoteService;
  readonly place: SandboxPlace;
  /** Without links. */
  readonly root: string;
  readonly fileBytes: number;
}

export function labelOf({ session, root }: SandboxPlace): string {
  return createHash("sha256").update(`${session}\0${root}`).digest("hex").slice(0, 40);
}

export function remoteCommands(options: RemoteCommandsOptions): CommandRunner {
  const { service, place } = options;
  const host = hostCommands();
  const jobs = new RemoteJobs(options);
  let last: Promise<unknown> = Promise.resolve();
  return {
    sandbox: service.name,
    capabilities: REMOTE_CAPABILITIES,
    containment: `commands run on a machine of ${service.name} without network, over a copy of this folder; what they change comes back when they have ended`,
    run: (request, isOwn) => {
      if (isOwn) return host.run(request, true);
      // Commands of one session share the machine and the folder.
      const running = last.then(() => jobs.run(request));
      last = running;
      return running;
    },
    endTagged: async (tag) => {
      await host.endTagged(tag);
      await (await service.find(labelOf(place)))?.run(END_ALL, END_MS);
    },
    close: () => host.close(),
  };
}

/** The machine of one session, and the copy of its folder there. */
class RemoteJobs {
  readonly #service: RemoteService;
  readonly #label: string;
  readonly #root: string;
  readonly #fileBytes: number;
  readonly #mirror: FolderMirror;
  #machine: RemoteMachine | undefined;

  constructor({ service, place, root, fileBytes }: RemoteCommandsOptions) {
    this.#service = service;
    this.#label = labelOf(place);
    this.#root = root;
    this.#fileBytes = fileBytes;
    this.#mirror = new FolderMirror(root, fileBytes);
  }

  async run(request: Launch): Promise<Execution> {
    const began = performance.now();
    const { command, signal, timeoutMs } = request;
    const ended = (end: ExecutionEnd, rest: Partial<Execution> = {}): Execution => ({
      command,
      end,
      stdout: "",
      stderr: "",
      isCut: false,
      durationMs: Math.round(performance.now() - began),
      isTreeGone: true,
      ...rest,
    });
    const isAborted = (): boolean => signal?.aborted === true;
    if (isAborted()) return ended({ type: "aborted" });
    try {
      const result = await this.#runThere(request);
      const refused = await this.#mirror.take(result);
      const { isTimedOut, exitCode } = result;
      const output = outputOf(result, request, refused);
      if (isAborted()) return ended({ type: "aborted" }, output);
      return ended(isTimedOut ? { type: "timeout", timeoutMs } : { type: "exit", exitCode }, output);
    } catch (error) {
      if (isAborted()) return ended({ type: "aborted" });
      const { message } = error as Error;
      // The command may have run, and its end says so.
      return ended({ type: "spawn_error", code: "remote", message: `${message}; the command may have run` });
    }
  }

  async #runThere(request: Launch): Promise<JobResult> {
    const { found, isFresh } = await this.#findOrMake();
    const { changed, removed } = await this.#mirror.changes();
    const [root, fileBytes] = [this.#root, this.#fileBytes];
    const job = packJob({ request, root, changed, removed, isFresh, fileBytes });
    const stop = (): void => void found.run(END_ALL, END_MS).catch(() => {});
    request.signal?.addEventListener("abort", stop, { once: true });
    try {
      await found.upload(job.archivePath, job.archive);
      if (request.signal?.aborted === true)
        throw new HoldfastError("cancelled", "it was aborted before it began");
      const exitCode = await found.run(job.line, request.timeoutMs + AFTER_MS);
      if (exitCode !== 0) throw new Error(`the sandbox could not run the command (${exitCode})`);
      return readJob(await found.download(job.resultPath));
    } catch (error) {
      this.#machine = undefined; // Nobody knows what it has.
      throw error;
    } finally {
      request.signal?.removeEventListener("abort", stop);
    }
  }

  async #findOrMake(): Promise<{ readonly found: RemoteMachine; readonly isFresh: boolean }> {
    const found = await this.#service.find(this.#label);
    if (found !== undefined && found.id === this.#machine?.id) return { found, isFresh: false };
    this.#mirror.forget();
    this.#machine = found ?? (await this.#service.create(this.#label));
    return { found: this.#machine, isFresh: true };
  }
}

function outputOf(
  { stdout, stderr }: JobResult,
  { outputBytes, onOutput }: Launch,
  refused: readonly string[],
): Pick<Execution, "stdout" | "stderr" | "isCut"> {
  const notes = refused.map((line) => `[not taken from the sandbox: ${line}]\n`).join("");
  const [out, err] = [new OutputCapture(outputBytes), new OutputCapture(outputBytes)];
  out.push(stdout);
  err.push(stderr);
  const texts = { stdout: out.text(), stderr: `${err.text()}${notes}` };
  for (const stream of ["stdout", "stderr"] as const)
    if (texts[stream] !== "") onOutput?.(stream, texts[stream]);
  return { ...texts, isCut: out.isCut || err.isCut };
}
