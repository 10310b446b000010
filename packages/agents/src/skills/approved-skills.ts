// The contents of a project's skills that the user has approved (`readApprovedSkills`), in a file of the user's data folder.
//
//   approved-skills-1. An approval is for one content of one skill of one project, by the project's real path. A changed content
//       needs a new one.

import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { isWritableByOthers, makePrivateFolder, replacePrivate } from "@holdfast/runtime/internal";
import { z } from "zod";

/** Hashes of contents by the names of skills. */
export type ApprovedSkills = Readonly<Record<string, string>>;

const file = z.strictObject({ skills: z.record(z.string(), z.record(z.string(), z.string())) });

/** @param project the real path of a project. @throws HoldfastError `config_invalid` */
export function readApprovedSkills(path: string, project: string): ApprovedSkills {
  const all = readAll(path);
  return Object.hasOwn(all, project) ? (all[project] ?? {}) : {};
}

/** Replaces the approvals of a project. @throws HoldfastError `config_invalid` */
export function writeApprovedSkills(path: string, project: string, skills: ApprovedSkills): void {
  makePrivateFolder(dirname(path));
  const { [project]: _before, ...others } = readAll(path);
  const after = Object.keys(skills).length === 0 ? others : { ...others, [project]: skills };
  replacePrivate(path, `${JSON.stringify({ skills: after }, null, 2)}\n`);
}

function readAll(path: string): Readonly<Record<string, ApprovedSkills>> {
  let text: string;
  try {
    if (isWritableByOthers(statSync(path))) throw damaged(path, "other users may write it");
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
  try {
    return file.parse(JSON.parse(text)).skills;
  } catch {
    throw damaged(path, "it has another form");
  }
}

function damaged(path: string, why: string): HoldfastError {
  return new HoldfastError("config_invalid", `the file of approved skills cannot be used: ${why}`, {
    at: path,
    expected: '{ "skills": { "/path/of/a/project": { "NAME": "HASH" } } }, written by this user only',
    fix: "remove the file, and approve the skills again: `holdfast skill approve`",
  });
}
