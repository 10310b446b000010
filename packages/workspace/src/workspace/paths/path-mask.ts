// `PathMask`: the files that a sandbox keeps from the commands of an agent, because a rule of the agent
// denies them.
//
//   - The patterns are those of the rules, over paths from the root of the workspace. A pattern that matches
//     a folder covers all below.
//   - Where files are kept from reading, no command sees a `.git` either, because a commit may hold them.

import { isOutside, normalizeGlob, pathFilter } from "./path-globs.ts";

/** The paths that a command may not read or write. */
export interface PathMask {
  /** Patterns of files that a command neither reads nor changes. */
  readonly unreadable: readonly string[];
  /** Patterns of files that a command does not change or make. */
  readonly unwritable: readonly string[];
}

export interface MaskFilter {
  /** Whether a path from the root is kept from reading, as it is or by a folder above it. */
  readonly isUnreadable: (path: string) => boolean;
  readonly isUnwritable: (path: string) => boolean;
}

/** Patterns of paths outside of the workspace match nothing in it. */
export function maskFilter({ unreadable, unwritable }: PathMask): MaskFilter {
  const isRead = pathFilter(insideOf(unreadable));
  const isWritten = pathFilter(insideOf(unwritable));
  const hidesGit = unreadable.length > 0;
  const isUnreadable = (path: string): boolean =>
    isRead(path) || (hidesGit && path.split("/").some((name) => name.toLowerCase() === ".git"));
  return { isUnreadable, isUnwritable: (path) => isUnreadable(path) || isWritten(path) };
}

export function insideOf(patterns: readonly string[]): readonly string[] {
  return patterns.map(normalizeGlob).filter((glob) => !isOutside(glob));
}
