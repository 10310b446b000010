// The capability record of a workspace (`WorkspaceCapabilities`): what its commands can do and reach.

/** A limit that the workspace keeps for each command. */
export type WorkspaceLimitName = "time" | "output" | "memory" | "file_size" | "processes";

export interface WorkspaceCapabilities {
  /** The origin of the programs that commands start: this machine, an image, or an emulation of a shell. */
  readonly exec: "machine" | "image" | "emulated";
  /** The files that commands can change: those of the user on this machine, or those of the workspace. */
  readonly files: "user" | "workspace";
  /** Whether a command can have a terminal. */
  readonly pty: boolean;
  /** Whether a port that a command opens can be reached from outside. */
  readonly ports: boolean;
  /** The form in which the files can be kept and restored as a whole. */
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
  snapshot: "none",
  changes: "at_once",
  network: "none",
  limits: ["time", "output", "memory", "file_size"],
  credentials: "hidden",
};
