// The hash of the content of a folder, such as a skill or an agent file, and the paths that it may have. Both
// sides of a transfer use the same rules, so that neither trusts the other.
//
//   - The hash covers the path, the bytes and the executable bit of every file, and nothing else. It is the
//     version.
//   - A path that another system could not write, that leads out of the folder, or that is another path
//     there, is refused.

export interface HashedFile {
  /** From the folder, with `/`. */
  readonly path: string;
  /** The SHA-256 of its bytes in hexadecimal. */
  readonly sha256: string;
  readonly isExecutable: boolean;
}

/** The text whose SHA-256 is the hash of the content. */
export function contentText(files: readonly HashedFile[]): string {
  return files
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path, sha256, isExecutable }) => JSON.stringify([path, sha256, isExecutable]))
    .join("\n");
}

/** Windows reserves some names, and gives others a meaning. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Whether every system can write a file of this name. */
export function isPortableName(name: string): boolean {
  // A workspace writes nothing below these two.
  const isOwn = [".git", ".holdfast"].includes(name.toLowerCase());
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for.
  const isOdd = /[\u0000-\u001f\u007f\\:*?"<>|]|[. ]$/.test(name);
  const isText = name.isWellFormed() && !name.includes("\ufffd");
  return name !== "" && !isOwn && !isOdd && !RESERVED.test(name) && name.length <= 255 && isText;
}

/** @returns the problem of the first wrong path. */
export function contentPathProblem(paths: readonly string[]): string | undefined {
  const seen = new Map<string, string>();
  for (const path of paths) {
    if (!path.split("/").every(isPortableName))
      return `${JSON.stringify(path)} is a name that not every system can write`;
    const key = path.normalize("NFC").toLowerCase();
    const other = seen.get(key);
    if (other !== undefined) return `${other} and ${path} are one file on other systems`;
    seen.set(key, path);
  }
  return undefined;
}
