// Finds the workspace that a task works in (`WorkspaceSource`).
//
// A task defined over one workspace needs no name for it. An agent whose sessions work in different folders
// records the folder in each task's input. Any process that resumes the session then finds the same folder.

import { HoldfastError } from "@holdfast/core";
import { z } from "zod";

import { openWorkspace, type Workspace, type WorkspaceOptions } from "@holdfast/workspace";

/** A workspace, or how to open one by the name that task inputs carry in `workspace`. */
export type WorkspaceSource = Workspace | ((name: string) => Workspace | Promise<Workspace>);

/** The part of a task's input that names its workspace; never offered to a model. */
export const workspaceField = {
  workspace: z.string().optional().describe("Which workspace, when the tasks were defined over several"),
};

/** The part of a task's input that leaves files out of its results; never offered to a model. */
export const hiddenField = {
  hidden: z.array(z.string()).optional().describe("Patterns of paths that the results leave out"),
};

export async function pickWorkspace(source: WorkspaceSource, name: string | undefined): Promise<Workspace> {
  if (typeof source !== "function") return source;
  if (name !== undefined) return source(name);
  throw new HoldfastError("invalid_input", "the task's input does not say which workspace it is for", {
    fix: "add `workspace` to the input: the tasks were defined over several workspaces",
  });
}

/** Workspaces named by the path of their root, opened when first asked for and kept. */
export function workspacesByRoot(
  options: Omit<WorkspaceOptions, "root"> = {},
): (root: string) => Promise<Workspace> {
  const opened = new Map<string, Promise<Workspace>>();
  return (root) => {
    const known = opened.get(root);
    if (known !== undefined) return known;
    const opening = openWorkspace({ ...options, root });
    opened.set(root, opening);
    opening.catch(() => opened.delete(root)); // It may be there the next time.
    return opening;
  };
}
