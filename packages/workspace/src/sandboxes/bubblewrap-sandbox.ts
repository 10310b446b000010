// The sandbox `bubblewrap`: programs of this machine in namespaces of their own, over the folder. Linux only.
//
// It is used after its canaries have tried to break out, once in each process.

import { realpath } from "node:fs/promises";

import { ISOLATED_CAPABILITIES } from "../workspace/capabilities.ts";
import { hostEnvironment } from "../workspace/host-environment.ts";
import { WORKSPACE_LIMITS } from "../workspace/limits.ts";
import { pathOutside, programOnPath } from "../workspace/program-on-path.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { bubblewrapCommands } from "./bubblewrap-commands.ts";
import { checkByCanaries, NAMESPACES_REFUSED, type TrialLimits } from "./canaries/sandbox-canaries.ts";
import type { SandboxBackend, SandboxCheck, SandboxOptions } from "./sandbox-backend.ts";

const TRIAL = ["--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "true"];

export const bubblewrapSandbox: SandboxBackend = {
  name: "bubblewrap",
  aliases: ["bwrap"],
  masksPaths: true,
  keepsFilesHere: true,
  programs: [{ name: "bubblewrap", program: "bwrap", args: TRIAL, version: /^$/, only: "not_macos" }],
  capabilities: ISOLATED_CAPABILITIES,

  async check(): Promise<SandboxCheck> {
    if (process.platform !== "linux")
      return {
        status: "unavailable",
        reason: "bubblewrap runs on Linux alone",
        fix: "use the sandbox seatbelt on macOS, or virtual",
        cause: "absent",
      };
    const bwrap = findProgram("bwrap");
    if (bwrap === undefined)
      return { status: "unavailable", reason: "bwrap is not on the PATH", fix: INSTALL, cause: "absent" };
    if (findProgram("prlimit") === undefined)
      return {
        status: "unavailable",
        reason: "prlimit is not on the PATH",
        fix: "install util-linux",
        cause: "absent",
      };
    return checkByCanaries({
      capabilities: ISOLATED_CAPABILITIES,
      found: bwrap,
      fix: ALLOW,
      refusal: NAMESPACES_REFUSED,
      open: openAt,
    });
  },

  open: ({ root }, options) => openAt(root, options),

  // The folder is all that there is.
  destroy: async () => {},
};

const INSTALL = "install it: apt-get install bubblewrap, or dnf install bubblewrap";
const ALLOW =
  "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or AppArmor's restriction), or use the sandbox virtual";

async function openAt(given: string, options: SandboxOptions, trial?: TrialLimits): Promise<Workspace> {
  const root = await realpath(given).catch(() => given);
  const path = pathOutside(hostEnvironment["PATH"] ?? "", root);
  const commands = bubblewrapCommands({
    bwrap: programOnPath("bwrap", path) ?? "bwrap",
    prlimit: programOnPath("prlimit", path) ?? "prlimit",
    root,
    fileBytes: options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes,
    ...trial,
  });
  return openWorkspace({ ...options, root, commands });
}

function findProgram(name: string): string | undefined {
  return programOnPath(name, hostEnvironment["PATH"] ?? "");
}
