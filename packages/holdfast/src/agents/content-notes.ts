// Notes on a content before a person approves it: text in it that nobody sees, and the files that have
// changed.

import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";
import { MIB } from "@holdfast/core";
import { compareContents, findHiddenText, type FolderContent } from "@holdfast/agents";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";

const WARNINGS_MAX = 5;
const CHANGES_MAX = 20;
const FILE_BYTES_MAX = MIB;

type Files = readonly { readonly path: string; readonly bytes: Buffer }[];

/** One line for each place with hidden text, and for the rest of them. */
export function hiddenTextLines(files: Files): readonly string[] {
  const all = files.flatMap(({ path, bytes }) =>
    isUtf8(bytes)
      ? findHiddenText(bytes.toString("utf8")).map(
          ({ line, what }) => `${plainLine(path, 200)}:${line}: ${what}`,
        )
      : [],
  );
  const more = all.length - WARNINGS_MAX;
  return more > 0 ? [...all.slice(0, WARNINGS_MAX), `and ${more} more`] : all;
}

/** The same for one file; nothing for a folder or a file that cannot be read. */
export function hiddenTextIn(path: string, shown: string): readonly string[] {
  try {
    const facts = statSync(path);
    if (!facts.isFile() || facts.size > FILE_BYTES_MAX) return [];
    return hiddenTextLines([{ path: shown, bytes: readFileSync(path) }]);
  } catch {
    return [];
  }
}

/** "changed SKILL.md, new run.sh"; empty when nothing has changed. */
export function changesText(before: FolderContent, after: FolderContent): string {
  const all = compareContents(before, after).map(({ path, change }) => `${change} ${plainLine(path, 200)}`);
  const more = all.length - CHANGES_MAX;
  return (more > 0 ? [...all.slice(0, CHANGES_MAX), `and ${more} more`] : all).join(", ");
}

/** Notes the hidden text of a content that is about to be used. */
export function noteHiddenText(what: string, files: Files, io: Io): void {
  const lines = hiddenTextLines(files);
  if (lines.length === 0) return;
  io.note(
    `${io.notes.symbols.warn} ${what} has text that a reader does not see: look at it before an agent reads it`,
  );
  for (const line of lines) io.note(`  ${line}`);
}
