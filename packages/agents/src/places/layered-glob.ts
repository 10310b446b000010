// `globsInFolder`: the patterns by which a pattern of whole paths counts in one folder. Pure.

import { join, normalize } from "node:path";
import { globMatcher } from "@holdfast/workspace";

/**
 * The pattern from the folder.
 *
 * @param rooted a pattern that begins at the root.
 * @returns `*` for a pattern that names the folder or one above it, and the pattern itself for a place
 *   elsewhere.
 */
export function globsInFolder(rooted: string, folder: string): readonly string[] {
  if (rooted.startsWith(`${folder}/`)) return [rooted.slice(folder.length + 1)];
  const steps = stepsOf(rooted.replace(/\/(\*\*\/?)?$/, ""));
  const end = steps.length;
  let open = withNext(new Set([0]), steps);
  for (const name of stepsOf(folder)) {
    if (open.has(end)) return ["*"];
    const next = [...open].flatMap((at) =>
      steps[at] === "**" ? [at] : isStep(steps[at], name) ? [at + 1] : [],
    );
    open = withNext(new Set(next), steps);
  }
  if (open.has(end)) return ["*"];
  const inside = [...open].map((at) => steps.slice(at).join("/"));
  return inside.length === 0 ? [rooted] : inside;
}

function stepsOf(path: string): readonly string[] {
  // A group with a slash inside of it is one step, which matches any name.
  return normalize(join("/", path))
    .replaceAll(/\{[^{}]*\/[^{}]*\}/g, "**")
    .split("/")
    .filter((step) => step !== "");
}

function isStep(step: string | undefined, name: string): boolean {
  return step !== undefined && (step === name || globMatcher(step)(name));
}

/** `**` may stand for no name at all. */
function withNext(open: ReadonlySet<number>, steps: readonly string[]): ReadonlySet<number> {
  const all = new Set(open);
  for (const at of all) if (steps[at] === "**") all.add(at + 1);
  return all;
}
