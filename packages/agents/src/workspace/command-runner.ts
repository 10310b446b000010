// Starts the commands of a workspace (`CommandRunner`). `hostCommands` starts them on this machine, without isolation.

import { endTagged, ProcessSupervisor } from "@holdfast/runtime/internal";

import type { WorkspaceCapabilities } from "./capabilities.ts";
import { launch, type Execution, type Launch } from "./execute.ts";
import { hostEnvironment } from "./host-environment.ts";

export interface CommandRunner {
  /** The name of the sandbox. */
  readonly sandbox: string;
  readonly capabilities: WorkspaceCapabilities;
  /** The means that hold commands in, and their limits, for people. */
  readonly containment: string;
  /**
   * Runs a command and ends everything that it started. Never rejects: how the command ended is a value.
   *
   * @param isOwn the program is one of Holdfast's own calls, such as `git`, and its arguments are Holdfast's.
   */
  run(request: Launch, isOwn: boolean): Promise<Execution>;
  /** Ends what an earlier process started under this tag. */
  endTagged(tag: string): Promise<void>;
  /** Releases what the runner holds. Files stay. */
  close(): Promise<void>;
}

/** Commands that may do what their user may. */
export function hostCommands(): CommandRunner {
  // Without namespaces: a command is to do whatever its user may, also by sudo, and to see the machine's processes.
  const supervisor = new ProcessSupervisor({ environment: hostEnvironment, namespaces: "never" });
  return {
    sandbox: "filesystem",
    capabilities: {
      exec: "machine",
      files: "user",
      pty: false,
      ports: true,
      snapshot: "git_tree",
      changes: "at_once",
      network: "open",
      limits: ["time", "output"],
      credentials: "reachable",
    },
    containment:
      "file tools cannot leave it; commands run with a scrubbed environment and limits, " +
      "but are NOT isolated: they may do what your user may",
    run: (request) => launch(supervisor, request),
    endTagged: async (tag) => void (await endTagged(tag)),
    close: async () => {},
  };
}
