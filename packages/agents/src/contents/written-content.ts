// `writeContent`: the files of an approved content in a workspace, in a folder that holds exactly these
// files.
//
//   written-content-1. A file that differs is written again, and anything else in the folder is removed. A
//       script would load a file such as `json.py` beside it in the place of a library.
//   - Programs look for settings and libraries in the folders above as well. Only contents stay in those of
//     them that are Holdfast's. A `package.json` there hides the one of the project.
//   - leaky: a program that looks further, as Node does for `node_modules`, finds what the project has. A
//     command without a sandbox can change the folder while a script runs.

import { HoldfastError } from "@holdfast/core";

import type { Workspace } from "@holdfast/workspace";

export interface WrittenFile {
  readonly path: string;
  readonly bytes: Buffer;
  /** Permission bits. */
  readonly mode: number;
}

/** Files of a folder of Holdfast. The folder is no part of the user's repository. */
const MARKS: readonly WrittenFile[] = [
  { path: ".gitignore", bytes: Buffer.from("*\n"), mode: 0o644 },
  { path: "package.json", bytes: Buffer.from("{}\n"), mode: 0o644 },
];
/** Names of contents, of their hashes, and of wrappers beside them. */
const CONTENT_NAME = /^[a-z0-9-]+(\.sh)?$/;

/**
 * @param base one of Holdfast's folders in a workspace.
 * @param folder the folder of the content, from there.
 */
export async function writeContent(
  workspace: Workspace,
  base: string,
  folder: string,
  files: readonly WrittenFile[],
): Promise<void> {
  const kept = new Set([...MARKS.map(({ path }) => path), ...files.map(({ path }) => `${folder}/${path}`)]);
  const entered = new Set([...kept].flatMap(foldersOf));
  await workspace.removeOthers(base, (path, isFolder) => {
    if (isFolder ? entered.has(path) : kept.has(path)) return "keep";
    const above = path.slice(0, path.lastIndexOf("/") + 1);
    const isBeside = `${folder}/`.startsWith(above) && above !== `${folder}/`;
    return isBeside && CONTENT_NAME.test(path.slice(above.length)) ? "leave" : "remove";
  });
  for (const file of MARKS) await writeMissing(workspace, base, file);
  for (const { path, ...file } of files)
    await writeMissing(workspace, base, { ...file, path: `${folder}/${path}` });
}

/** Writes a file unless it is there as it should be. */
export async function writeMissing(
  workspace: Workspace,
  base: string,
  { path, bytes, mode }: WrittenFile,
): Promise<void> {
  const at = `${base}/${path}`;
  try {
    const found = await workspace.readFile(at);
    if (found.mode === mode && found.bytes.equals(bytes)) return;
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "file_not_found") throw error;
  }
  await workspace.writeFile(at, bytes, { mode, isOwn: true });
}

function foldersOf(path: string): readonly string[] {
  const steps = path.split("/").slice(0, -1);
  return steps.map((_, at) => steps.slice(0, at + 1).join("/"));
}
