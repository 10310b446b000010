// `writeScript`: the files of a script in a workspace, and its command.
//
//   .agent-orchestrator/scripts/NAME/HASH/        exactly the files of a version, which no agent may write
//   .agent-orchestrator/scripts/NAME/HASH.sh      the wrapper of that version, for the tool
//   .agent-orchestrator/bin/NAME                  the command of the version that a session used last, for the shell
//   .agent-orchestrator/calls/                    the notes of the wrappers that the shell runs
//
//   - Sessions with different versions share a workspace: the files of a version lie below its hash.
//   - The files are compared before each call of the tool (written-content-1).

import { join } from "node:path";

import { SCRIPT_BIN, SCRIPT_CALLS } from "../tasks/script-calls.ts";
import { type Workspace } from "@holdfast/workspace";
import type { FolderContent } from "../contents/folder-content.ts";
import { writeContent, writeMissing } from "../contents/written-content.ts";
import type { ScriptManifest } from "./script-manifest.ts";
import { scriptCommand, scriptWrapper } from "./script-wrapper.ts";
import { HASH_CHARS } from "../contents/content-versions.ts";

/** The folder of the workspace that holds what Holdfast writes for an agent. */
const FOLDER = ".agent-orchestrator/scripts";

/** @returns the path of the wrapper of this version, from the root of the workspace. */
export async function writeScript(
  workspace: Workspace,
  manifest: ScriptManifest,
  { hash, files }: FolderContent,
): Promise<string> {
  const below = `${manifest.name}/${hash.slice(0, HASH_CHARS)}`;
  const folder = `${FOLDER}/${below}`;
  const place = { folder: join(workspace.root, folder), hash };
  const command = Buffer.from(scriptCommand(manifest, place));
  const wrapper = Buffer.from(scriptWrapper(manifest, place));
  const own = files.map((file) => ({ ...file, mode: file.isExecutable ? 0o555 : 0o444 }));
  await writeContent(workspace, FOLDER, below, own);
  // The folders are no part of the user's repository.
  for (const base of [SCRIPT_BIN, SCRIPT_CALLS])
    await writeMissing(workspace, base, { path: ".gitignore", bytes: Buffer.from("*\n"), mode: 0o644 });
  await writeMissing(workspace, SCRIPT_BIN, { path: manifest.name, bytes: command, mode: 0o555 });
  await writeMissing(workspace, FOLDER, { path: `${below}.sh`, bytes: wrapper, mode: 0o444 });
  return `${folder}.sh`;
}
