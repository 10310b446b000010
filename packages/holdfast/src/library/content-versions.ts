// `holdfast skill history | tag` and `script history | tag` of this machine: versions and their tags.

import { isTag, type ContentVersions } from "@holdfast/agents";
import { UsageError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { localTime, plainLine, table } from "@holdfast/terminal/frame/plain-text";

export const HASH_CHARS = 12;

/** @param makes the command that makes a version. @param column the title of the time. */
export function showVersionsOf(
  name: string,
  { versions, current, tags }: ContentVersions,
  { column, makes }: { readonly column: "PUSHED" | "APPROVED"; readonly makes: string },
  io: Io,
): number {
  const shown = versions.toReversed().map(({ hash, at }) => ({
    hash,
    [`${column.toLowerCase()}At`]: new Date(at).toISOString(),
    current: hash === current,
    tags: Object.keys(tags).filter((tag) => tags[tag] === hash),
    at,
  }));
  const rows = shown.map(({ hash, at, current: isCurrent, tags: names }) => [
    hash.slice(0, HASH_CHARS),
    localTime(at),
    [...(isCurrent ? ["current"] : []), ...names].map((mark) => plainLine(mark, 64)).join(", "),
  ]);
  io.show(
    shown.map(({ at: _at, ...version }) => version),
    rows.length === 0
      ? `${name} has no version: \`${io.call(makes)}\` makes one`
      : table([["VERSION", column, ""], ...rows]).join("\n"),
  );
  return 0;
}

/** @throws UsageError for a text that could be the beginning of a hash, or that no agent file could name. */
export function checkTag(tag: string): void {
  if (isTag(tag)) return;
  throw new UsageError(`${JSON.stringify(tag.slice(0, 64))} is no tag`, {
    expected: "up to 64 letters, digits, dots, - and _, and not the beginning of a hash",
    fix: "choose another one, such as stable",
  });
}

export function showTag(name: string, tag: string, hash: string, io: Io): number {
  io.show(
    { name, tag, hash },
    `the tag ${tag} of ${name} is version ${hash.slice(0, HASH_CHARS)}; agent files name it as ${name}@${tag}`,
  );
  return 0;
}
