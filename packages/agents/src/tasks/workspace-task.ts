// How the tasks over a workspace are made: what they share.

import { defined, HoldfastError, type EffectClass, type RetryPolicy } from "@holdfast/core";
import { defineTask, type TaskContext, type TaskDefinition } from "@holdfast/runtime";
import type { z } from "zod";

import type { Workspace } from "@holdfast/workspace";
import { pickWorkspace, type WorkspaceSource } from "./workspace-source.ts";

/** Errors that the same call would meet again. */
const FINAL: readonly string[] = [
  "file_not_found",
  "invalid_input",
  "policy_denied",
  "limit_exceeded",
  "usage",
];

/** Removes what a session that has ended leaves outside of its folder. */
export type SessionEnded = (sessionId: string) => Promise<void>;

interface Definition<Schema extends z.ZodType, Output> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly effect?: EffectClass;
  readonly retry?: RetryPolicy;
  readonly secrets?: readonly string[];
  /** Called for each session that has ended. */
  readonly sessionEnded?: SessionEnded | undefined;
  readonly run: (workspace: Workspace, input: z.output<Schema>, task: TaskContext) => Promise<Output>;
}

export function defineWorkspaceTask<Schema extends z.ZodType<{ workspace?: string | undefined }>, Output>(
  source: WorkspaceSource,
  definition: Definition<Schema, Output>,
): TaskDefinition<z.output<Schema>, Output, z.input<Schema>> {
  const { sessionEnded } = definition;
  return defineTask<z.output<Schema>, Output, z.input<Schema>>({
    name: definition.name,
    description: definition.description,
    input: definition.input,
    ...defined({ effect: definition.effect }),
    retry: { nonRetryable: FINAL, ...definition.retry },
    // Tried again, the next attempt ends what is left of the one before.
    endLost: async (input, idempotencyKey) => {
      const { workspace } = input as { readonly workspace?: string };
      await (await pickWorkspace(source, workspace)).endTagged(idempotencyKey);
    },
    secrets: definition.secrets ?? [],
    ...(sessionEnded === undefined
      ? {}
      : {
          sessionLeft: async (sessionId, { hasEnded }) => {
            if (hasEnded) await sessionEnded(sessionId);
          },
        }),
    guardRepeats: true,
    run: async (input, task) => {
      try {
        const workspace = await pickWorkspace(source, input.workspace);
        // The process of an earlier attempt may be gone while its commands still run.
        if (task.attempt > 1) await workspace.endTagged(task.idempotencyKey);
        return await definition.run(workspace, input, task);
      } catch (error) {
        throw explained(error);
      }
    },
  });
}

/** With the advice in the message: of a recorded error that is all a model gets to see. */
function explained(error: unknown): unknown {
  if (!HoldfastError.is(error) || !FINAL.includes(error.code)) return error;
  const advice = [error.expected === undefined ? undefined : `expected ${error.expected}`, error.fix];
  const message = [error.message, ...advice.filter((part) => part !== undefined)].join("; ");
  return new HoldfastError(error.code, message, { cause: error.cause });
}
