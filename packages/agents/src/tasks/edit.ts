// One exact replacement in a text. Pure.

import { HoldfastError } from "@holdfast/core";

export interface Edit {
  readonly oldText: string;
  readonly newText: string;
  /** Replace every occurrence; otherwise there must be exactly one. */
  readonly replaceAll?: boolean | undefined;
}

export interface Edited {
  readonly text: string;
  /** How many places were changed, by this attempt or an earlier one; 0 when it was already so. */
  readonly replaced: number;
  /** Line of the first change, from 1. */
  readonly line: number;
  /** There is nothing to write. */
  readonly isDone: boolean;
}

/**
 * @param isRetry an earlier attempt may have made this very edit and died before it was recorded. Then a text
 *   whose every `oldText` stands inside a `newText` counts as edited: otherwise appending to a line ("a" → "a b") would be done
 *   twice. Leaky: it is mistaken when the file already looked like that before the first attempt.
 * @throws HoldfastError `invalid_input` that says what to do instead.
 */
export function applyEdit(path: string, text: string, edit: Edit, isRetry: boolean): Edited {
  const { oldText, newText } = matchLineEnds(text, edit);
  if (oldText === "")
    throw refused(
      path,
      "oldText is empty",
      "give the text to replace, or write the whole file with write_file",
    );
  if (oldText === newText) throw refused(path, "oldText and newText are the same", "nothing would change");

  const places = occurrences(text, oldText);
  if (isRetry && places.every((place) => isInside(text, place, oldText, newText)) && text.includes(newText)) {
    // Told as the first attempt would have told it: what a crash interrupted is not to be seen in the result.
    const made = newText === "" ? 1 : occurrences(text, newText).length;
    const at = Math.max(0, text.indexOf(newText));
    return { text, replaced: edit.replaceAll === true ? made : 1, line: lineAt(text, at), isDone: true };
  }
  const [first] = places;
  if (first === undefined) {
    if (newText !== "" && text.includes(newText))
      return { text, replaced: 0, line: lineAt(text, text.indexOf(newText)), isDone: true };
    throw refused(path, "it does not contain oldText", describeSimilar(text, oldText));
  }
  if (places.length > 1 && edit.replaceAll !== true) {
    const lines = places.slice(0, 10).map((place) => lineAt(text, place));
    throw refused(
      path,
      `it contains oldText ${places.length} times (lines ${lines.join(", ")})`,
      "add surrounding lines until oldText is unique, or set replaceAll",
    );
  }
  // Split, not replace: `$&` in a new text is only text.
  return {
    text: text.split(oldText).join(newText),
    replaced: places.length,
    line: lineAt(text, first),
    isDone: false,
  };
}

/** Models write \n; a file with \r\n keeps its line ends. */
function matchLineEnds(text: string, edit: Edit): Edit {
  const isForeign = text.includes("\r\n") && !edit.oldText.includes("\r") && !text.includes(edit.oldText);
  if (!isForeign) return edit;
  const convert = (part: string): string => part.replaceAll(/\r?\n/g, "\r\n");
  return { ...edit, oldText: convert(edit.oldText), newText: convert(edit.newText) };
}

/** Without overlaps, as they would be replaced. */
function occurrences(text: string, part: string): readonly number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places.push(at);
  return places;
}

/** Whether the `oldText` at this place is a part of a `newText` around it. */
function isInside(text: string, place: number, oldText: string, newText: string): boolean {
  return occurrences(newText, oldText).some(
    (offset) => text.startsWith(newText, place - offset) && place >= offset,
  );
}

function describeSimilar(text: string, oldText: string): string {
  const wanted = oldText
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
  const lines = text.split("\n");
  const at = wanted === undefined ? -1 : lines.findIndex((line) => line.includes(wanted));
  const hint = at === -1 ? "" : `line ${at + 1} is similar: ${JSON.stringify(lines[at]?.slice(0, 200))}; `;
  return `${hint}read the file and copy the text exactly, with its indentation`;
}

function lineAt(text: string, place: number): number {
  return text.slice(0, place).split("\n").length;
}

function refused(path: string, why: string, fix: string): HoldfastError {
  return new HoldfastError("invalid_input", `"${path}" was not changed: ${why}`, { fix });
}
