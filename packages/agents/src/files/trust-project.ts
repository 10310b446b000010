// `trustFolder`: trusts a project with the present content of everything in it that gives rights or is code.

import { findAgentFiles, foundAt, realPath } from "../places/agent-places.ts";
import { loadAgentFile } from "./load-agent-file.ts";
import { hashOfCode } from "../trust/named-code.ts";
import { readTrust, writeTrust } from "../trust/trust-file.ts";
import { codeIn, codeKey, filesToTrust, pathIn, rightsToTrust } from "../trust/trusted-contents.ts";
import { trustHash } from "../trust/trusted-folders.ts";

/**
 * Trusts a folder with the present content of its files. @param tasks more code. @returns the real path of
 * the folder. @throws HoldfastError `config_invalid`
 */
export function trustFolder(trustFile: string, folder: string, tasks: readonly string[] = []): string {
  const real = realPath(folder);
  const { folders, contents } = readTrust(trustFile);
  writeTrust(trustFile, {
    folders: [...folders.filter((known) => known !== real), real],
    contents: { ...contents, [real]: contentsToTrust(folder, [...tasks, ...codeIn(contents[real] ?? {})]) },
  });
  return real;
}

/** As `trustContent`, for what an agent file gives. @throws HoldfastError `config_invalid` */
export function trustAgentFile(trustFile: string, folder: string, path: string): void {
  trustHash(trustFile, folder, path, rightsToTrust(loadAgentFile(foundAt(path)).record, folder));
}

/**
 * The hashes of a project by the paths of the files. @param tasks files of code that agents of the user name
 * in this project.
 */
function contentsToTrust(project: string, tasks: readonly string[]): Readonly<Record<string, string>> {
  const agents = findAgentFiles({ project, home: undefined, env: {}, trustFile: "" })
    .filter(({ dialect }) => dialect !== "folder")
    .map((found) => loadAgentFile(found));
  const found = [
    ...filesToTrust(project),
    ...agents.map(({ path, record }) => [pathIn(project, path), rightsToTrust(record, project)] as const),
    ...[...agents.flatMap(({ record }) => record?.tasks ?? []), ...tasks].map(
      (path) => [codeKey(path), hashOfCode(project, [path])] as const,
    ),
  ];
  return Object.fromEntries(found.flatMap(([path, hash]) => (hash === undefined ? [] : [[path, hash]])));
}
