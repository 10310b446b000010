// `withFiles`: a typed message with the texts of the files that it names as `@path`.
//
//   - Only files of the project are read. A link that leads out of it, and a file with a secret that this
//     process hides, are refused.
//   - A word that names no file stays as it is: `@ada` may be a person.

import { isUtf8 } from "node:buffer";
import { realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { findProject } from "@holdfast/place/project";
import type { Io } from "@holdfast/terminal/frame/command";
import { isFolder, lookAtPath, readGiven } from "@holdfast/terminal/frame/given-file";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { hiddenTextIn } from "../agents/content-notes.ts";
import type { TypedLine } from "./chat-commands.ts";

const FILE_BYTES_MAX = 100_000;
const FILES_MAX = 10;
const NAME_CHARS = 200;
const NAMED = /(?<=^|\s)@(\S+)/g;

type Place = Pick<Io, "cwd" | "env" | "hides">;

/** @returns the message, or why it is not sent. */
export function withFiles(text: string, io: Place): TypedLine {
  const words = [...text.matchAll(NAMED)].map(([, word = ""]) => word);
  const named = new Set(words.flatMap((word) => fileNamed(word, io) ?? []));
  if (named.size > FILES_MAX)
    return notSent(`it names ${named.size} files, and at most ${FILES_MAX} are sent with one message`);
  const parts = [text];
  const notes: string[] = [];
  for (const name of named) {
    const shown = plainLine(name, NAME_CHARS);
    const content = contentOf(name, io);
    if (typeof content !== "string") return notSent(`@${shown}: ${content.problem}`);
    parts.push(`<file path=${JSON.stringify(name)}>\n${content.replace(/\n$/, "")}\n</file>`);
    notes.push(`with ${shown} (${count(content.length, "character")})`);
    notes.push(...hiddenTextIn(resolve(io.cwd, name), shown));
  }
  return { text: parts.join("\n\n"), notes };
}

function notSent(why: string): TypedLine {
  return { problem: `the message was not sent: ${why}` };
}

/** The path of a word. A sentence may go on behind it. */
function fileNamed(word: string, { cwd }: Place): string | undefined {
  const names = [word, word.replace(/[.,;:!?)\]]+$/, "")];
  return names.find((name) => typeof lookAtPath(resolve(cwd, name)) !== "string");
}

function contentOf(name: string, io: Place): string | { readonly problem: string } {
  const path = resolve(io.cwd, name);
  const project = findProject(io);
  try {
    const real = realpathSync(path);
    if (!real.startsWith(realpathSync(project).replace(/\/*$/, sep)))
      return { problem: `it is outside of the project ${project}; copy it there, or paste its text` };
    if (isFolder(real)) return { problem: 'it is a folder; name a file of it, or write "@…" in quotes' };
    const bytes = readGiven(real, FILE_BYTES_MAX);
    if (bytes.includes(0) || !isUtf8(bytes)) return { problem: "it is binary, and only text is sent" };
    const text = bytes.toString();
    return io.hides(text) ? { problem: "it holds a secret of this session" } : text;
  } catch (error) {
    const { message } = error as Error;
    return { problem: `it cannot be sent: ${message}; the agent may read such a file by its tools` };
  }
}
