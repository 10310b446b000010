// The folders whose agent files the user trusts, in a file of the user's data folder, never in a project.
//
//   trusted-folders-1. A folder is trusted by its real path, and no folder below it is.

import { dirname } from "node:path";
import { makePrivateFolder, replacePrivate } from "@holdfast/runtime/internal";
import { z } from "zod";

import { realPath } from "../agent-places.ts";
import { readUserFile } from "../user-file.ts";

/** @throws HoldfastError `config_invalid` for a file that is damaged or that others may write. */
export function isTrusted(trustFile: string, folder: string): boolean {
  return readTrusted(trustFile).includes(realPath(folder));
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
