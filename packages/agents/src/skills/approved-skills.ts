// The contents of a project's skills that the user has approved (`readApprovedSkills`), in a file of the
// user's data folder.
//
// An approval is for one content of one skill of one project, by the project's real path. A changed content
// needs a new one.

import { dirname } from "node:path";
import { makePrivateFolder, readUserFile, replacePrivate } from "@holdfast/system";
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
  const found = readUserFile(path, {
    what: "approved skills",
    expected: '{ "skills": { "/path/of/a/project": { "NAME": "HASH" } } }',
    fix: "remove the file, and approve the skills again: `holdfast skill approve`",
    schema: file,
  });
  return found?.skills ?? {};
}
