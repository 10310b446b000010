// The agent of the executor `tree-executor.ts`, as a file of agents for the local stack.

import { Executor, executorAgent, findExecutor } from "holdfast/runner";

const projectDir = process.cwd();

export const tree = executorAgent(
  new Executor({ profile: findExecutor(projectDir, "tree"), environment: process.env, projectDir }),
);
