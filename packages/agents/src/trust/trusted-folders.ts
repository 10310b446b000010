// The folders whose agent files the user trusts, in a file of the user's data folder, never in a project.
// `trustFolder` (`trust-project.ts`) adds one.
//
//   - A folder is trusted by its real path. A project in a folder below it needs trust of its own.
//   trusted-folders-2. Everything that gives rights or is code is trusted with its content
//       (`trusted-contents.ts`). A file that is new or has changed is not used until the user trusts the
//       folder again. A command of Holdfast that changes one trusts its change. Other files have the trust of
//       the folder alone. Another repository at the same path therefore has no rights.
//   - A person may name an agent file by its path. Its hooks and servers have the trust of the project around
//     the file. The folder that the person works in does not count. A folder with `.git` or `.holdfast`
//     begins another project.

import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

import { isUserFile, layersOf, realPath, type AgentPlaces } from "../places/agent-places.ts";
import { readTrust, writeTrust } from "./trust-file.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { hashOfCode } from "./named-code.ts";
import {
  codeKey,
  contentToTrust,
  pathIn,
  rightsToTrust,
  rulesKey,
  rulesToTrust,
} from "./trusted-contents.ts";

/** @throws HoldfastError `config_invalid` for a file that is damaged or that others may write. */
export function isTrusted(trustFile: string, folder: string): boolean {
  return readTrust(trustFile).folders.includes(realPath(folder));
}

/** The layers that the user trusts, and the project itself. @throws HoldfastError `config_invalid` */
export function trustedLayersOf(places: AgentPlaces): readonly AgentPlaces[] {
  return layersOf(places).filter(
    ({ project }) => project === places.project || isTrusted(places.trustFile, project),
  );
}

/**
 * trusted-folders-2. @returns whether a file of the folder starts nothing, or what the user has trusted.
 *     @throws HoldfastError `config_invalid`
 */
export function isTrustedContent(trustFile: string, folder: string, path: string): boolean {
  const real = realPath(folder);
  const hash = contentToTrust(folder, path);
  return hash === undefined || readTrust(trustFile).contents[real]?.[pathIn(folder, path)] === hash;
}

/**
 * Whether the rules of a file, which may allow calls, are those that the user has trusted.
 *
 * @throws HoldfastError `config_invalid`
 */
export function areTrustedRules(trustFile: string, folder: string, path: string): boolean {
  const known = readTrust(trustFile).contents[realPath(folder)]?.[rulesKey(pathIn(folder, path))];
  return rulesToTrust(folder, path) === known;
}

/** Whether an agent file gives what the user has trusted. @throws HoldfastError `config_invalid` */
export function areTrustedRights(
  trustFile: string,
  folder: string,
  { path, record }: { readonly path: string; readonly record: AgentRecord | null },
): boolean {
  const known = readTrust(trustFile).contents[realPath(folder)]?.[pathIn(folder, path)];
  return record === null || rightsToTrust(record, folder) === known;
}

/** Whether a file of code, and what it imports, is what the user has trusted. @throws HoldfastError `config_invalid` */
export function isTrustedCode(trustFile: string, folder: string, path: string): boolean {
  const known = readTrust(trustFile).contents[realPath(folder)]?.[codeKey(path)];
  return known !== undefined && known === hashOfCode(folder, [path]);
}

/** Trusts the present content of one file, which its user has just changed. @throws HoldfastError `config_invalid` */
export function trustContent(trustFile: string, folder: string, path: string): void {
  trustHash(trustFile, folder, path, contentToTrust(folder, path));
}

/** Keeps the hash of one file; `undefined` for a file that starts nothing. @throws HoldfastError `config_invalid` */
export function trustHash(trustFile: string, folder: string, path: string, hash: string | undefined): void {
  const real = realPath(folder);
  const { folders, contents } = readTrust(trustFile);
  const { [pathIn(folder, path)]: _, ...others } = contents[real] ?? {};
  const own = hash === undefined ? others : { ...others, [pathIn(folder, path)]: hash };
  writeTrust(trustFile, { folders, contents: { ...contents, [real]: own } });
}

/**
 * Whether the user trusts the project that a file, or the folder of an agent, lies in. @throws HoldfastError
 * `config_invalid`
 */
export function isFileTrusted(
  places: Pick<AgentPlaces, "trustFile" | "home" | "env">,
  path: string,
): boolean {
  const { trustFile, home } = places;
  const real = realPath(path);
  if (isUserFile(places, real)) return true;
  const own = isFile(real) ? dirname(real) : real;
  const trusted = readTrust(trustFile).folders;
  // A home folder has downloads of anybody below it.
  const isRoot = (folder: string): boolean =>
    trusted.includes(folder) && (folder === own || home === undefined || folder !== realPath(home));
  const isOther = (folder: string): boolean =>
    [".git/HEAD", ".holdfast"].some((name) => existsSync(join(folder, name))) || isFile(join(folder, ".git"));
  for (let folder = own; ; folder = dirname(folder)) {
    if (isRoot(folder)) return true;
    if (isOther(folder) || folder === dirname(folder)) return false;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** @returns whether it was trusted. @throws HoldfastError `config_invalid` */
export function distrustFolder(trustFile: string, folder: string): boolean {
  const real = realPath(folder);
  const { folders, contents } = readTrust(trustFile);
  if (!folders.includes(real)) return false;
  const { [real]: _, ...others } = contents;
  writeTrust(trustFile, { folders: folders.filter((known) => known !== real), contents: others });
  return true;
}
