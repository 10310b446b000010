// A tool of the model loop: an offer to the model, a check of the arguments, and a call that schedules
// durable tasks.
//
// Everything here runs again when a session is replayed, so it is pure apart from scheduling.

import { HoldfastError, UncertainEffectError, type Json } from "@holdfast/core";
import type { AgentContext, TaskDefinition } from "@holdfast/runtime";
import { z } from "zod";

import type { ModelTool, ResultImage } from "../../models/model-provider.ts";
import type { CapabilityFacts, ModelState } from "../model-state.ts";

/** The context of the agent whose model called a tool. */
// oxlint-disable-next-line typescript/no-explicit-any -- tools run in agents of any input and state.
export type ToolContext = AgentContext<any, any>;

export interface ToolOutcome {
  /** The text that the model reads. */
  readonly text: string;
  readonly isError: boolean;
  /** Images that the model sees beside the text. */
  readonly images?: readonly ResultImage[];
  /** Changes of the session's state. */
  readonly update?: Partial<ModelState>;
  /** The output of the session: the request is answered. */
  readonly output?: Json;
}

/** A call whose arguments are right. */
export interface ReadyCall {
  /** The argument that permission rules look at: a command, a path, a host. `null` when the tool has none. */
  readonly subject: string | null;
  /** Schedules at once, in the turn of the event loop in which it is called. `callId` is the model's id of the call. */
  readonly schedule: (
    ctx: ToolContext,
    workspace: string,
    facts: CapabilityFacts,
    callId: string,
  ) => Promise<ToolOutcome>;
}

/** A tool as the model loop offers and calls it. `defineTool` and `taskTool` make one. */
export interface Tool {
  readonly offered: ModelTool;
  /** The tool changes nothing. Calls of such tools are allowed by default, and run beside each other. */
  readonly isReading: boolean;
  /** The tool starts work that may change something. Before an approved plan it is refused. */
  readonly startsWork?: boolean;
  /** How a pattern of a permission rule is compared with the subject. */
  readonly subjectKind: "command" | "path" | "text";
  /** The task that the tool schedules, where it is no task of the loop or of a capability. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a task of any input and output.
  readonly task?: TaskDefinition<any, any>;
  /** Reads the input of a call. @throws HoldfastError `invalid_input`, which tells the model what is wrong. */
  readonly prepare: (input: unknown) => ReadyCall;
}

/** The fact of one call that holds the patterns of the paths that its results leave out (permissions-9). */
export const HIDDEN_PATHS = "hiddenPaths";

/** The fact of one call of the shell that holds what its sandbox keeps from the command (permissions-11). */
export const PATH_MASK = "pathMask";

/** The most characters of one result that a model reads at once. */
export const RESULT_CHARS_MAX = 24_000;
/** The most characters of one result that a session keeps. Tasks have lower limits of their own. */
const WHOLE_CHARS_MAX = 300_000;

/** The result of a tool's function: the text for the model. */
export type Rendered = string | Omit<ToolOutcome, "isError">;

interface ToolDefinition<Schema extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly isReading: boolean;
  readonly startsWork?: boolean;
  readonly subjectKind?: Tool["subjectKind"];
  readonly subject?: (input: z.output<Schema>) => string;
  /** Schedules in the same turn of the event loop in which it is called, and waits for the result. */
  readonly run: (
    ctx: ToolContext,
    input: z.output<Schema> & { workspace: string },
    facts: CapabilityFacts,
    callId: string,
  ) => Promise<Rendered>;
}

/** Makes a tool. A task that fails becomes a result that the model reads; a cancel or a fault is thrown. */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool {
  const {
    name,
    description,
    input,
    isReading,
    startsWork = false,
    subject,
    subjectKind = "text",
    run,
  } = definition;
  // The model does not choose the workspace: what it says of it is an unknown argument.
  const offeredSchema = "workspace" in input.shape ? input.omit({ workspace: true }) : input;
  return {
    offered: offer(name, description, offeredSchema),
    isReading,
    startsWork,
    subjectKind,
    prepare: (given) => {
      const parsed = parseArguments(name, offeredSchema, given) as z.output<Schema>;
      return {
        subject: subject?.(parsed) ?? null,
        schedule: (ctx, workspace, facts, callId) =>
          renderResult(() => run(ctx, { ...parsed, workspace }, facts, callId)),
      };
    },
  };
}

/** Runs one call, and makes a result of its failure too. */
export async function renderResult(run: () => Promise<Rendered>): Promise<ToolOutcome> {
  try {
    const rendered = await run();
    const outcome = typeof rendered === "string" ? { text: rendered } : rendered;
    return { isError: false, ...outcome, text: cutText(outcome.text, WHOLE_CHARS_MAX) };
  } catch (error) {
    return { text: cutText(explainFailure(error), WHOLE_CHARS_MAX), isError: true };
  }
}

/** A tool as it is offered to a model. */
function offer(name: string, description: string, schema: z.ZodType): ModelTool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: "input" });
  return { name, description, inputSchema };
}

/** The arguments of a call. @throws HoldfastError `invalid_input` */
function parseArguments<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  input: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new HoldfastError(
    "invalid_input",
    `the arguments of ${name} are not right:\n${z.prettifyError(parsed.error)}`,
  );
}

/** Leaves the middle out: errors stand at the beginning or at the end. */
export function cutText(text: string, charsMax: number = RESULT_CHARS_MAX): string {
  if (text.length <= charsMax) return text;
  const half = Math.floor(charsMax / 2);
  return `${text.slice(0, half)}\n[... ${text.length - 2 * half} characters left out ...]\n${text.slice(-half)}`;
}

/** A failed task or child is a result like any other. Everything else (a cancel, a fault) is not for the model. */
function explainFailure(error: unknown): string {
  if (!HoldfastError.is(error) || !["task_failed", "task_timeout", "child_failed"].includes(error.code))
    throw error;
  const cause = error.cause as Error | undefined;
  if (UncertainEffectError.is(error) || (HoldfastError.is(cause) && cause.name === "AttemptLostError"))
    return "The call was cut off, and nobody knows whether it took effect. Find out before you repeat it.";
  return cause?.message ?? error.message;
}
