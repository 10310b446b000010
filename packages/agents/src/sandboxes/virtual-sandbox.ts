// The sandbox `virtual`: an emulated shell over the folder, by the library `just-bash`.
//
// Files of the folder are read and written in place, so they survive every crash. A command has no process, no network and
// no file outside of the folder. A file that it writes elsewhere, such as in /tmp, is gone after the command.

import { WORKSPACE_LIMITS } from "../workspace/limits.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import type { SandboxBackend, SandboxCheck } from "./sandbox-backend.ts";
import { VIRTUAL_CAPABILITIES, VirtualCommands } from "./virtual-commands.ts";

export const virtualSandbox: SandboxBackend = {
  name: "virtual",
  capabilities: VIRTUAL_CAPABILITIES,

  async check(): Promise<SandboxCheck> {
    try {
      await import("just-bash");
      return { status: "ready", found: "an emulated shell (just-bash)" };
    } catch (error) {
      return {
        status: "unavailable",
        reason: `the package just-bash cannot be loaded: ${(error as Error).message}`,
        fix: "install it: npm install just-bash",
      };
    }
  },

  async open({ root }, options) {
    const fileBytes = options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes;
    const { realpath } = await import("node:fs/promises");
    const commands = new VirtualCommands({ root: await realpath(root).catch(() => root), fileBytes });
    return openWorkspace({ ...options, root, commands });
  },

  // The folder is all that there is.
  destroy: async () => {},
};
