// `writeScript`: the files of a script in a workspace, and its command.
//
//   .agent-orchestrator/scripts/NAME/HASH/        the files of a version, which nobody may write
//   .agent-orchestrator/scripts/NAME/HASH.sh      the wrapper of that version, for the tool
//   .agent-orchestrator/bin/NAME                  the wrapper of the version that a session used last, for the shell
//
//   script-files-1. Sessions with different versions share a workspace: the files of a version lie below its hash.
//   script-files-2. The files are compared before each call of the tool, and a changed one is written again.

import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { SCRIPT_BIN } from "../tasks/script-calls.ts";
import type { FolderContent } from "../contents/folder-content.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { ScriptManifest } from "./script-manifest.ts";
import { scriptWrapper } from "./script-wrapper.ts";

/** The folder of the workspace that holds what Holdfast writes for an agent. */
const FOLDER = ".agent-orchestrator/scripts";
const HASH_CHARS = 12;

/** @returns the path of the wrapper of this version, from the root of the workspace. */
export async function writeScript(
  workspace: Workspace,
  manifest: ScriptManifest,
  { hash, files }: FolderContent,
): Promise<string> {
  const folder = `${FOLDER}/${manifest.name}/${hash.slice(0, HASH_CHARS)}`;
  const wrapper = Buffer.from(scriptWrapper(manifest, { folder: join(workspace.root, folder), hash }));
  // The folders are no part of the user's repository.
  for (const own of [FOLDER, SCRIPT_BIN])
    await writeMissing(workspace, `${own}/.gitignore`, Buffer.from("*\n"), 0o644);
  for (const { path, bytes, isExecutable } of files)
    await writeMissing(workspace, `${folder}/${path}`, bytes, isExecutable ? 0o555 : 0o444);
  await writeMissing(workspace, `${SCRIPT_BIN}/${manifest.name}`, wrapper, 0o555);
  await writeMissing(workspace, `${folder}.sh`, wrapper, 0o444);
  return `${folder}.sh`;
}

/** script-files-2. */
async function writeMissing(workspace: Workspace, path: string, bytes: Buffer, mode: number): Promise<void> {
  try {
    const found = await workspace.readFile(path);
    if (found.mode === mode && found.bytes.equals(bytes)) return;
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "file_not_found") throw error;
  }
  await workspace.writeFile(path, bytes, { mode });
}
