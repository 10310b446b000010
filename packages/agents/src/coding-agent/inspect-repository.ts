// The durable task a coding agent begins with: is this a repository it may work in, and how are its tests run?

import { HoldfastError } from "@holdfast/core";
import { z } from "zod";

import { readStatus } from "../tasks/git-tasks.ts";
import { workspaceField, type WorkspaceSource } from "../tasks/workspace-source.ts";
import { defineWorkspaceTask } from "../tasks/workspace-task.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface RepositoryFacts {
  /** Absolute path of the workspace. */
  readonly root: string;
  /**
   * The workspace's own description of what it contains and what it does not, for the person who approves.
   */
  readonly containment: string;
  readonly commit: string;
  /** `undefined` when no branch is checked out. */
  readonly branch?: string;
  /** How to run the tests, as a line for the shell; `undefined` when none were found. */
  readonly testCommand?: string;
}

export function inspectRepositoryTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "inspect_repository",
    description: "Check that the workspace is a clean git repository, and find out how its tests are run.",
    input: z.strictObject({ ...workspaceField }),
    run: async (workspace, _input, task): Promise<RepositoryFacts> => {
      const { commit, branch, changes } = await readStatus(workspace, { signal: task.signal });
      if (commit === undefined) {
        throw new HoldfastError("invalid_input", `${workspace.root} is a git repository without a commit`, {
          fix: "commit what is there first, so that the agent's changes can be told apart and undone",
        });
      }
      if (changes.length > 0) {
        const names = changes.slice(0, 5).map((change) => change.path);
        const more = changes.length > names.length ? `, and ${changes.length - names.length} more` : "";
        throw new HoldfastError(
          "invalid_input",
          `${workspace.root} has changes that are not committed (${names.join(", ")}${more})`,
          {
            fix: "commit or stash them (git stash -u), so that they do not get into the agent's commit",
          },
        );
      }
      const testCommand = await findTestCommand(workspace);
      return {
        root: workspace.root,
        containment: workspace.describe(),
        commit,
        ...(branch === undefined ? {} : { branch }),
        ...(testCommand === undefined ? {} : { testCommand }),
      };
    },
  });
}

/** By the files that say so, in this order. */
async function findTestCommand(workspace: Workspace): Promise<string | undefined> {
  const script = await npmTestScript(workspace);
  if (script !== undefined) return script;
  const names = new Set((await workspace.list()).map((entry) => entry.path));
  if (names.has("Cargo.toml")) return "cargo test";
  if (names.has("go.mod")) return "go test ./...";
  if (names.has("pyproject.toml") || names.has("pytest.ini")) return "python3 -m pytest";
  return undefined;
}

async function npmTestScript(workspace: Workspace): Promise<string | undefined> {
  const file = await workspace.readFile("package.json").catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const manifest = JSON.parse(file.text) as { scripts?: { test?: unknown } } | null;
    const script = manifest?.scripts?.test;
    // The script that `npm init` writes is no test.
    return typeof script === "string" && !script.includes("no test specified")
      ? "npm test --silent"
      : undefined;
  } catch {
    return undefined;
  }
}
