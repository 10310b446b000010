// `compareContents`: the files in which two contents of a skill or a script differ.

import type { ContentFile, FolderContent } from "./folder-content.ts";

export interface ChangedFile {
  readonly path: string;
  readonly change: "new" | "changed" | "gone";
}

export function compareContents(before: FolderContent, after: FolderContent): readonly ChangedFile[] {
  const old = new Map(before.files.map((file) => [file.path, file]));
  const changed = after.files.flatMap((file): ChangedFile[] => {
    const known = old.get(file.path);
    old.delete(file.path);
    if (known === undefined) return [{ path: file.path, change: "new" }];
    return isSame(known, file) ? [] : [{ path: file.path, change: "changed" }];
  });
  return [...changed, ...[...old.keys()].map((path) => ({ path, change: "gone" as const }))];
}

function isSame(one: ContentFile, other: ContentFile): boolean {
  return one.isExecutable === other.isExecutable && one.bytes.equals(other.bytes);
}
