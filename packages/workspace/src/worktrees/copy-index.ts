// `copyIndex`: a copy of git's index that tells the same files to be changed.
//
//   copy-index-1. The copy is as old as its original. Git compares the content of each file whose time is not
//       before that of the index. A second change of the same size in one tick of the clock has the time of
//       the first. A newer index would hide it.

import { copyFileSync, statSync, utimesSync } from "node:fs";

export function copyIndex(from: string, to: string): void {
  copyFileSync(from, to);
  const ms = Math.floor(statSync(from).mtimeMs);
  utimesSync(to, ms / 1_000, ms / 1_000);
}
