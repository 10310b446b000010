// `TurnDraft`: what a turn changes before its checkpoint, shared by the parts of the turn. Its fields live
// for one call of the agent's function.
//
//   - Every change of the state and every entry goes through the draft, so that the size of the conversation
//     is always right.
//   - A turn stores the changed fields alone. The record and the facts of a session are stored once.

import { HoldfastError, type Json, type RetryPolicy } from "@holdfast/core";
import type { AgentContext, TaskContext, TurnResult } from "@holdfast/runtime";

import type { AgentRecord, PermissionRule } from "../../record/agent-record.ts";
import type { ModelToolCall } from "../../models/model-provider.ts";
import type { modelTask } from "../../models/model-task.ts";
import { entryTokens } from "../../models/request-size.ts";
import { entryBytes } from "../compaction/context-size.ts";
import type { AnyCapability, StartedSession } from "../capability.ts";
import type { hookTask } from "../hooks/hook-task.ts";
import type { FileSnapshot } from "@holdfast/workspace";
import { FRESH_GUARD } from "../loop-guard.ts";
import type { CapabilityFacts, ModelState, SessionFiles } from "../model-state.ts";
import type { ProjectRules } from "../../permissions/ask-permission.ts";
import type { Tool } from "../tools/tool.ts";
import type { WorkspaceFacts } from "../workspace-facts.ts";

/** The parts of an agent of the model loop, apart from its record. */
export interface LoopParts {
  readonly model: ReturnType<typeof modelTask>;
  readonly hook: ReturnType<typeof hookTask>;
  /** Every tool that a record may name, apart from those of the capabilities. */
  readonly tools: readonly Tool[];
  readonly capabilities: readonly AnyCapability[];
  /** Reads what a session that starts now continues with. */
  readonly prepare: (task: TaskContext, session: StartedSession) => Promise<Prepared>;
  /** Opens the workspace of a fork in place of that of its origin. */
  readonly openFork: (
    agent: AgentRecord,
    state: Pick<ModelState, "facts" | "files">,
    task: TaskContext,
    input: unknown,
  ) => Promise<OpenedFork>;
  readonly keepFiles: KeepFiles | undefined;
  readonly projectRules: ProjectRules | undefined;
  /** The tokens that a model reads and writes in one call. */
  readonly contextWindow: (model: string | null) => number;
}

export interface Prepared {
  readonly agent: AgentRecord;
  readonly workspace: WorkspaceFacts;
  readonly files: SessionFiles | null;
  readonly facts: CapabilityFacts;
  readonly rules: readonly PermissionRule[];
}

export type OpenedFork = Pick<Prepared, "workspace" | "files" | "facts">;
/** Keeps the state of the files of a session, so that a fork can begin with them. */
export type KeepFiles = (record: AgentRecord, task: TaskContext) => Promise<FileSnapshot>;

/** Errors of an agent's file or of its surroundings, which another attempt would meet again. */
export const PREPARE_RETRY: RetryPolicy = {
  nonRetryable: [
    "agent_invalid",
    "config_invalid",
    "conflict",
    "file_not_found",
    "invalid_input",
    "secret_missing",
  ],
};

export const LOOP_LIMITS = {
  /** Model calls of one request, where the record does not say. Then a person is asked. */
  turns: 100,
  /** Tool calls of one reply that are carried out. */
  callsPerReply: 64,
  /** Outputs in a row that do not match their schema. */
  corrections: 5,
} as const;

/** The signal that reaches the model before its next call, in the middle of the work: a text, or `{ text }`. */
export const STEER = "steer";

export type Context = AgentContext<unknown, ModelState>;
export type Turn = TurnResult<ModelState, Json>;

export class TurnDraft {
  readonly ctx: Context;
  readonly parts: LoopParts;
  /** The calls of the last reply that have no result yet. */
  openCalls: readonly ModelToolCall[] = [];
  /** The state of the last checkpoint. */
  readonly #before: ModelState;
  #state: ModelState;

  constructor(ctx: Context, state: ModelState, parts: LoopParts) {
    this.ctx = ctx;
    this.parts = parts;
    this.#before = state;
    this.#state = state;
  }

  get state(): ModelState {
    return this.#state;
  }

  /** A limit is reached: a person decides whether the work continues. The wait costs nothing, and what was done stays. */
  async askToContinue(agent: AgentRecord, why: string): Promise<void> {
    const { approved, reason } = await this.ctx.requestInput({
      prompt: `Let agent "${agent.name}" continue? It was stopped because ${why}.`,
      details: { turns: this.#state.turns, usage: this.#state.usage },
    });
    if (!approved)
      throw new HoldfastError("limit_exceeded", `agent "${agent.name}" was stopped because ${why}`, {
        ...(reason === undefined ? {} : { got: `the person's reason: ${reason}` }),
        fix: "raise `maxTurns` in the agent's file, or give it smaller requests",
      });
    this.change({ turns: 0, guard: FRESH_GUARD });
    if (reason !== undefined) this.append("user", reason);
  }

  /** The context window of the model that answered last. */
  windowTokens(agent: AgentRecord): number {
    return this.parts.contextWindow(this.#state.model ?? agent.model);
  }

  /** Ends the turn. */
  next(): Turn {
    const before = this.#before;
    const changed = Object.entries(this.#state).filter(
      ([field, value]) => value !== before[field as keyof ModelState],
    );
    return { update: Object.fromEntries(changed) };
  }

  change(update: Partial<ModelState>): void {
    this.#state = { ...this.#state, ...update };
  }

  /**
   * Adds an entry to the conversation.
   *
   * @param parentId the entry that it follows, the last one by default. `null` begins a new conversation.
   * @returns the id of the entry.
   */
  append(role: string, content: unknown, parentId?: string | null): string {
    const entry = { role, content };
    const id = this.ctx.appendEntry(parentId === undefined ? entry : { ...entry, parentId });
    const { conversationTokens, context } = this.#state;
    this.change({
      conversationTokens: conversationTokens + entryTokens(entry),
      context: { ...context, addedBytes: context.addedBytes + entryBytes(content) },
    });
    return id;
  }
}
