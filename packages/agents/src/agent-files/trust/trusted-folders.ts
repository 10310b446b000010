// The folders whose agent files the user trusts, in a file of the user's data folder, never in a project.
//
//   trusted-folders-1. A folder is trusted by its real path, and no folder below it is.
//   trusted-folders-2. A file that a person names by its path has the trust of the project around it. The folder that the person works in
//       does not count. A folder with `.git` or `.holdfast` begins another project.

import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makePrivateFolder, replacePrivate } from "@holdfast/runtime/internal";
import { z } from "zod";

import { isUserFile, realPath, type AgentPlaces } from "../agent-places.ts";
import { readUserFile } from "../user-file.ts";

/** @throws HoldfastError `config_invalid` for a file that is damaged or that others may write. */
export function isTrusted(trustFile: string, folder: string): boolean {
  return readTrusted(trustFile).includes(realPath(folder));
}

/** Whether the user trusts the project that a file, or the folder of an agent, lies in (trusted-folders-2). @throws HoldfastError `config_invalid` */
export function isFileTrusted(
  places: Pick<AgentPlaces, "trustFile" | "home" | "env">,
  path: string,
): boolean {
  const { trustFile, home } = places;
  const real = realPath(path);
  if (isUserFile(places, real)) return true;
  const own = isFile(real) ? dirname(real) : real;
  const trusted = readTrusted(trustFile);
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

/** @returns the real path of the folder. @throws HoldfastError `config_invalid` */
export function trustFolder(trustFile: string, folder: string): string {
  const real = realPath(folder);
  const trusted = readTrusted(trustFile).filter((known) => known !== real);
  writeTrusted(trustFile, [...trusted, real]);
  return real;
}

/** @returns whether it was trusted. @throws HoldfastError `config_invalid` */
export function distrustFolder(trustFile: string, folder: string): boolean {
  const real = realPath(folder);
  const trusted = readTrusted(trustFile);
  if (!trusted.includes(real)) return false;
  writeTrusted(
    trustFile,
    trusted.filter((known) => known !== real),
  );
  return true;
}

function writeTrusted(trustFile: string, folders: readonly string[]): void {
  makePrivateFolder(dirname(trustFile));
  replacePrivate(trustFile, `${JSON.stringify({ folders }, null, 2)}\n`);
}

const file = z.object({ folders: z.array(z.string()) });

function readTrusted(trustFile: string): readonly string[] {
  const found = readUserFile(trustFile, {
    what: "trusted folders",
    expected: '{ "folders": ["/path/of/a/project"] }',
    fix: "remove the file, and trust the folders again: `holdfast agents trust`",
    schema: file,
  });
  return found?.folders ?? [];
}
