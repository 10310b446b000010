// The state of a session of the model loop, stored with each checkpoint.

import type { Json } from "@holdfast/core";

import type { AgentRecord, PermissionRule } from "../record/agent-record.ts";
import type { FileSnapshot } from "@holdfast/workspace";
import {
  NO_BOUNDARY,
  NO_EARLIER_WORK,
  type BoundaryState,
  type EarlierWork,
} from "./compaction/boundary-state.ts";
import { NO_CONTEXT, type ContextSize } from "./compaction/context-size.ts";
import { FRESH_GUARD, type GuardState } from "./loop-guard.ts";
import type { WorkspaceFacts } from "./workspace-facts.ts";

export interface ModelState {
  /**
   * The agent as it was when the session started: a later change of its file does not concern the session.
   * `null` before the start.
   */
  readonly agent: AgentRecord | null;
  readonly workspace: WorkspaceFacts | null;
  /** The files of a workspace that the session has for itself; `null` for a shared one. */
  readonly files: SessionFiles | null;
  /** The facts that the capabilities of the session returned when it started. */
  readonly facts: CapabilityFacts;
  /** The request is answered, and the conversation waits for the next one. */
  readonly isWaiting: boolean;
  /** Model calls of the present request. */
  readonly turns: number;
  /** Outputs of the present request that did not match the output schema, in a row. */
  readonly corrections: number;
  readonly guard: GuardState;
  /** Tools that conditions of other tools name, and of which a call has succeeded. */
  readonly succeeded: readonly string[];
  /** The model that answered last, as `provider/model`; `null` before the first answer. */
  readonly model: string | null;
  readonly usage: SpentUsage;
  /** The present request, as the model reads it. */
  readonly request: string;
  readonly context: ContextSize;
  readonly boundaries: BoundaryState;
  readonly earlier: EarlierWork;
  /** The most tokens that the conversation can have, by `entryTokens`. */
  readonly conversationTokens: number;
  /** The rules of the project when the session started, and those that people gave with their answers since. */
  readonly rules: readonly PermissionRule[];
  readonly todos: readonly Todo[];
  /** The plan that a person approved, for an agent that plans first. */
  readonly plan: string | null;
  /** The answer to the last request. */
  readonly answer: Json;
}

/** The files of a session's own workspace at a checkpoint. */
export interface SessionFiles extends FileSnapshot {
  /** The session that the workspace was made for. A fork gets another one, with the files of the snapshot. */
  readonly session: string;
  /** Why the snapshot is older than the checkpoint; `null` when it is not. */
  readonly staleBecause: string | null;
}

/** Facts by the name of the capability that returned them. */
export type CapabilityFacts = Readonly<Record<string, Json>>;

/** Tokens and cost of the model calls of a session. The cost is that of the calls whose price is known. */
export interface SpentUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
}

export interface Todo {
  readonly text: string;
  readonly status: "pending" | "in_progress" | "done";
}

export const FIRST_STATE: ModelState = {
  agent: null,
  workspace: null,
  files: null,
  facts: {},
  isWaiting: false,
  turns: 0,
  corrections: 0,
  guard: FRESH_GUARD,
  succeeded: [],
  model: null,
  usage: { inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
  request: "",
  context: NO_CONTEXT,
  boundaries: NO_BOUNDARY,
  earlier: NO_EARLIER_WORK,
  conversationTokens: 0,
  rules: [],
  todos: [],
  plan: null,
  answer: null,
};
