// The sandbox `seatbelt`: programs of this machine under a profile of the kernel, over the folder. macOS
// only.
//
//   - It is used after its canaries have tried to break out, once in each process.
//   - The kernel limits no memory of a command and ends no process with it. Processes that a command leaves
//     running are found by their group and its marker.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ISOLATED_CAPABILITIES, type WorkspaceCapabilities } from "../../workspace/capabilities.ts";
import { hostCommands, type CommandRunner } from "../../workspace/command-runner.ts";
import { guardPlaces, refusedExecution } from "../../workspace/guarded-places.ts";
import { WORKSPACE_LIMITS } from "../../workspace/limits.ts";
import { openWorkspace, type Workspace } from "../../workspace/workspace.ts";
import { programFolders } from "../bubblewrap-commands.ts";
import { checkByCanaries } from "../canaries/sandbox-canaries.ts";
import type { SandboxBackend, SandboxCheck, SandboxOptions } from "../sandbox-backend.ts";
import { seatbeltProfile } from "./seatbelt-profile.ts";

export const SEATBELT = "/usr/bin/sandbox-exec";
/** `ulimit -f` counts in these. */
const BLOCK_BYTES = 512;
/** How the kernel refuses a profile to a process that is under one already. */
const PROFILE_REFUSED = /sandbox_apply: Operation not permitted/;

const CAPABILITIES: WorkspaceCapabilities = {
  ...ISOLATED_CAPABILITIES,
  limits: ["time", "output", "file_size"],
};

const TRIAL = ["-p", "(version 1)(allow default)", "/usr/bin/true"];

export const seatbeltSandbox: SandboxBackend = {
  name: "seatbelt",
  keepsFilesHere: true,
  programs: [{ name: "Seatbelt", program: SEATBELT, args: TRIAL, version: /^$/, only: "macos" }],
  capabilities: CAPABILITIES,

  async check(): Promise<SandboxCheck> {
    if (process.platform !== "darwin")
      return {
        status: "unavailable",
        reason: "Seatbelt is a part of macOS",
        fix: "use the sandbox bubblewrap on Linux, or virtual",
        cause: "absent",
      };
    return checkByCanaries({
      capabilities: CAPABILITIES,
      found: SEATBELT,
      fix: "use the sandbox virtual or docker on this machine, and report this",
      refusal: PROFILE_REFUSED,
      open: openAt,
    });
  },

  open: ({ root }, options) => openAt(root, options),

  // The folder is all that there is.
  destroy: async () => {},
};

async function openAt(given: string, options: SandboxOptions): Promise<Workspace> {
  const root = await realpath(given).catch(() => given);
  const fileBytes = options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes;
  return openWorkspace({ ...options, root, commands: seatbeltCommands(root, fileBytes) });
}

function seatbeltCommands(root: string, fileBytes: number): CommandRunner {
  const host = hostCommands();
  let made: string | undefined;
  const scratch = (): string => (made ??= realpathSync(mkdtempSync(join(tmpdir(), "holdfast-scratch-"))));
  return {
    sandbox: "seatbelt",
    capabilities: CAPABILITIES,
    containment:
      "commands run under a profile of macOS without network; they see the system's programs and can change the files of this folder alone",
    run: async (request, isOwn) => {
      if (isOwn) return host.run(request, true);
      const places = guardPlaces(root);
      if (typeof places === "string") return refusedExecution(request, places);
      const programs = programFolders(request.env["PATH"] ?? "");
      const { text, parameters } = seatbeltProfile({ root, scratch: scratch(), programs });
      const named = Object.entries(parameters).flatMap(([name, value]) => ["-D", `${name}=${value}`]);
      const limited = `ulimit -c 0; ulimit -f ${Math.ceil(fileBytes / BLOCK_BYTES)}; exec "$@"`;
      const argv = [SEATBELT, "-p", text, ...named, "/bin/sh", "-c", limited, "sh", ...request.argv] as const;
      return host.run({ ...request, argv, env: { ...request.env, TMPDIR: scratch() } }, false);
    },
    endTagged: (tag) => host.endTagged(tag),
    close: async () => {
      if (made !== undefined) rmSync(made, { recursive: true, force: true });
      await host.close();
    },
  };
}
