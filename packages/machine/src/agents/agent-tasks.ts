// The tasks of a project that an agent file names: loading them as tools, and the check of names that stand
// for them.
//
// Code that an agent file names is loaded only from inside of a project that the user trusts, and only with
// the trusted content. An agent in a sandbox could otherwise write code that runs outside of it.

import { existsSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import {
  isTrusted,
  isTrustedCode,
  layerOf,
  taskTool,
  type AgentPlaces,
  type AgentRecord,
  type Tool,
} from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import type { TaskDefinition } from "@holdfast/runtime";

/** @throws HoldfastError for a file that may not be loaded. */
export async function taskToolsOf(
  { tasks, source }: Pick<AgentRecord, "tasks" | "source">,
  places: AgentPlaces,
  loadTasks: ((file: string) => Promise<readonly TaskDefinition[]>) | undefined,
): Promise<readonly Tool[]> {
  if (tasks.length === 0) return [];
  const at = source.path;
  const { project, trustFile, trustsProject } = source.scope === "project" ? layerOf(places, at) : places;
  if (trustsProject !== true && !isTrusted(trustFile, project))
    throw new HoldfastError("policy_denied", "the agent uses tasks of a project that you have not trusted", {
      at,
      fix: `read ${tasks.join(", ")}, and then run \`holdfast agents trust\``,
    });
  const loaded: TaskDefinition[] = [];
  for (const path of tasks) {
    const file = join(project, path);
    if (!(existsSync(file) ? realpathSync(file) : file).startsWith(`${realpathSync(project)}${sep}`))
      throw new HoldfastError("agent_invalid", `the file of tasks ${path} is not inside the project`, {
        at,
        expected: `a path from ${project} to a file below it`,
        fix: "move the file into the project",
      });
    if (trustsProject !== true && !isTrustedCode(trustFile, project, path))
      throw new HoldfastError(
        "policy_denied",
        `the tasks in ${path} are not the code that you have trusted`,
        {
          at: file,
          got: "the file, or one that it imports, is new or has changed",
          expected: "the content of the last `holdfast agents trust`",
          fix: `read it, and then run \`holdfast agents trust${source.scope === "path" ? ` ${at}` : ""}\``,
        },
      );
    loaded.push(...((await loadTasks?.(file)) ?? []));
  }
  return [...new Set(loaded)].map(taskTool);
}

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
