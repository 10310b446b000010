// The port for makers of sandboxes: `SandboxBackend`. A sandbox is a workspace whose commands are held in.
//
// Also the names of sandboxes. An address names a workspace in the inputs of tasks. It is made from the
// session, so that every process that resumes the session finds the same sandbox:
//
//   /home/me/project                        the folder itself, with commands on this machine
//   virtual:ses_0193…:/home/me/project      the sandbox of that session over the folder

import type { WorkspaceCapabilities } from "../workspace/capabilities.ts";
import type { Workspace, WorkspaceOptions } from "../workspace/workspace.ts";

/** The place that a sandbox belongs to. */
export interface SandboxPlace {
  /** The session that the sandbox was made for. */
  readonly session: string;
  /** The folder that it works in, as an absolute path of this machine. */
  readonly root: string;
}

/** Whether this machine can run a kind of sandbox. */
export type SandboxCheck =
  | { readonly status: "ready"; readonly found: string }
  | {
      readonly status: "unavailable";
      readonly reason: string;
      readonly fix: string;
      /**
       * The part of the machine in it. `absent`: the sandbox is for another system, or its program, image or
       * key is not there. `forbidden`: the machine refuses what the sandbox needs, and says so in an error that
       * the sandbox knows. Without a cause everything is there and the sandbox does not work, which its suite reports as a
       * failure.
       */
      readonly cause?: "absent" | "forbidden";
    };

/** A program that a sandbox needs, with a call that shows whether the program works. */
export interface SandboxProgram {
  /** The name for people. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** The version in the output of the call. `/^$/` for a call that prints nothing: it works, and has no version to show. */
  readonly version: RegExp;
  /** Machines on which the sandbox can run; all of them by default. */
  readonly only?: "macos" | "not_macos";
}

/**
 * Makes sandboxes of one kind. A fact about the kind that is left out is the more careful one.
 *
 *   sandbox-backend-1. `check` answers with a reason and a fix where the machine cannot run it, and with a
 *       cause unless the sandbox itself does not work. It is ready only after the canaries that fit the
 *       capabilities did not escape (`checkByCanaries`). It makes nothing that stays.
 *   sandbox-backend-2. `open` finds the sandbox of a place, or makes it. A second call, also of another
 *       process, finds the same files.
 *   sandbox-backend-3. File tools and commands see the same files under the same paths.
 *   sandbox-backend-4. No path or link leads a file tool out of the root.
 *   sandbox-backend-5. A failed command, a time-out and an abort are results. Nothing that a command started
 *       outlives it. SIGTERM ends a command that handles no signal, also as the first process of a
 *       namespace, for which the kernel ignores signals without a handler.
 *   sandbox-backend-6. A command has the variables that it was given and the allow-list, and no other
 *       variable of this process. It finds the programs of given folders of the root behind all others.
 *   sandbox-backend-7. Output over the limit is cut with a mark.
 *   sandbox-backend-8. Holdfast's own folder is out of reach for file tools, and for commands where the
 *       capabilities say `files: workspace`.
 *   sandbox-backend-9. With `files: workspace` a command changes nothing outside of the root, and cannot
 *       change or make the root's `.git`.
 *   sandbox-backend-10. With `credentials: hidden` a command reads nothing of the user's home folder outside
 *       of the root, also by a link named `.git`.
 *   sandbox-backend-11. With `network: none` a command reaches no address, also not one of this machine, and
 *       no Unix socket outside of the root.
 *   sandbox-backend-12. With a limit on memory, file size or processes a command that exceeds it fails, and
 *       this process does not.
 *   sandbox-backend-13. `destroy` removes the sandbox and leaves the folder of this machine. A second call
 *       changes nothing.
 *   sandbox-backend-14. With `files: user` Holdfast's own calls (`isOwn`) are held in as commands are. A
 *       command could have written a hook of git or a program of the PATH, which such a call runs.
 */
export interface SandboxBackend {
  readonly name: string;
  /** Other names of the sandbox, as people and other tools write them. */
  readonly aliases?: readonly string[];
  /**
   * The sandbox keeps a `PathMask` from commands. Without it, a rule that denies a path refuses an agent with
   * a free shell.
   */
  readonly masksPaths?: boolean;
  /** The files of a session stay on this machine. Without it, no agent file of a coordinator can name the sandbox. */
  readonly keepsFilesHere?: boolean;
  /** The programs that the sandbox needs, for `holdfast doctor`. */
  readonly programs?: readonly SandboxProgram[];
  readonly capabilities: WorkspaceCapabilities;
  check(): Promise<SandboxCheck>;
  open(place: SandboxPlace, options: SandboxOptions): Promise<Workspace>;
  destroy(place: SandboxPlace): Promise<void>;
}

/** The options of a workspace that a sandbox can keep. */
export type SandboxOptions = Pick<WorkspaceOptions, "env" | "inherit" | "limits">;

export interface SandboxAddress extends SandboxPlace {
  readonly backend: string;
}

const ADDRESS = /^([a-z][a-z0-9-]+):([\w.-]+):(.+)$/s;

export function writeAddress({ backend, session, root }: SandboxAddress): string {
  return `${backend}:${session}:${root}`;
}

/** @returns `undefined` for the path of a folder. */
export function readAddress(text: string): SandboxAddress | undefined {
  const [, backend, session, root] = ADDRESS.exec(text) ?? [];
  return backend === undefined || session === undefined || root === undefined
    ? undefined
    : { backend, session, root };
}
