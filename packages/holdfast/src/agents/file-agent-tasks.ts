// `checkTaskNames`: whether the tasks of a project that an agent file names are tools of it.

import type { AgentRecord, Tool } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";

/** A name that stands in `when` or `effects` means a task of the files in `tasks`. */
export function checkTaskNames({ when, effects, tasks, source }: AgentRecord, tools: readonly Tool[]): void {
  const known = tools.map(({ offered }) => offered.name);
  const waits = Object.entries(when).flatMap(([tool, { after }]) => [tool, ...after]);
  const missing = [...waits, ...Object.keys(effects)].find(
    (name) => name.startsWith("task__") && !known.includes(name),
  );
  if (missing === undefined) return;
  throw new HoldfastError("agent_invalid", `the agent file names ${missing}, and no such task is its tool`, {
    at: source.path,
    got: tasks.length === 0 ? "no `tasks`" : `the tasks of ${tasks.join(", ")}: ${known.join(", ")}`,
    expected: "task__NAME of a task that a file of `tasks` exports",
    fix: "correct the name in `when` or `effects`, or add the file to `tasks`",
  });
}
