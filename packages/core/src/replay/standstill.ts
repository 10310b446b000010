// `Standstill`, `Ending`: the condition of an agent when none of its code runs, and the way in which it
// ended.

import type { HoldfastError, RecordedError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import type { SealedState, SessionState } from "../state/session-state.ts";

export type Ending =
  | {
      readonly type: "returned";
      readonly output: JsonText | undefined;
      /** The successor of the session. */
      readonly handedOffTo?: string;
    }
  | { readonly type: "threw"; readonly error: RecordedError };

/** The condition of the agent after a slice. */
export type Standstill =
  | { readonly type: "open" }
  /** The agent awaits nothing that is durable and has not ended. */
  | { readonly type: "nothing" }
  | { readonly type: "faulted"; readonly fault: HoldfastError }
  | { readonly type: "checkpointed"; readonly state: SessionState; readonly turn: number }
  | { readonly type: "ended"; readonly ending: Ending };

/** The checkpoint that an agent has asked for, until its segment is closed. */
export interface CheckpointRequest {
  readonly state: SealedState;
  readonly cancelTasks: boolean;
  /** The agent's line, for the error when the turn made no progress. */
  readonly line: string | undefined;
}
