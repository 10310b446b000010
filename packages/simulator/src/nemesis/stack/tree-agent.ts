// The agent of the executor `tree-executor.ts`, as a file of agents for the local stack.

import { executorAgent, ExecutorHost, findExecutor } from "holdfast/runner";

const projectDir = process.cwd();

export const tree = executorAgent(
  findExecutor(projectDir, "tree"),
  new ExecutorHost({ environment: process.env, projectDir }),
);
