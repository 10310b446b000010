// `copyIndex`: a copy of git's index that tells the same files to be changed.
//
//   copy-index-1. The copy is as old as its original. Git compares the content of each file whose time is not
//       before that of the index. A second change of the same size in one tick of the clock has the time of
//       the first. A newer index would hide it.

import { copyFileSync, statSync, utimesSync } from "node:fs";
import { HoldfastError } from "@holdfast/core";

/** @throws HoldfastError `invalid_input` for anything but a file. To read a pipe would never end. */
export function copyIndex(from: string, to: string): void {
  const stat = statSync(from);
  if (!stat.isFile())
    throw new HoldfastError("invalid_input", "the index of git is not a file", {
      at: from,
      fix: "remove it, and run `git reset` in the working tree",
    });
  copyFileSync(from, to);
  const ms = Math.floor(stat.mtimeMs);
  utimesSync(to, ms / 1_000, ms / 1_000);
}
