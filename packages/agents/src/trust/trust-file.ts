// The file with what the user trusts: folders, and the hashes of contents in them. It lies in the user's data
// folder, never in a project.
//
// Every command that finds settings in a project reads it, so this source loads no library.

import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { makePrivateFolder, readUserFile, replacePrivate } from "@holdfast/system";

export interface Trusted {
  readonly folders: readonly string[];
  /** The hashes of contents by the paths of their files, for each folder. */
  readonly contents: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** @throws HoldfastError `config_invalid` for a file that is damaged or that others may write. */
export function readTrust(trustFile: string): Trusted {
  const found = readUserFile(trustFile, {
    what: "trusted folders",
    expected: '{ "folders": ["/path/of/a/project"] }',
    fix: "remove the file, and trust the folders again: `holdfast agents trust`",
    schema: { parse: trustedOf },
  });
  return found ?? { folders: [], contents: {} };
}

export function writeTrust(trustFile: string, trusted: Trusted): void {
  makePrivateFolder(dirname(trustFile));
  replacePrivate(trustFile, `${JSON.stringify(trusted, null, 2)}\n`);
}

/** The hash of the fields of a file. @returns `undefined` without any. */
export function hashOfFields(content: Readonly<Record<string, unknown>>): string | undefined {
  const fields = Object.entries(content);
  return fields.length === 0 ? undefined : hashOf(JSON.stringify(fields));
}

export function hashOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** The fields of a project's configuration, all of which say what a program does. */
export const CONFIG_FILE = ".holdfast/config.json";

/** Whether the user has trusted a configuration with these settings. @throws HoldfastError `config_invalid` */
export function isTrustedConfig(
  trustFile: string,
  folder: string,
  settings: Readonly<Record<string, unknown>>,
): boolean {
  const known = readTrust(trustFile).contents[realpathSync(folder)]?.[CONFIG_FILE];
  return known !== undefined && known === hashOfFields(settings);
}

function trustedOf(value: unknown): Trusted {
  const { folders, contents = {} } = objectOf(value);
  if (!Array.isArray(folders) || !folders.every((folder) => typeof folder === "string")) throw new Error();
  const hashes = Object.entries(objectOf(contents)).map(([folder, own]) => [folder, textsOf(own)] as const);
  return { folders, contents: Object.fromEntries(hashes) };
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  const object = objectOf(value);
  if (!Object.values(object).every((text) => typeof text === "string")) throw new Error();
  return object as Readonly<Record<string, string>>;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error();
  return value as Readonly<Record<string, unknown>>;
}
