// The input of an external agent's session that `chat` or `fork --agent` starts: the options of the call as its fields (`withOptions`).

import { UsageError } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import type { Arguments } from "../../frame/command.ts";

/** The options of this call that count before the fields of an agent file. */
export function overridesOf(args: Arguments): Partial<Pick<AgentRecord, "workspace" | "sandbox">> {
  const sandbox = args.text("sandbox");
  return {
    ...(args.has("worktree") ? { workspace: "worktree" } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
  };
}

/** The options of this call that are fields of the input of an external agent. */
export function externalOptions(args: Arguments): Readonly<Record<string, unknown>> {
  return {
    ...(args.has("conversation") ? { conversation: true } : {}),
    ...(args.has("sandbox") ? { sandbox: args.text("sandbox") } : {}),
    ...(args.has("worktree") ? { worktree: true } : {}),
    ...(args.has("resume-at-reset") ? { resumeAtReset: true } : {}),
    ...(args.has("profile") ? { profile: args.text("profile") } : {}),
  };
}

export function refuseProfile(agent: string): never {
  throw new UsageError(`--profile is for external agents, and "${agent}" is none`, {
    at: "--profile",
    expected: "an external agent, such as claude-code or codex",
    fix: "give the fields of the profile in the agent file",
  });
}

export function refuseWorktree(agent: string): never {
  throw new UsageError(`--worktree is for agent files and external agents, and "${agent}" is code`, {
    at: "--worktree",
    expected: "an agent file, or an external agent such as claude-code",
    fix: "leave it out; an agent of code chooses its folders itself",
  });
}

/** The input with these fields. A text becomes the field `text`. */
export function withOptions(input: unknown, options: Readonly<Record<string, unknown>>): unknown {
  if (Object.keys(options).length === 0) return input;
  if (typeof input === "string") return { text: input, ...options };
  return typeof input === "object" && input !== null ? { ...input, ...options } : input;
}
