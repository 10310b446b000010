// The sandbox `filesystem`: contained file tools, and commands on this machine. It is no isolation, and says
// so.

import { hostCommands } from "../workspace/command-runner.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import type { SandboxBackend } from "./sandbox-backend.ts";

export const FILESYSTEM = "filesystem";

/** @param hasNamespaces whether each command has a user namespace of its own, where the system allows one. */
export function filesystemSandbox(hasNamespaces: boolean): SandboxBackend {
  return {
    name: FILESYSTEM,
    keepsFilesHere: true,
    capabilities: hostCommands().capabilities,
    check: () => Promise.resolve({ status: "ready", found: "this machine; commands are not isolated" }),
    open: ({ root }, options) =>
      openWorkspace({ ...options, root, commands: hostCommands({ seesProcesses: !hasNamespaces }) }),
    // The folder is all that there is.
    destroy: async () => {},
  };
}
