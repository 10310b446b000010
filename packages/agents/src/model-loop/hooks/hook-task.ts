// `hookTask`: runs the program of a hook in the workspace of the session, as a durable task.
//
//   - A hook that a crash cut off is run again: a hook decides and reports, so its programs bear a repeat.
//   - The program reads the event as JSON on its standard input, and its end is an output. Nothing of it
//     fails the task.

import { resolve } from "node:path";
import { defineTask } from "@holdfast/runtime";

import type { AgentHook } from "../../record/agent-record.ts";
import { describeEnd } from "../../tasks/shell-task.ts";
import { type ExecuteOptions, type Execution, type Workspace } from "@holdfast/workspace";
import { pickWorkspace, type WorkspaceSource } from "../../tasks/workspace-source.ts";
import { readAnswer, type HookEnd } from "./hook-answer.ts";

/** Runs a version of a script for a hook. It may throw a HoldfastError. */
export type HookScripts = (
  workspace: Workspace,
  script: { readonly name: string; readonly hash: string },
  options: ExecuteOptions,
) => Promise<Execution>;

export interface HookTaskInput {
  readonly hook: AgentHook;
  /** The object that the hook reads. */
  readonly event: unknown;
  readonly workspace: string;
}

/** Both streams together. */
const OUTPUT_BYTES = 128 * 1024;

export function hookTask(source: WorkspaceSource, scripts: HookScripts | undefined) {
  return defineTask<HookTaskInput, HookEnd>({
    name: "hook",
    description: "Run a hook of the agent",
    effect: "repeatable", // A hook decides and reports, so it may run again after a crash.
    retry: { nonRetryable: ["file_not_found", "invalid_input", "policy_denied", "limit_exceeded", "usage"] },
    endLost: async (input, key) => {
      const { workspace } = input as HookTaskInput;
      await (await pickWorkspace(source, workspace)).endTagged(key);
    },
    run: async ({ hook, event, workspace: root }, task) => {
      const { run, timeoutMs } = hook;
      const workspace = await pickWorkspace(source, root);
      if (task.attempt > 1) await workspace.endTagged(task.idempotencyKey);
      const options: ExecuteOptions = {
        input: `${JSON.stringify(event)}\n`,
        timeoutMs,
        outputBytes: OUTPUT_BYTES,
        signal: task.signal,
        tag: task.idempotencyKey,
        env: {
          CLAUDE_PROJECT_DIR: resolve(workspace.root, hook.folder ?? "."),
          IDEMPOTENCY_KEY: task.idempotencyKey,
        },
      };
      const execution = await start(workspace, run, options, scripts);
      const { end, stdout, stderr } = execution;
      if (end.type === "aborted") task.signal.throwIfAborted();
      const exitCode = end.type === "exit" ? end.exitCode : null;
      const ended: HookEnd = { exitCode, stdout, stderr, ended: describeEnd(end) };
      const { failure: reason, action } = readAnswer(hook, ended);
      const onError = action === "block" ? "block" : "continue";
      return reason === undefined ? ended : { ...ended, failure: { reason, onError } };
    },
  });
}

function start(
  workspace: Workspace,
  run: AgentHook["run"],
  options: ExecuteOptions,
  scripts: HookScripts | undefined,
): Promise<Execution> {
  switch (run.type) {
    case "command":
      return workspace.execute(run.command, options);
    case "script": {
      const { name, hash } = run;
      if (scripts === undefined || hash === null)
        throw new Error(`the script ${name} of a hook has no version`);
      return scripts(workspace, { name, hash }, options);
    }
    case "agent":
      throw new Error(`the hook ${run.name} is an agent and no program`);
  }
}
