// Globs over the paths of a workspace, as permission rules write them (`pathFilter`).

import { posix } from "node:path";
import picomatch from "picomatch";

/** The characters with a meaning in globs. */
export const GLOB_SIGNS = /[*?[\]{}()!+@|\\]/;

/** A path as rules see it: without steps that lead nowhere, and without a slash at its end. */
export function normalizePath(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, "");
}

/** A slash at the end stands for all below a folder. */
export function normalizeGlob(pattern: string): string {
  const relative = pattern.replace(/^(\.\/+)+/, "");
  if (relative.endsWith("/")) return `${relative}**`;
  return relative === "" || GLOB_SIGNS.test(relative) ? relative : normalizePath(relative);
}

/** Whether a path leads out of the folder that relative paths begin in. */
export function isOutside(path: string): boolean {
  return /^(\/|\.\.(\/|$))/.test(path);
}

/** @returns whether one of the patterns matches a path or a folder above it. A pattern that cannot be used matches all. */
export function pathFilter(patterns: readonly string[]): (path: string) => boolean {
  const matchers = patterns.map(matcherOf);
  const known = new Map<string, boolean>();
  const isMatch = (path: string): boolean => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const above = posix.dirname(path);
    const isFound = matchers.some((matches) => matches(path)) || (above !== path && isMatch(above));
    known.set(path, isFound);
    return isFound;
  };
  return (path) => patterns.length > 0 && isMatch(normalizePath(path));
}

function matcherOf(pattern: string): (path: string) => boolean {
  const glob = normalizeGlob(pattern);
  try {
    if (!GLOB_SIGNS.test(glob)) return (path) => glob === "" || path === glob;
    const expression = picomatch.makeRe(glob, { dot: true, debug: true });
    return (path) => expression.test(path);
  } catch {
    return () => true;
  }
}
