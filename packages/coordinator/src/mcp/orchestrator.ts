// `Orchestrator`: the port of the orchestrator's tools to a coordinator, for one caller.
//
// There are two: the coordinator's own endpoint `/mcp`, within its process, and `holdfast mcp`, over a
// connection.

import { createHmac } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import type { HoldfastError } from "@holdfast/core";
import type { RunnerService, SessionService } from "@holdfast/proto";

export interface Orchestrator {
  readonly sessions: Client<typeof SessionService>;
  readonly runners: Client<typeof RunnerService>;
  /** The reason why a call was rejected. Must not throw. */
  readonly explained: (thrown: unknown) => Promise<HoldfastError>;
  /** Identifies the caller's token without revealing it. */
  readonly caller: string;
  /**
   * Signs what a client carries between a question and its answer. It is made of the caller's token, so every
   * process has the same.
   */
  readonly stateKey: Uint8Array;
  /** The session on whose behalf the tools are called. */
  readonly parentSessionId?: string;
  /** Labels that a runner must have for each session that is started. */
  readonly demands: Readonly<Record<string, string>>;
  /** Tags that an agent must have to be listed and started, all of them. Empty for no filter. */
  readonly tags: readonly string[];
  readonly settings: OrchestratorSettings;
  readonly memory: OrchestratorMemory;
}

export interface OrchestratorSettings {
  /** Whether `delete_all_agent_sessions` deletes anything. */
  readonly mayDelete: boolean;
  /** Whether each agent is a tool of its own, too. */
  readonly offersAgents: boolean;
}

/** The `stateKey` of the bearer of a token. */
export function stateKeyOf(token: string): Uint8Array {
  return createHmac("sha256", token).update("holdfast mcp state").digest();
}

/** The sessions about whose end a caller was told. The oldest are forgotten. */
export class OrchestratorMemory {
  readonly #answered = new Set<string>();
  readonly #max: number;

  constructor(max = 10_000) {
    this.#max = max;
  }

  answer(sessionId: string): void {
    this.#answered.delete(sessionId);
    this.#answered.add(sessionId);
    for (const oldest of this.#answered) {
      if (this.#answered.size <= this.#max) break;
      this.#answered.delete(oldest);
    }
  }

  hasAnswered(sessionId: string): boolean {
    return this.#answered.has(sessionId);
  }
}
