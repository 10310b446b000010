// The types of a coding session: options, limits, input, report and state.

import type { z } from "zod";

import type { ModelSource } from "../models/model-task.ts";
import type { WorkspaceSource } from "../tasks/workspace-source.ts";
import type { finishInput, proposePlanInput } from "./coding-tools.ts";
import type { RepositoryFacts } from "./inspect-repository.ts";
import { FRESH_GUARD, type GuardState } from "../model-loop/loop-guard.ts";

export interface CodingAgentOptions {
  /** One workspace for all sessions, or how to open the one a session names in its input `repo`. */
  readonly workspace: WorkspaceSource;
  readonly model: ModelSource;
  readonly name?: string;
  readonly limits?: Partial<CodingLimits>;
  /** The author of the commit; by default the user that git is configured for. */
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
  /** The task for the agent; by default to make the failing tests pass. */
  readonly task?: string | undefined;
  /** The command that runs the tests; by default the agent finds it. */
  readonly testCommand?: string | undefined;
}

export interface CodingReport {
  /** `stopped`: a limit was reached, see `reason`. Changes up to then stay in the repository, uncommitted. */
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
  /** The cost of the calls whose price is known. */
  readonly costMicroUsd: number;
}

export interface CodingState {
  readonly repository: RepositoryFacts | null;
  readonly plan: Plan | null;
  readonly turns: number;
  readonly refusals: number;
  readonly model: string | null;
  readonly usage: SpentUsage;
  /** The most tokens the conversation can have, by `entryTokens`. */
  readonly conversationTokens: number;
  readonly guard: GuardState;
  /** Files written by file tools; the commit includes the new files among them. */
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
