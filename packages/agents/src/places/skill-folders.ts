// The folders in which skills are looked for: `skillFilesIn` finds the skills, and `placesWithoutSkill` whatever
// is there beside them.

import { join } from "node:path";
import { foldersIn, namesIn } from "./agent-places.ts";
import type { ProjectPath } from "./project-inputs.ts";

export const SKILL_FILE = "SKILL.md";

const FOLDERS: readonly ProjectPath[] = [".agents/skills", ".claude/skills"];

/** The `SKILL.md` of each skill of a project or a user. @param root the folder of either. */
export function skillFilesIn(root: string): readonly string[] {
  return FOLDERS.flatMap((folder) => skillFilesBelow(join(root, folder)));
}

/**
 * The files of skills in folders at any depth. Below the folder of a skill there is no other one. Links are
 * followed in the uppermost folder.
 */
function skillFilesBelow(folder: string, depth = 0): readonly string[] {
  return foldersIn(folder, { withLinks: depth === 0 }).flatMap(({ path, isLink }) => {
    const file = skillFileIn(path);
    if (file !== undefined) return [join(path, file)];
    return isLink ? [] : skillFilesBelow(path, depth + 1);
  });
}

function skillFileIn(folder: string): string | undefined {
  const names = namesIn(folder);
  return names.find((name) => name === SKILL_FILE) ?? names.find(isMisspelt);
}

/** Files and folders beside the skills that are none, each with the reason. @param root as above. */
export function placesWithoutSkill(
  root: string,
): readonly { readonly path: string; readonly reason: string }[] {
  return FOLDERS.flatMap((folder) => {
    const folders = foldersIn(join(root, folder), { withLinks: true }).map(({ path }) => path);
    const empty = folders.filter(
      (path) => skillFileIn(path) === undefined && skillFilesBelow(path, 1).length === 0,
    );
    const files = namesIn(join(root, folder)).filter((name) => name.endsWith(".md"));
    return [
      ...empty.map((path) => ({ path, reason: `no ${SKILL_FILE} is in it, so it is no skill` })),
      ...files.map((name) => ({
        path: join(root, folder, name),
        reason: `a skill is a folder with a ${SKILL_FILE}, and not a file`,
      })),
    ];
  });
}

/** A name that some systems take for `SKILL.md`, and others do not. */
function isMisspelt(name: string): boolean {
  return name.toUpperCase() === SKILL_FILE.toUpperCase();
}
