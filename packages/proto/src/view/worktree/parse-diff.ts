// `parseDiff`: the output of `git diff` by files and lines, for people. Texts in it are those of files, so
// they are untrusted.
//
//   parse-diff-1. The numbers of a hunk's head say where the hunk ends. A line of a file that looks like a
//       head is therefore a line.

export interface DiffLine {
  /** `head` begins a hunk. `note` is of git, such as a missing end of the last line. */
  readonly type: "head" | "same" | "added" | "deleted" | "note";
  readonly text: string;
  /** Its numbers in the file before and after. */
  readonly before?: number;
  readonly after?: number;
}

export interface DiffFile {
  readonly path: string;
  readonly change: "added" | "deleted" | "renamed" | "changed";
  /** The path before, of a renamed file. */
  readonly from?: string;
  readonly isBinary: boolean;
  readonly added: number;
  readonly deleted: number;
  readonly lines: readonly DiffLine[];
}

interface Draft {
  names: string;
  before?: string;
  after?: string;
  from?: string;
  change: DiffFile["change"];
  isBinary: boolean;
  added: number;
  deleted: number;
  readonly lines: DiffLine[];
}

export function parseDiff(text: string): readonly DiffFile[] {
  const files: Draft[] = [];
  let [before, after, oldLeft, newLeft] = [0, 0, 0, 0];
  for (const line of text.split("\n")) {
    const file = files.at(-1);
    if (file !== undefined && (oldLeft > 0 || newLeft > 0)) {
      // parse-diff-1.
      const rest = line.slice(1);
      if (line.startsWith("+")) {
        file.lines.push({ type: "added", text: rest, after: after++ });
        file.added++;
        newLeft--;
      } else if (line.startsWith("-")) {
        file.lines.push({ type: "deleted", text: rest, before: before++ });
        file.deleted++;
        oldLeft--;
      } else if (line.startsWith("\\")) {
        file.lines.push({ type: "note", text: rest.trim() });
      } else {
        file.lines.push({ type: "same", text: rest, before: before++, after: after++ });
        oldLeft--;
        newLeft--;
      }
      continue;
    }
    if (line.startsWith("diff --git ")) {
      const names = line.slice("diff --git ".length);
      files.push({ names, change: "changed", isBinary: false, added: 0, deleted: 0, lines: [] });
      continue;
    }
    if (file === undefined) continue;
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk === null) readHead(file, line);
    else {
      [before, after] = [Number(hunk[1]), Number(hunk[3])];
      [oldLeft, newLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      file.lines.push({ type: "head", text: line });
    }
  }
  return files.map(fileOf);
}

function readHead(file: Draft, line: string): void {
  if (line.startsWith("--- ")) file.before = line.slice(4);
  else if (line.startsWith("+++ ")) file.after = line.slice(4);
  else if (line.startsWith("new file")) file.change = "added";
  else if (line.startsWith("deleted file")) file.change = "deleted";
  else if (line.startsWith("rename from ")) Object.assign(file, { change: "renamed", from: line.slice(12) });
  else if (line.startsWith("rename to ")) file.after = `b/${line.slice(10)}`;
  else if (line.startsWith("Binary files ") || line === "GIT binary patch") file.isBinary = true;
  else if (line.startsWith("\\")) file.lines.push({ type: "note", text: line.slice(1).trim() });
}

function fileOf({ names, before, after, from, ...file }: Draft): DiffFile {
  const named = [after, before].find((name) => name !== undefined && name !== NOWHERE);
  // A file without lines, such as a binary or an empty one, is named in its first line alone, twice.
  const path = named === undefined ? names.slice((names.length + 1) / 2) : named;
  return { path: plainPath(path), ...(from === undefined ? {} : { from: plainPath(`a/${from}`) }), ...file };
}

const NOWHERE = "/dev/null";

/** Without the prefix of its side, a tab at its end, and git's quotes. */
function plainPath(text: string): string {
  const name = text.replace(/\t$/, "");
  const inner = /^(?:[ab]\/)?"(.*)"$/.exec(name)?.[1];
  return (inner === undefined ? name : unquoted(inner)).replace(/^[ab]\//, "");
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", '"': '"', "\\": "\\" };

function unquoted(text: string): string {
  const percent = text
    .replace(/%/g, "%25")
    .replace(/\\([0-3][0-7]{2}|.)/g, (_, escape: string) =>
      escape.length === 3
        ? `%${Number.parseInt(escape, 8).toString(16).padStart(2, "0")}`
        : encodeURIComponent(ESCAPES[escape] ?? escape),
    );
  try {
    return decodeURIComponent(percent);
  } catch {
    return text; // Its name is no UTF-8.
  }
}
