// The state of a session of an external agent, stored with each checkpoint.

import { MINUTE_MS } from "@holdfast/core";
import type { PermissionRule } from "@holdfast/agents";
import type { Grant } from "./questions/permission-questions.ts";
import type { ExternalIntent } from "./external-agent-protocol.ts";
import type { Fields } from "./fields.ts";
import type { DoneCall } from "./way-back/way-back-calls.ts";
import type { StartedSession } from "./way-back/started-sessions.ts";
import type { RestoreReceipt } from "./receipt/restore-receipt.ts";
import type { FollowUp } from "./intent/turn-input.ts";

export interface ExternalState {
  /** `null` before the session is prepared. */
  readonly intent: ExternalIntent | null;
  /** The session that owns the program's session (external-agent-5). */
  readonly owner: string;
  /** The present request, as it was given. */
  readonly request: string;
  /** The prompt of the next turn: the request, or the request to continue. */
  readonly prompt: string;
  /** The present request where it is a command of the program, as long as no turn has begun with it. */
  readonly command?: string;
  /** The fields of the present request. Absent for a text. */
  readonly parameters?: Fields;
  /** The number of turns that have begun. */
  readonly turns: number;
  /**
   * The parts of prompts to continue that the program may not have read, because no result of a call has
   * followed. A program that is killed may not have stored its prompt.
   */
  readonly unread: readonly string[];
  readonly mode: "start" | "resume";
  /** The last turn ended in order, so that the next one is no resume after a crash. Absent before a turn. */
  readonly isInOrder?: boolean;
  /** Requests for after the answer that no turn has begun, in order. Absent without one. */
  readonly queued?: readonly FollowUp[];
  /** The request is answered, and the conversation waits for the next one. */
  readonly isWaiting: boolean;
  readonly isConversation: boolean;
  /** Turns in a row that were cut off. */
  readonly cutOffs: number;
  /** Whether the program has called a tool or completed a turn in this session. */
  readonly hasActed: boolean;
  /** The model, as the program names it. */
  readonly model: string | null;
  readonly usage: ExternalUsage;
  readonly answer: string;
  /** The last answer as a value of JSON. Absent for a text alone. */
  readonly data?: unknown;
  /** The id that the agent gave to its session, where it chooses the id. */
  readonly boundId: string | null;
  /** The rules of the project when the session started, and those that people gave with their answers since. */
  readonly rules: readonly PermissionRule[];
  /** Calls that a person has allowed, and that the program has not made again. */
  readonly grants: readonly Grant[];
  /** Calls to the session that a turn which was cut off has made (way-back-calls-2). */
  readonly doneCalls: readonly DoneCall[];
  /** The sessions that the agent has started by its tools. */
  readonly started: readonly StartedSession[];
  /** How long a process waits for the answer to its question. Milliseconds. */
  readonly keepAliveMs: number;
  /** Whether a usage limit of the agent's account is waited for without a person. */
  readonly resumeAtReset?: boolean;
  /** Turns in a row that a limit of the agent's account has ended. */
  readonly limitsInARow?: number;
  /** The receipt of the last safe point, which is checked before a resume. `null` without one. */
  readonly receipt: RestoreReceipt | null;
  /**
   * The bytes of the program's own record whose calls were counted after a turn that was cut off; `null`
   * where that is not known. Absent after a turn in order: its receipt has them.
   */
  readonly countedBytes?: number | null;
  /** Whether the next turn replaces a damaged session file by its copy. */
  readonly restores?: boolean;
}

/** The sums over the session. */
export interface ExternalUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** external-agent-4. */
  readonly costMicroUsd: number | null;
}

/** A process takes some hundred megabytes of memory. */
const KEEP_ALIVE_MS = 10 * MINUTE_MS;

export const FIRST_STATE: ExternalState = {
  intent: null,
  owner: "",
  request: "",
  prompt: "",
  turns: 0,
  unread: [],
  mode: "start",
  isWaiting: false,
  isConversation: false,
  cutOffs: 0,
  hasActed: false,
  model: null,
  usage: { inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
  answer: "",
  boundId: null,
  rules: [],
  grants: [],
  doneCalls: [],
  started: [],
  keepAliveMs: KEEP_ALIVE_MS,
  receipt: null,
};
