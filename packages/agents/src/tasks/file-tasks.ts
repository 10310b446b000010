// Durable tasks over the files of a workspace. All of them may run again after a crash. Reading and writing
// give the same result twice, and an edit detects that it is already done.

import { normalize } from "node:path/posix";
import { HoldfastError } from "@holdfast/core";
import { z } from "zod";

import { pathFilter } from "@holdfast/workspace";
import { applyEdit } from "./edit.ts";
import { hiddenField, workspaceField, type WorkspaceSource } from "./workspace-source.ts";
import { defineWorkspaceTask } from "./workspace-task.ts";

const path = z.string().min(1).describe("Path relative to the root of the workspace");

export const readFileInput = z.strictObject({
  path,
  startLine: z.int().min(1).optional().describe("First line to read, from 1"),
  lines: z.int().min(1).optional().describe("How many lines to read"),
  ...workspaceField,
});

export interface ReadFileOutput {
  readonly path: string;
  readonly text: string;
  /** From 1; what is shown of how many there are. */
  readonly startLine: number;
  readonly endLine: number;
  readonly totalLines: number;
}

const LINES_DEFAULT = 2_000;
const TEXT_CHARS_MAX = 200_000;

export const writeFileInput = z.strictObject({
  path,
  content: z.string().describe("The whole new content"),
  ...workspaceField,
});

export const editFileInput = z.strictObject({
  path,
  oldText: z.string().describe("The text to replace, exactly as it stands in the file, and unique in it"),
  newText: z.string().describe("The text to put in its place"),
  replaceAll: z.boolean().optional().describe("Replace every occurrence"),
  ...workspaceField,
});

export interface EditFileOutput {
  readonly path: string;
  /** Places changed; 0 when the file already was as wanted. */
  readonly replaced: number;
  /** Line of the first change. */
  readonly line: number;
}

export const listFilesInput = z.strictObject({
  path: z.string().min(1).optional().describe("A directory; the root by default"),
  recursive: z.boolean().optional().describe("All files below it, without ignored ones"),
  ...workspaceField,
});

export interface ListFilesOutput {
  /** Directories end in a slash. */
  readonly entries: readonly string[];
  /** There are more. */
  readonly isCut: boolean;
}

export const searchInput = z.strictObject({
  pattern: z.string().min(1).describe("The text to find, or a regular expression"),
  isRegex: z.boolean().optional().describe("The pattern is a JavaScript regular expression"),
  ignoreCase: z.boolean().optional(),
  path: z.string().min(1).optional().describe("Search below this directory only"),
  ...workspaceField,
});

export function readFileTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "read_file",
    description: "Read a text file, or some lines of it.",
    input: readFileInput,
    run: async (workspace, input): Promise<ReadFileOutput> => {
      const file = await workspace.readFile(input.path);
      if (file.isBinary)
        throw new HoldfastError(
          "invalid_input",
          `"${input.path}" is a binary file (${file.bytes.length} bytes)`,
        );
      const lines = file.text.split("\n");
      // A line break at the end ends the last line; it does not begin another one.
      const totalLines = lines.at(-1) === "" ? lines.length - 1 : lines.length;
      const startLine = input.startLine ?? 1;
      if (startLine > Math.max(1, totalLines)) {
        throw new HoldfastError(
          "invalid_input",
          `"${input.path}" has ${totalLines} lines, and line ${startLine} was asked for`,
        );
      }
      const wanted = lines.slice(startLine - 1, startLine - 1 + (input.lines ?? LINES_DEFAULT));
      const text = wanted.join("\n");
      if (text.length > TEXT_CHARS_MAX) {
        throw new HoldfastError(
          "limit_exceeded",
          `these lines of "${input.path}" have ${text.length} characters`,
          {
            expected: `at most ${TEXT_CHARS_MAX}`,
            fix: "read fewer lines at a time with startLine and lines, or search in the file",
          },
        );
      }
      return {
        path: file.path,
        text,
        startLine,
        endLine: Math.min(totalLines, startLine + wanted.length - 1),
        totalLines,
      };
    },
  });
}

export function writeFileTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "write_file",
    description: "Write a whole file, new or in the place of an old one. Directories are made.",
    input: writeFileInput,
    run: (workspace, input, task) =>
      workspace.writeFile(input.path, input.content, { isRetry: task.attempt > 1 }),
  });
}

export function editFileTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "edit_file",
    description: "Replace one exact piece of text in a file.",
    input: editFileInput,
    run: async (workspace, input, task): Promise<EditFileOutput> => {
      const isRetry = task.attempt > 1;
      let edited = { replaced: 0, line: 1 };
      const written = await workspace.updateFile(
        input.path,
        (before) => {
          const { text, replaced, line, isDone } = applyEdit(input.path, before, input, isRetry);
          edited = { replaced, line };
          return isDone ? undefined : text;
        },
        { isRetry },
      );
      return { path: written?.path ?? normalize(input.path), ...edited };
    },
  });
}

export function listFilesTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "list_files",
    description: "List a directory, or all files below it.",
    input: listFilesInput.extend(hiddenField),
    run: async (workspace, input, task): Promise<ListFilesOutput> => {
      const isHidden = pathFilter(input.hidden ?? []);
      if (input.recursive === true) {
        const { files, isCut } = await workspace.listFiles(input.path, { signal: task.signal });
        return { entries: files.filter((file) => !isHidden(file)), isCut };
      }
      const listed = await workspace.list(input.path);
      const entries = listed.filter((entry) => !isHidden(entry.path));
      const { entries: entriesMax } = workspace.limits;
      return {
        entries: entries
          .slice(0, entriesMax)
          .map((entry) => (entry.type === "directory" ? `${entry.path}/` : entry.path)),
        isCut: entries.length > entriesMax,
      };
    },
  });
}

export function searchTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "search",
    description: "Find lines in the files of the workspace, without ignored files.",
    input: searchInput.extend(hiddenField),
    run: (
      workspace,
      { pattern, isRegex = false, ignoreCase = false, path: below = ".", hidden = [] },
      task,
    ) =>
      workspace.search(
        { pattern, isRegex, ignoreCase, path: below, isHidden: pathFilter(hidden) },
        { signal: task.signal },
      ),
  });
}
