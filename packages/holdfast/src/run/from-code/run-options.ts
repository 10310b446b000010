// The options of `runAgentFile`.

import type { Budget, GivenEnvironment } from "@holdfast/core";
import type { Environment } from "@holdfast/system";

/** A question that a session asks a person. */
export interface AgentQuestion {
  /** The session that asks: that of the agent, or of an agent below it. */
  readonly sessionId: string;
  /** The question, as a text for people. */
  readonly prompt: string;
  /** The number of the question in its session. */
  readonly id: number;
}

/** Options of `runAgentFile`. */
export interface RunAgentFileOptions {
  /**
   * A SQLite file. Sessions in it survive the process: a call with the same `sessionId` goes on with the
   * session, and `holdfast inbox --db FILE` answers its questions. Without it, the session lives in memory.
   */
  readonly database?: string;
  /** The id of the session: a new one by default. */
  readonly sessionId?: string;
  /** The limits of the session and of all sessions below it: those of the file by default. */
  readonly budget?: Budget;
  /**
   * The folder in which the file and its project are looked for, and in which the agent works: the current
   * one by default.
   */
  readonly folder?: string;
  /** Environments and variables for the commands and servers of the agent, as `run --env-ref` and `run --env` give them. */
  readonly environment?: GivenEnvironment;
  /** The variables that choose models, keys and settings: those of the process by default. */
  readonly env?: Environment;
  /**
   * Answers a question, such as whether a command may run: `{ approved: true }`. Called once for each
   * question of the session and of those below it. Without it, and without `database`, a question ends the
   * call.
   */
  readonly answer?: (question: AgentQuestion) => unknown;
}
