// The tools a coding agent offers to its model, and how a call becomes a durable task and its result a text.
//
// Pure apart from scheduling: what is in here runs again when a session is replayed.

import { HoldfastError } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";
import { z } from "zod";

import type { ModelTool } from "../models/model-provider.ts";
import {
  editFileInput,
  listFilesInput,
  readFileInput,
  searchInput,
  writeFileInput,
} from "../tasks/file-tasks.ts";
import { gitDiffInput } from "../tasks/git-tasks.ts";
import { cutText, offer, parseArguments } from "../model-loop/tools/tool.ts";
import { renderCommand } from "../model-loop/tools/workspace-tools.ts";
import { REPEATABLE, shellInput } from "../tasks/shell-task.ts";
import type { WorkspaceTasks } from "../tasks/workspace-tasks.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- tools run in agents of any input and state.
type AnyContext = AgentContext<any, any>;

export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  /** A file was written, by this name. */
  readonly written?: string;
}

/** A call whose arguments are right. Scheduling happens at once, in the order of the calls of `schedule`. */
export interface ReadyCall {
  readonly schedule: (ctx: AnyContext, workspace: string | undefined) => Promise<ToolOutcome>;
}

export interface CodingTool {
  readonly offered: ModelTool;
  /** Reading tools may be called before the plan is approved, and run beside each other. */
  readonly isReading: boolean;
  /** @throws HoldfastError `invalid_input` that tells the model what is wrong. */
  readonly prepare: (input: unknown) => ReadyCall;
}

export const proposePlanInput = z.strictObject({
  summary: z
    .string()
    .trim()
    .min(1)
    .describe("What is wrong and what you are going to do about it, in a few sentences"),
  steps: z.array(z.string().trim().min(1)).min(1).max(30).describe("The steps, in order"),
});

export const finishInput = z.strictObject({
  summary: z.string().trim().min(1).describe("What you did, for a person, in a few sentences"),
  commitMessage: z
    .string()
    .trim()
    .min(1)
    .describe("The commit message: a short first line, then details if needed"),
});

/** Tools that the agent itself answers. */
export const PROPOSE_PLAN: ModelTool = offer(
  "propose_plan",
  "Propose a plan to the person you work for. Files can be changed only after the plan was approved.",
  proposePlanInput,
);
export const FINISH: ModelTool = offer(
  "finish",
  "Say that the work is done. The tests are run once more; if they pass, your changes are committed.",
  finishInput,
);

const codingShellInput = shellInput.extend({
  repeatable: z
    .boolean()
    .optional()
    .describe(
      "The command only reads, tests or builds: it may be run again after a crash. Otherwise it never is",
    ),
});

const runTestsInput = z.strictObject({});

