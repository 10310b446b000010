// Starts the commands of a workspace (`CommandRunner`). `hostCommands` starts them on this machine, without
// isolation.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { endTagged, findUserNamespace, ProcessSupervisor } from "@holdfast/system/processes";

import type { WorkspaceCapabilities } from "./capabilities.ts";
import { launch, type Execution, type Launch } from "./execute.ts";
import { hostEnvironment } from "./host-environment.ts";
import { programOnPath } from "./program-on-path.ts";

/** Runs the commands of a workspace: on this machine, or in a sandbox. */
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

/** Looked for once in each process. */
let userNamespace: ReturnType<typeof findUserNamespace> | undefined;

/**
 * Commands that may do what their user may.
 *
 * @param seesProcesses whether they may look into other processes of the user. The programs of sandboxes may;
 *   where the system can
 *     refuse it, commands of agents may not.
 */
export function hostCommands({ seesProcesses = true } = {}): CommandRunner {
  // Without PID namespaces: a command is to see the machine's processes.
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
    run: async (request, isOwn) =>
      launch(supervisor, isOwn || seesProcesses ? request : await inUserNamespace(request)),
    endTagged: async (tag) => void (await endTagged(tag)),
    close: async () => {},
  };
}

/** A program that is not there is started as it is, so that its error names it. */
async function inUserNamespace(request: Launch): Promise<Launch> {
  const [program] = request.argv;
  if (!program.includes("/") && programOnPath(program, request.env["PATH"] ?? "") === undefined)
    return request;
  if (program.includes("/") && !existsSync(resolve(request.cwd, program))) return request;
  userNamespace ??= findUserNamespace();
  const words = await userNamespace;
  return words === undefined ? request : { ...request, argv: [...words, ...request.argv] };
}
