// `gitIn`: git as the worktrees of sessions call it.
//
//   - Git runs with a scrubbed environment, without hooks, prompts and background work, and finds no
//     repository in a folder that only looks like one.
//   - A tag marks what git starts for a session. A later process ends by it what an earlier one left running,
//     and the guard of this process ends it when this process is killed.
//   - A removal is some twenty calls. The supervisor of commands looks at all processes of the machine after
//     each command. These calls do without it, because git starts nothing here that stays.
//   - The repository of a submodule has no checkout beside it, and a submodule in a worktree has a file
//     `.git` in reach of an agent. For both git is told the directory, and looks at nothing in the folder to
//     find it. No such call reaches a server, also not for an object that a partial clone lacks.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { defined, HoldfastError, MIB, NotFoundError, UnavailableError } from "@holdfast/core";
import { scrubEnvironment, type Environment } from "@holdfast/system";
import { guardedMarker, TAG_MARKER } from "@holdfast/system/processes";

import { refuseLocked } from "../git/git.ts";
import {
  commandOf,
  GIT_ENVIRONMENT,
  gitOptions,
  LIST_SETTINGS,
  programsOf,
  withoutPrograms,
  type GitEnvironment,
} from "../workspace/git-options.ts";
import { hostEnvironment } from "../workspace/host-environment.ts";

/** The tree without files, which git knows without storing it. */
export const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** A call on a large repository may take this long. */
const GIT_MS = 600_000;
/** The output of one call. Beyond, the call fails, unless it asked for less. */
const OUTPUT_BYTES = 64 * MIB;
const SAID_CHARS = 2_000;

/** The words of any git for a worktree that another git has begun to make, which takes that git some milliseconds. */
const HALF_MADE = /failed to read .*worktrees\/.+\/commondir/;

export interface GitSettings {
  /** The source of PATH and HOME; the environment of this process by default. */
  readonly environment?: Environment;
  readonly tag?: string;
  /** The git directories of folders in which git is not to look for one itself. */
  readonly gitFolders?: Readonly<Record<string, string>>;
}

export interface GitCall {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Exit codes that are answers. */
  readonly codes?: readonly number[];
  /** The repository may be an agent's. Filters of its own configuration do not run. */
  readonly isForeign?: boolean;
  /** Output beyond this is cut. */
  readonly outputBytes?: number;
  /** It goes on to its end when a person presses Ctrl-C: half of it would be worse than none. */
  readonly isWhole?: boolean;
  /** Each character of the output is one byte. */
  readonly isBinary?: boolean;
}

export interface GitAnswer {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly isCut: boolean;
  /** The process signal that ended it before its end. */
  readonly endedBy: string | undefined;
}

/**
 * A process signal ends git also where a person ends all of a terminal by Ctrl-C, apart from `isWhole`.
 *
 * @throws HoldfastError with the words of git when it does not exit with 0 or one of `codes`,
 *   UnavailableError when a process signal ended it.
 */
export async function gitIn(
  folder: string,
  args: readonly string[],
  settings: GitSettings,
  { codes = [0], ...call }: GitCall = {},
): Promise<GitAnswer> {
  if (!existsSync(folder))
    throw new NotFoundError("file_not_found", `there is no folder ${folder}`, { at: folder });
  const guard = call.isForeign === true ? await ownGuard(folder, settings) : {};
  const answer = await run(folder, args, settings, { ...call, env: { ...guard, ...call.env } });
  if (codes.includes(answer.exitCode)) return answer;
  if (answer.endedBy !== undefined)
    throw new UnavailableError(
      "unavailable",
      `git ${commandOf(args)} in ${folder} was ended by ${answer.endedBy} before it had an answer`,
      { fix: "try again" },
    );
  const said = answer.stderr.trim().slice(0, SAID_CHARS);
  if (said.includes(".lock'")) {
    const dirs = ["rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"];
    await refuseLocked(said, (await run(folder, dirs, settings, {})).stdout.trim().split("\n"));
  }
  if (HALF_MADE.test(said))
    throw new UnavailableError("locked", `a worktree of the repository of ${folder} is half made`, {
      got: said,
      fix: "wait for the git that makes it; if none runs, remove the folder that is named here",
    });
  const shown = said === "" ? `it ended with ${answer.exitCode}` : said;
  throw new HoldfastError("invalid_input", `git ${commandOf(args)} did not succeed in ${folder}: ${shown}`);
}

/** The variables of `isForeign`, for several calls. @param env names the repository, where the folder does not. */
export async function ownGuard(
  folder: string,
  settings: GitSettings,
  env: GitEnvironment = {},
): Promise<GitEnvironment> {
  return withoutPrograms(programsOf((await run(folder, LIST_SETTINGS, settings, { env })).stdout));
}

/**
 * A path for an index that only one operation uses: beside the worktree, and for a submodule outside of the
 * files of the worktree.
 */
export function draftIndexOf(worktree: string, { gitFolders }: GitSettings): string {
  const id = randomBytes(6).toString("hex");
  const own = gitFolders?.[worktree];
  return own === undefined ? `${worktree}.index-${id}` : join(own, `holdfast-${id}-index`);
}

function placeOf(folder: string, gitFolders: GitSettings["gitFolders"]): GitEnvironment {
  if (gitFolders === undefined) return {};
  const gitFolder = gitFolders[folder];
  return {
    GIT_ALLOW_PROTOCOL: "none",
    ...defined({ GIT_DIR: gitFolder }),
    ...(gitFolder === undefined || gitFolder === folder ? {} : { GIT_WORK_TREE: folder }),
  };
}

function run(
  folder: string,
  args: readonly string[],
  { environment = hostEnvironment, tag, gitFolders }: GitSettings,
  { input = "", env = {}, outputBytes, isBinary = false, isWhole = false }: GitCall,
): Promise<GitAnswer> {
  const marked = tag === undefined ? {} : { [TAG_MARKER]: tag, ...guardedMarker(environment) };
  const child = spawn("git", [...gitOptions(false), ...args], {
    cwd: folder,
    env: scrubEnvironment(environment, GIT_ENVIRONMENT, marked, placeOf(folder, gitFolders), env),
    // In a process group of its own, which Ctrl-C does not reach.
    detached: isWhole,
    timeout: GIT_MS,
    killSignal: "SIGKILL",
  });
  const max = outputBytes ?? OUTPUT_BYTES;
  const kept: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
  const sizes = { stdout: 0, stderr: 0 };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].on("data", (chunk: Buffer) => {
      if (sizes[stream] < max) kept[stream].push(chunk.subarray(0, max - sizes[stream]));
      sizes[stream] += chunk.length;
    });
  child.stdin.on("error", () => {}); // It ended without reading all: its exit code says why.
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "ENOENT"
          ? new HoldfastError("config_invalid", "git is not installed, or not on the PATH", {
              fix: "install git 2.38 or later",
            })
          : error,
      ),
    );
    child.on("close", (code, signal) => {
      const isCut = sizes.stdout > max;
      if (isCut && outputBytes === undefined)
        return reject(
          new HoldfastError("limit_exceeded", `git ${commandOf(args)} wrote more than ${max} bytes`),
        );
      const stderr = Buffer.concat(kept.stderr).toString("utf8");
      const stdout = Buffer.concat(kept.stdout).toString(isBinary ? "latin1" : "utf8");
      resolve({ stdout, stderr, exitCode: code ?? -1, isCut, endedBy: signal ?? undefined });
    });
  });
}
