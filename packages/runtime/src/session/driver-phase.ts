// `Phase`, `Opening`: the states of a session driver. `session-driver.ts` says what each of them allows.

import type { SealedSegment } from "@holdfast/core";
import type { Opening as OpenedTasks } from "../tasks/task-starts.ts";

/** The work that a driver has in progress. */
export type Phase =
  | { readonly type: "still" | "slice" | "over" }
  | {
      readonly type: "commit";
      /** Whether a slice is wanted once the batch is answered. */
      isWoken: boolean;
      /** K6. Whether the batch keeps the outcomes of a refused one. If it is refused as well, they are lost. */
      readonly isSalvage: boolean;
    };

export const STILL: Phase = { type: "still" };
export const SLICE: Phase = { type: "slice" };
export const OVER: Phase = { type: "over" };

/** A batch that was submitted, and what its answer needs. */
export interface Submitted {
  readonly phase: Phase & { readonly type: "commit" };
  readonly segment: SealedSegment;
  readonly tasks: OpenedTasks;
  readonly onCommitted: () => void;
}

/** A step that comes before the agent's own work. */
export type Opening = "recover" | "fork" | "start";