/** All tools but `propose_plan` and `finish`, by name. */
export function codingTools(
  tasks: WorkspaceTasks,
  testCommand: string | undefined,
): ReadonlyMap<string, CodingTool> {
  const tools = [
    reading("read_file", "Read a text file, or some lines of it.", readFileInput, async (ctx, input) => {
      const file = await ctx.scheduleTask(tasks.readFile, input);
      if (file.totalLines === 0) return `${file.path} is empty`;
      const isPart = file.startLine > 1 || file.endLine < file.totalLines;
      const head = isPart ? `(lines ${file.startLine} to ${file.endLine} of ${file.totalLines})\n` : "";
      return `${head}${file.text}`;
    }),
    reading(
      "list_files",
      "List a directory, or with `recursive` all files below it, without ignored ones.",
      listFilesInput,
      async (ctx, input) => {
        const { entries, isCut } = await ctx.scheduleTask(tasks.listFiles, input);
        return [...entries, ...(isCut ? ["(there are more)"] : [])].join("\n") || "(nothing)";
      },
    ),
    reading("search", "Find lines in the files of the workspace.", searchInput, async (ctx, input) => {
      const { matches, incomplete } = await ctx.scheduleTask(tasks.search, input);
      const lines = matches.map((match) => `${match.path}:${match.line}: ${match.text}`);
      return [...lines, ...(incomplete === undefined ? [] : [`(${incomplete})`])].join("\n") || "(no match)";
    }),
    reading("git_diff", "Show what was changed since the last commit.", gitDiffInput, async (ctx, input) => {
      const { diff, isCut } = await ctx.scheduleTask(tasks.gitDiff, input);
      return `${diff}${isCut ? "\n(cut)" : ""}` || "(no change in files that git knows)";
    }),
    changing(
      "edit_file",
      "Replace one exact, unique piece of text in a file.",
      editFileInput,
      async (ctx, input) => {
        const { path, replaced, line } = await ctx.scheduleTask(tasks.editFile, input);
        if (replaced === 0) return { text: `${path} already was like that (line ${line})` };
        return {
          text: `${path}: changed at line ${line}${replaced > 1 ? ` and ${replaced - 1} more places` : ""}`,
          written: path,
        };
      },
    ),
    changing(
      "write_file",
      "Write a whole file. Prefer edit_file for files that exist.",
      writeFileInput,
      async (ctx, input) => {
        const { path, bytes } = await ctx.scheduleTask(tasks.writeFile, input);
        return { text: `${path}: written, ${bytes} bytes`, written: path };
      },
    ),
    changing(
      "shell",
      "Run a command line with sh in the workspace. Processes it leaves running are ended with it. To get a new file that " +
        "a command made into the commit, `git add` it.",
      codingShellInput,
      async (ctx, { repeatable, ...input }) => {
        const retry = repeatable === true ? { retry: REPEATABLE } : {};
        return renderCommand(await ctx.scheduleTask(tasks.shell, input, retry));
      },
    ),
  ];
  if (testCommand !== undefined) {
    tools.push(
      reading(
        "run_tests",
        `Run the repository's tests (${testCommand}).`,
        runTestsInput,
        async (ctx, input) =>
          renderCommand(
            await ctx.scheduleTask(tasks.shell, { ...input, command: testCommand }, { retry: REPEATABLE }),
          ),
      ),
    );
  }
  return new Map(tools.map((tool) => [tool.offered.name, tool]));
}

type Rendered = string | { readonly text: string; readonly written?: string };

/** Schedules in the same turn of the event loop in which it is called, and waits for the result. */
type Carry<Schema extends z.ZodType> = (
  ctx: AnyContext,
  input: z.output<Schema> & { workspace?: string },
) => Promise<Rendered>;

function reading<Schema extends z.ZodObject>(
  name: string,
  description: string,
  schema: Schema,
  carry: Carry<Schema>,
): CodingTool {
  return makeTool(name, description, schema, carry, true);
}

function changing<Schema extends z.ZodObject>(
  name: string,
  description: string,
  schema: Schema,
  carry: Carry<Schema>,
): CodingTool {
  return makeTool(name, description, schema, carry, false);
}

function makeTool<Schema extends z.ZodObject>(
  name: string,
  description: string,
  schema: Schema,
  carry: Carry<Schema>,
  isReading: boolean,
): CodingTool {
  // The model does not choose the workspace: what it says of it is an unknown argument.
  const offeredSchema = "workspace" in schema.shape ? schema.omit({ workspace: true }) : schema;
  return {
    offered: offer(name, description, offeredSchema),
    isReading,
    prepare: (given) => {
      const input = parseArguments(name, offeredSchema, given) as z.output<Schema>;
      return {
        schedule: async (ctx, workspace) => {
          try {
            const rendered = await carry(ctx, workspace === undefined ? input : { ...input, workspace });
            const { text, ...rest } = typeof rendered === "string" ? { text: rendered } : rendered;
            return { text: cutText(text), isError: false, ...rest };
          } catch (error) {
            return { text: cutText(explainFailure(error)), isError: true };
          }
        },
      };
    },
  };
}

/** A task that failed is a result like any other. Everything else (a cancel, a fault) is not for the model. */
function explainFailure(error: unknown): string {
  if (!HoldfastError.is(error) || error.code !== "task_failed") throw error;
  const cause = error.cause as Error | undefined;
  if (cause?.name === "AttemptLostError") {
    return "The command was cut off by a crash, and nobody knows whether it took effect. Find out before you repeat it.";
  }
  return cause?.message ?? error.message;
}
