// The versions of scripts that the user has pushed (`readVersions`), in a file of the user's data folder, never in a project.
//
//   script-versions-1. The file names versions by the hashes of their contents. A version that is pushed again moves to the end.

import { dirname } from "node:path";
import { makePrivateFolder, replacePrivate } from "@holdfast/runtime/internal";
import { z } from "zod";

import { readUserFile } from "../agent-files/user-file.ts";

export interface ScriptVersions {
  /** The hash of the version that agents use; `null` before the first push. */
  readonly current: string | null;
  /** In the order in which they were pushed. */
  readonly versions: readonly ScriptVersion[];
}

export interface ScriptVersion {
  readonly hash: string;
  /** When it was pushed last, in milliseconds since 1970. */
  readonly at: number;
}

/** Versions of one script. The oldest ones are forgotten, and their contents stay for the sessions that use them. */
const VERSIONS_MAX = 100;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const versions = z.strictObject({
  current: hash,
  versions: z.array(z.strictObject({ hash, at: z.number() })),
});
const file = z.strictObject({ scripts: z.record(z.string(), z.record(z.string(), versions)) });

type All = z.output<typeof file>["scripts"];

/** @param owner the real path of a project, or `user`. @throws HoldfastError `config_invalid` */
export function readVersions(path: string, owner: string, name: string): ScriptVersions {
  const ofOwner = ownEntry(readAll(path), owner) ?? {};
  return ownEntry(ofOwner, name) ?? { current: null, versions: [] };
}

/** Adds a version, which is the current one then. @throws HoldfastError `config_invalid` */
export function addVersion(path: string, owner: string, name: string, added: ScriptVersion): void {
  const others = readVersions(path, owner, name).versions.filter((version) => version.hash !== added.hash);
  write(path, owner, name, { current: added.hash, versions: [...others, added].slice(-VERSIONS_MAX) });
}

/** @param chosen the hash of one of its versions. @throws HoldfastError `config_invalid` */
export function chooseVersion(path: string, owner: string, name: string, chosen: string): void {
  const known = readVersions(path, owner, name).versions;
  write(path, owner, name, { current: chosen, versions: [...known] });
}

function write(path: string, owner: string, name: string, changed: z.output<typeof versions>): void {
  makePrivateFolder(dirname(path));
  const all = readAll(path);
  const scripts = { ...all, [owner]: { ...ownEntry(all, owner), [name]: changed } };
  replacePrivate(path, `${JSON.stringify({ scripts }, null, 2)}\n`);
}

function ownEntry<Value>(entries: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}

function readAll(path: string): All {
  const found = readUserFile(path, {
    what: "versions of scripts",
    expected: '{ "scripts": { "/path/of/a/project": { "NAME": { "current": "HASH", "versions": [] } } } }',
    fix: "remove the file, and push the scripts again: `holdfast script push`",
    schema: file,
  });
  return found?.scripts ?? {};
}
