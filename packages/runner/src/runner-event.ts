// `RunnerEvent`: the moments in the life of a runner that its owner may log.

import type { HoldfastError } from "@holdfast/core";

/** An event that a runner tells of itself. */
export type RunnerEvent =
  | { readonly type: "connecting"; readonly url: string }
  | { readonly type: "registered"; readonly runnerId: string }
  | { readonly type: "started"; readonly healthPort: number | undefined }
  | {
      readonly type: "received";
      readonly runId: string;
      /** `start_session` for the first run of a session. */
      readonly runType: "start_session" | "resume_session";
      readonly sessionId: string;
      readonly agent: string;
    }
  | { readonly type: "lost"; readonly error: HoldfastError }
  /** Claims are renewed more often than asked for, because a third of the lease is the most. */
  | { readonly type: "renewed_more_often"; readonly askedMs: number; readonly renewMs: number }
  | { readonly type: "back" }
  /** A runner with newer code takes over. `kept` is the number of sessions that may come back. */
  | { readonly type: "superseded"; readonly kept: number }
  | { readonly type: "draining"; readonly held: number }
  | { readonly type: "stopped"; readonly error: HoldfastError | undefined };
