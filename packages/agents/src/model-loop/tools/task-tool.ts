// `taskTool`: a durable task as a tool of the model loop.
//
//   - The effect class of the task decides the fate of a call that a crash cuts off. Only a task that reads
//     runs without permission.
//   - Arguments are checked before the task is scheduled, so that the model corrects them.

import { HoldfastError, type StandardSchemaV1, UsageError, validateNow } from "@holdfast/core";
import type { TaskDefinition } from "@holdfast/runtime";
import { renderResult, type Tool } from "./tool.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- tasks of any input and output.
type AnyTask = TaskDefinition<any, any>;

/** The beginning of the names of such tools. */
const PREFIX = "task__";
/** Names of tools that every provider accepts. */
const NAME = /^[\w-]{1,58}$/;

/**
 * A tool that runs a task of `defineTask`. Its name is `task__NAME`. @throws UsageError for a name that no
 * tool can have.
 */
export function taskTool(task: AnyTask): Tool {
  const name = `${PREFIX}${task.name}`;
  if (!NAME.test(task.name))
    throw new UsageError(`the task "${task.name}" cannot be a tool`, {
      expected: "a name of at most 58 letters (a to z), digits, - and _",
      fix: "give the task another name",
    });
  const schema = schemaOf(task);
  const isObject = schema?.["type"] === "object";
  return {
    offered: {
      name,
      description: task.description ?? `Run the task ${task.name} of this project.`,
      inputSchema: isObject ? schema : { type: "object", properties: { input: schema ?? {} } },
    },
    isReading: task.effect === "read", // Only a task that reads runs without a permission.
    subjectKind: "text",
    task,
    prepare: (given) => {
      const input: unknown = isObject ? given : (given as { readonly input?: unknown }).input;
      // The task itself gets what the model said, because it checks its input again.
      if (task.input !== undefined)
        validateNow(task.input, input, `the arguments of ${name}`, "invalid_input");
      return {
        subject: null,
        schedule: (ctx) =>
          renderResult(async () => {
            const output: unknown = await ctx.scheduleTask(task, input);
            return typeof output === "string" ? output : (JSON.stringify(output) ?? "(no output)");
          }),
      };
    },
  };
}

function schemaOf({ name, input }: AnyTask): Record<string, unknown> | undefined {
  if (input === undefined) return undefined;
  const { jsonSchema } = (input as StandardSchemaV1)["~standard"];
  try {
    const { $schema: _, ...schema } = jsonSchema?.input({ target: "draft-2020-12" }) ?? {};
    return schema;
  } catch (error) {
    throw new HoldfastError("agent_invalid", `the input schema of the task "${name}" has no JSON Schema`, {
      cause: error,
      fix: "describe the input without transformations",
    });
  }
}
