// What a coding session is made of: its options and limits, what goes in, what comes out, and the state in between.

import type { z } from "zod";

import type { ModelSource } from "../models/model-task.ts";
import type { WorkspaceSource } from "../tasks/workspace-source.ts";
import type { finishInput, proposePlanInput } from "./coding-tools.ts";
import type { RepositoryFacts } from "./inspect-repository.ts";
import { FRESH_GUARD, type GuardState } from "./loop-guard.ts";

export interface CodingAgentOptions {
  /** One workspace for all sessions, or how to open the one a session names in its input `repo`. */
  readonly workspace: WorkspaceSource;
  readonly model: ModelSource;
  readonly name?: string;
  readonly limits?: Partial<CodingLimits>;
  /** Who commits; whoever git is set up for by default. */
  readonly author?: { readonly name: string; readonly email: string };
}

export interface CodingLimits {
  /** Model calls. */
  readonly turns: number;
  /** No further model call once this many tokens are used, in and out. */
  readonly tokens: number;
  /** Plans a person refuses. */
  readonly refusals: number;
  /** Tool calls of one reply. */
  readonly callsPerReply: number;
}

export const CODING_LIMITS: CodingLimits = {
  turns: 50,
  tokens: 3_000_000,
  refusals: 3,
  callsPerReply: 32,
};

export interface CodingInput {
  /** The repository, where the agent was made for several. */
  readonly repo?: string | undefined;
  /** What to do; by default: make the failing tests pass. */
  readonly task?: string | undefined;
  /** How to run the tests; found out by default. */
  readonly testCommand?: string | undefined;
}

export interface CodingReport {
  /** `stopped`: a limit was reached, see `reason`. What was changed until then is left in the repository, uncommitted. */
  readonly status: "completed" | "nothing_to_do" | "plan_refused" | "stopped";
  readonly reason?: string;
  readonly summary: string;
  /** `null` when nothing was committed. */
  readonly commit: string | null;
  readonly filesChanged: readonly string[];
  /** Model calls. */
  readonly turns: number;
  /** `provider/model`; `null` when none was asked. */
  readonly model: string | null;
  readonly usage: SpentUsage;
}

export interface SpentUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the calls whose price is known. */
  readonly costMicroUsd: number;
}

export interface CodingState {
  readonly repository: RepositoryFacts | null;
  readonly plan: Plan | null;
  readonly turns: number;
  readonly refusals: number;
  readonly model: string | null;
  readonly usage: SpentUsage;
  /** What the conversation has at most, by `entryTokens`. */
  readonly conversationTokens: number;
  readonly guard: GuardState;
  /** Files written by file tools: the new ones among them get into the commit. */
  readonly written: readonly string[];
}

export type Plan = z.output<typeof proposePlanInput>;
export type Finish = z.output<typeof finishInput>;

/** The state of the first turn. */
export const INITIAL_STATE: CodingState = {
  repository: null,
  plan: null,
  turns: 0,
  refusals: 0,
  model: null,
  usage: { inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
  conversationTokens: 0,
  guard: FRESH_GUARD,
  written: [],
};

export function dollars(microUsd: number): string {
  return `$${(microUsd / 1e6).toFixed(2)}`;
}
