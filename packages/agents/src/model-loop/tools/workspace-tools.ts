// The tools over files, commands and git of a workspace.

import type { TaskOptions } from "@holdfast/core";
import { z } from "zod";

import {
  describeEnd,
  REPEATABLE,
  type ShellEnvironment,
  shellInput,
  type ShellOutput,
} from "../../tasks/shell-task.ts";
import {
  editFileInput,
  listFilesInput,
  readFileInput,
  searchInput,
  writeFileInput,
} from "../../tasks/file-tasks.ts";
import { gitDiffInput } from "../../tasks/git-tasks.ts";
import { type WorkspaceTasks } from "../../tasks/workspace-tasks.ts";
import { reportScriptCall } from "../script-events.ts";
import type { CapabilityFacts } from "../model-state.ts";
import { defineTool, HIDDEN_PATHS, PATH_MASK, type Tool } from "./tool.ts";

const modelShellInput = shellInput.omit({ environment: true, scripts: true, mask: true }).extend({
  repeatable: z
    .boolean()
    .optional()
    .describe(
      "The command only reads, tests or builds: it may be run again after a crash. Otherwise it never is",
    ),
});

/** All tools over a workspace, by name. */
export function workspaceTools(tasks: WorkspaceTasks): readonly Tool[] {
  return [
    readFileTool(tasks),
    listFilesTool(tasks),
    searchTool(tasks),
    gitDiffTool(tasks),
    editFileTool(tasks),
    writeFileTool(tasks),
    shellTool(tasks),
  ];
}

function readFileTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "read_file",
    description: "Read a text file, or some lines of it.",
    input: readFileInput,
    isReading: true,
    subjectKind: "path",
    subject: ({ path }) => path,
    run: async (ctx, input) => {
      const file = await ctx.scheduleTask(tasks.readFile, input);
      if (file.totalLines === 0) return `${file.path} is empty`;
      const isPart = file.startLine > 1 || file.endLine < file.totalLines;
      const head = isPart ? `(lines ${file.startLine} to ${file.endLine} of ${file.totalLines})\n` : "";
      return `${head}${file.text}`;
    },
  });
}

function listFilesTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "list_files",
    description: "List a directory, or with `recursive` all files below it, without ignored ones.",
    input: listFilesInput,
    isReading: true,
    subjectKind: "path",
    subject: ({ path = "." }) => path,
    run: async (ctx, input, facts) => {
      const hiding = hidingIn(facts);
      const { entries, isCut } = await ctx.scheduleTask(tasks.listFiles, { ...input, ...hiding });
      const lines = [...entries, ...(isCut ? ["(there are more)"] : [])];
      return withNote(lines.join("\n") || "(nothing)", hiding);
    },
  });
}

function searchTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "search",
    description: "Find lines in the files of the workspace.",
    input: searchInput,
    isReading: true,
    subjectKind: "path",
    subject: ({ path = "." }) => path,
    run: async (ctx, input, facts) => {
      const hiding = hidingIn(facts);
      const { matches, incomplete } = await ctx.scheduleTask(tasks.search, { ...input, ...hiding });
      const lines = matches.map((match) => `${match.path}:${match.line}: ${match.text}`);
      const whole = [...lines, ...(incomplete === undefined ? [] : [`(${incomplete})`])];
      return withNote(whole.join("\n") || "(no match)", hiding);
    },
  });
}

function gitDiffTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "git_diff",
    description: "Show what was changed since the last commit.",
    input: gitDiffInput,
    isReading: true,
    subjectKind: "path",
    subject: ({ path = "." }) => path,
    run: async (ctx, input, facts) => {
      const hiding = hidingIn(facts);
      const { diff, isCut } = await ctx.scheduleTask(tasks.gitDiff, { ...input, ...hiding });
      return withNote(`${diff}${isCut ? "\n(cut)" : ""}` || "(no change in files that git knows)", hiding);
    },
  });
}

function editFileTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "edit_file",
    description: "Replace one exact, unique piece of text in a file.",
    input: editFileInput,
    isReading: false,
    subjectKind: "path",
    subject: ({ path }) => path,
    run: async (ctx, input) => {
      const { path, replaced, line } = await ctx.scheduleTask(tasks.editFile, input);
      if (replaced === 0) return `${path} already was like that (line ${line})`;
      const more = replaced > 1 ? ` and ${replaced - 1} more places` : "";
      return `${path}: changed at line ${line}${more}`;
    },
  });
}

function writeFileTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "write_file",
    description: "Write a whole file. Prefer edit_file for files that exist.",
    input: writeFileInput,
    isReading: false,
    subjectKind: "path",
    subject: ({ path }) => path,
    run: async (ctx, input) => {
      const { path, bytes } = await ctx.scheduleTask(tasks.writeFile, input);
      return `${path}: written, ${bytes} bytes`;
    },
  });
}

function shellTool(tasks: WorkspaceTasks): Tool {
  return defineTool({
    name: "shell",
    description:
      "Run a command line with sh in the workspace. Processes it leaves running are ended with it.",
    input: modelShellInput,
    isReading: false,
    subjectKind: "command",
    subject: ({ command }) => command,
    run: async (ctx, { repeatable, ...input }, { environment, scripts, [PATH_MASK]: mask }, callId) => {
      const options: TaskOptions = repeatable === true ? REPEATABLE : {};
      const output = await ctx.scheduleTask(
        tasks.shell,
        {
          ...input,
          ...(environment === undefined ? {} : { environment: environment as ShellEnvironment }),
          ...(scripts === undefined ? {} : { scripts: true }),
          ...(mask === undefined ? {} : { mask: mask as z.output<typeof shellInput>["mask"] }),
        },
        options,
      );
      for (const call of output.scripts ?? []) reportScriptCall(ctx, callId, call);
      return mask === undefined
        ? renderCommand(output)
        : `${renderCommand(output)}\n(files that a rule denies are empty or not there for commands)`;
    },
  });
}

interface Hiding {
  readonly hidden?: string[];
}

function hidingIn({ [HIDDEN_PATHS]: hidden }: CapabilityFacts): Hiding {
  return hidden === undefined ? {} : { hidden: hidden as string[] };
}

function withNote(text: string, { hidden }: Hiding): string {
  return hidden === undefined ? text : `${text}\n(files that a rule keeps from this tool are left out)`;
}

/** A command's end and output as a text. */
export function renderCommand({ end, stdout, stderr }: ShellOutput): string {
  const parts = [
    describeEnd(end),
    stdout.trimEnd(),
    stderr.trim() === "" ? "" : `stderr:\n${stderr.trimEnd()}`,
  ];
  return parts.filter((part) => part !== "").join("\n");
}
