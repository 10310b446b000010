// The capability record of a workspace (`WorkspaceCapabilities`): what its commands can do and reach, and how
// its files are kept.

/** A limit that the workspace keeps for each command. */
export type WorkspaceLimitName = "time" | "output" | "memory" | "file_size" | "processes";

/**
 * The abilities of a workspace, and the protection around its commands. Each is a promise. Where it holds only in
 * part, the weaker value is given. Four of them switch on clauses of `SandboxBackend`:
 *
 * - `files`: 8 and 9 for those of the workspace, and 14 for those of the user
 * - `credentials`: 10 for hidden ones
 * - `network`: 11 for none
 * - `limits`: 12 for each element
 */
export interface WorkspaceCapabilities {
  /** The origin of the programs that commands start: this machine, an image, or an emulation of a shell. */
  readonly exec: "machine" | "image" | "emulated";
  /** The files that commands can change: those of the user on this machine, or those of the workspace. */
  readonly files: "user" | "workspace";
  /** Whether a command can have a terminal. */
  readonly pty: boolean;
  /** Whether a port that a command opens can be reached from outside. */
  readonly ports: boolean;
  /** The form in which the files of a session's own folder are kept and restored as a whole (`FileSnapshot`). */
  readonly snapshot: "none" | "git_tree";
  /** When file tools see the files that a command writes: while it runs, or when it has ended. */
  readonly changes: "at_once" | "after_command";
  /** The addresses that commands reach. */
  readonly network: "open" | "none";
  readonly limits: readonly WorkspaceLimitName[];
  /** Whether commands can read credentials that lie in the user's home folder. */
  readonly credentials: "reachable" | "hidden";
}

/** Commands with neither network nor the files of the user, within limits of memory and size. */
export const ISOLATED_CAPABILITIES: WorkspaceCapabilities = {
  exec: "machine",
  files: "workspace",
  pty: false,
  ports: false,
  snapshot: "git_tree",
  changes: "at_once",
  network: "none",
  limits: ["time", "output", "memory", "file_size"],
  credentials: "hidden",
};

/**
 * Whether commands are kept from anything. A call of Holdfast's own then runs no program that a command may
 * have left, also where commands can change the files of the user.
 */
export function isHeldIn({ files, network, credentials }: WorkspaceCapabilities): boolean {
  return files === "workspace" || network === "none" || credentials === "hidden";
}

/** The files of a session's own workspace at one time, as commits of a git repository. */
export interface FileSnapshot {
  /** The commit whose tree is the files; `null` for the files of `head` as they were committed, or no file at all. */
  readonly commit: string | null;
  /** The commit that was checked out; `null` where the workspace is no worktree. */
  readonly head: string | null;
}
