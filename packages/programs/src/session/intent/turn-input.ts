// The input of a session of an external agent, and the text of its signals (`readInput`). Pure.

import type { AgentRecord } from "@holdfast/agents";

export interface TurnInput {
  readonly text: string;
  readonly conversation?: boolean;
  readonly model?: string;
  readonly permissionMode?: string;
  readonly keepAliveMs?: number;
  /** The name of a profile. */
  readonly profile?: string;
  /** A usage limit of the agent's account is waited for without a person. */
  readonly resumeAtReset?: boolean;
  /** The sandbox of the program. */
  readonly sandbox?: string;
  /** The session works in a git worktree of its own. */
  readonly worktree?: boolean;
  /** The folder that it works in; counts before `worktree`. */
  readonly workspace?: AgentRecord["workspace"];
}

/** An input as its schema allows it, or the payload of a signal: a text, `{ text }` or `{ prompt }`. */
export function readInput(input: unknown): TurnInput {
  if (typeof input === "string") return { text: input };
  const { text, prompt, ...options } = (input ?? {}) as Omit<TurnInput, "text"> & {
    readonly text?: unknown;
    readonly prompt?: unknown;
  };
  const given = text ?? prompt;
  return { ...options, text: typeof given === "string" ? given : JSON.stringify(input ?? "") };
}
