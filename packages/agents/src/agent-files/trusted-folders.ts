// The folders whose agent files the user trusts, in a file of the user's data folder, never in a project.
//
//   trusted-folders-1. A folder is trusted by its real path, and no folder below it is.

import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { isWritableByOthers, makePrivateFolder, replacePrivate } from "@holdfast/runtime/internal";
import { realPath } from "./agent-places.ts";

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

function readTrusted(trustFile: string): readonly string[] {
  let text: string;
  try {
    if (isWritableByOthers(statSync(trustFile))) throw damaged(trustFile, "other users may write it");
    text = readFileSync(trustFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  let folders: unknown;
  try {
    ({ folders } = JSON.parse(text) as { folders?: unknown });
  } catch {
    throw damaged(trustFile, "it is not JSON");
  }
  if (Array.isArray(folders) && folders.every((folder) => typeof folder === "string")) return folders;
  throw damaged(trustFile, "it has no list of folders");
}

function damaged(path: string, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the file of trusted folders cannot be used: ${why}`, {
    at: path,
    expected: '{ "folders": ["/path/of/a/project"] }, written by this user only',
    fix: "remove the file, and trust the folders again: `holdfast agents trust`",
  });
}
