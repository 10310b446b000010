// The agent of `coding-agent.md` for any repository:
// `npx holdfast run examples/01-coding-agent/agent.ts --input '{"repo": ".", "text": "..."}'`
//
// The repository is in the input, the model in the environment: another process that resumes the session
// finds both again.

import { fileURLToPath } from "node:url";
import { findAgent, ModelLoop, type ModelSource, workspacesByRoot } from "@holdfast/agents";
import type { Agent } from "holdfast";
import { chooseModelAgain, SCRIPT_NOTICE, SCRIPT_REMINDER } from "./model.ts";

export interface CodingInput {
  /** The path of the repository; the folder of the process by default. */
  readonly repo?: string;
  /** The request to the agent. */
  readonly text: string;
}

export interface CodingOutput {
  readonly status: "completed" | "nothing_to_do" | "stopped";
  readonly summary: string;
  readonly commit: string | null;
}

const FILE = fileURLToPath(new URL("coding-agent.md", import.meta.url));
/** A file that is named by its path is read wherever it is. */
const NOWHERE = { project: ".", home: undefined, env: {}, trustFile: "" };

/** The agent file, as Holdfast understands it. */
export const record = findAgent(FILE, NOWHERE);

/** Whether somebody has said already that the model is a script. */
export const notice = { isShown: false };

/** The agent of the file, with a model and the workspaces of its sessions. */
export function codingAgent(
  model: ModelSource,
  workspace = workspacesByRoot(),
): Agent<CodingInput, CodingOutput> {
  const loop = new ModelLoop({
    model,
    workspace,
    root: ".",
    place: async (_record, _task, _begin, input) => ({ address: (input as CodingInput).repo ?? "." }),
  });
  return loop.agent<CodingInput, CodingOutput>(record);
}

export default codingAgent((wanted) => {
  const model = chooseModelAgain(process.env, wanted);
  if (model.isScripted && !notice.isShown)
    process.stderr.write(`${wanted === undefined ? SCRIPT_NOTICE : SCRIPT_REMINDER}\n`);
  notice.isShown = true;
  return model;
});
