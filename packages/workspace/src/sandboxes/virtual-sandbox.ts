// The sandbox `virtual`: an emulated shell over the folder, by the library `just-bash`.
//
// Files of the folder are read and written in place, so they survive every crash. A command has no process,
// no network and no file outside of the folder. A file that it writes elsewhere, such as in /tmp, is gone
// after the command.
//
// Its canaries try to break out before its first use on a machine, and again with another version of its
// parts. They take a second, which no start of a session should wait for.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { makePrivateFolder, replacePrivate } from "@holdfast/system";

import { WORKSPACE_LIMITS } from "../workspace/limits.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { checkByCanaries } from "./canaries/sandbox-canaries.ts";
import type { SandboxBackend, SandboxCheck, SandboxOptions } from "./sandbox-backend.ts";
import { threadFile, VIRTUAL_CAPABILITIES, VirtualCommands } from "./virtual-commands.ts";

/** @param testedFile the file that remembers a test which held. Without it each check tests. */
export function virtualSandbox(testedFile?: string): SandboxBackend {
  return {
    name: "virtual",
    masksPaths: true,
    keepsFilesHere: true,
    capabilities: VIRTUAL_CAPABILITIES,

    async check(): Promise<SandboxCheck> {
      try {
        await import("just-bash");
      } catch (error) {
        return {
          status: "unavailable",
          reason: `the package just-bash cannot be loaded: ${(error as Error).message}`,
          fix: "install it: npm install just-bash",
          cause: "absent",
        };
      }
      const version = versionHere();
      const found = "an emulated shell (just-bash)";
      if (testedFile !== undefined && readTested(testedFile) === version)
        return { status: "ready", found: `${found}, which held in an earlier test on this machine` };
      const check = await checkByCanaries({
        capabilities: VIRTUAL_CAPABILITIES,
        found,
        fix: "use another sandbox, and report this",
        open: openAt,
      });
      if (check.status === "ready" && testedFile !== undefined) writeTested(testedFile, version);
      return check;
    },

    open: ({ root }, options) => openAt(root, options),

    // The folder is all that there is.
    destroy: async () => {},
  };
}

async function openAt(root: string, options: SandboxOptions): Promise<Workspace> {
  const fileBytes = options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes;
  const commands = new VirtualCommands({ root: await realpath(root).catch(() => root), fileBytes });
  return openWorkspace({ ...options, root, commands });
}

/** The parts that decide whether a command can break out. A home folder may be shared by several machines. */
function versionHere(): string {
  const hash = createHash("sha256").update(readFileSync(threadFile())).digest("hex").slice(0, 16);
  return `just-bash ${libraryVersion()}, node ${process.version}, ${hash}, ${hostname()}`;
}

function libraryVersion(): string {
  const entry = fileURLToPath(import.meta.resolve("just-bash"));
  const name = `${sep}just-bash${sep}`;
  const manifest = join(entry.slice(0, entry.lastIndexOf(name) + name.length), "package.json");
  return String((JSON.parse(readFileSync(manifest, "utf8")) as { readonly version?: unknown }).version);
}

/** A file that cannot be read remembers nothing. */
function readTested(path: string): unknown {
  try {
    return (JSON.parse(readFileSync(path, "utf8")) as { readonly virtual?: unknown }).virtual;
  } catch {
    return undefined;
  }
}

function writeTested(path: string, version: string): void {
  try {
    makePrivateFolder(dirname(path));
    replacePrivate(path, `${JSON.stringify({ virtual: version })}\n`);
  } catch {
    // It is tested again then.
  }
}
