// The input of a session of an external agent, and the text of its signals (`readInput`). Pure.
//
// A command of the program comes as a follow-up and in no other way. An input and a `next_input` often pass on
// what a machine has written, and no text of a machine may run a command.

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

/** A message for after the answer: a text, or a command of the program (`/name …`). */
export type FollowUp = string | { readonly command: string };

const COMMAND = /^\/[^\s/]/;

/** The payload of a follow-up: as `readInput` has it, or `{ command }`. */
export function readFollowUp(payload: unknown): FollowUp {
  const { command } = (payload ?? {}) as { readonly command?: unknown };
  return typeof command === "string" && COMMAND.test(command) ? { command } : readInput(payload).text;
}
