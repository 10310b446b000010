// The local coding agent (`createCodingAgent`): it takes a git repository with a failing test and returns a commit
// that makes the test pass.
//
//   read → plan → approval by a person → (model call → tool calls → results)* → tests pass → commit → report
//
// The agent has the turn form. A turn is one model call with the tool calls it asks for and their results,
// and ends with a checkpoint. The agent asks `ctx` for every effect, so a session that dies anywhere resumes
// exactly there.
//
//   coding-agent-1. Every model call and every tool call is a durable task. The conversation is kept in entries and
//       handed to the model by reference.
//   coding-agent-2. The agent changes nothing before a person has approved a plan.
//   coding-agent-3. The agent always ends: turns, tokens, refusals and repetitions have limits, and the
//       report names the limit that was reached. The session's budget limits the cost. It reserves each
//       call's worst case before the call, so it is never exceeded.
//   coding-agent-4. Only the agent commits, once, and only after the tests have passed, where there are tests.

import { defineAgent, type Agent, type TaskDefinition } from "@holdfast/runtime";
import { z } from "zod";

import {
  INITIAL_STATE,
  type CodingAgentOptions,
  type CodingInput,
  type CodingReport,
  type CodingState,
} from "./coding-agent/coding-session.ts";
import { CodingTurn } from "./coding-agent/coding-turn.ts";
import { inspectRepositoryTask } from "./coding-agent/inspect-repository.ts";
import { modelTask } from "./models/model-task.ts";
import { defineWorkspaceTasks } from "./tasks/workspace-tasks.ts";

/** Make the coding agent for a workspace and a model. */
export function createCodingAgent(options: CodingAgentOptions): Agent<CodingInput, CodingReport> {
  const tasks = {
    ...defineWorkspaceTasks(options.workspace),
    inspect: inspectRepositoryTask(options.workspace),
    model: modelTask(options.model),
  };
  const isForSeveral = typeof options.workspace === "function";
  const repo = z.string().min(1).describe("Path of the git repository to work in");
  return defineAgent<CodingInput, CodingReport, CodingState>({
    name: options.name ?? "coding-agent",
    version: "2",
    description: "Makes the failing tests of a git repository pass, after a person has approved its plan",
    input: z.strictObject({
      repo: isForSeveral ? repo : repo.optional(),
      task: z.string().trim().min(1).optional(),
      testCommand: z.string().trim().min(1).optional(),
    }),
    tasks: Object.values(tasks) as readonly TaskDefinition[],
    initial: () => INITIAL_STATE,
    turn: (ctx, state) => new CodingTurn(ctx, state, tasks, options).take(),
  });
}
