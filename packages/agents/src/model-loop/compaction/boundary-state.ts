// The part of a session's state that knows its boundaries (`BoundaryState`).

/** The facts about its boundaries that a session remembers. */
export interface BoundaryState {
  readonly count: number;
  /** Fruitless boundaries in a row (compaction-4). */
  readonly fruitless: number;
  /** Tool calls since the last boundary. */
  readonly callsSince: number;
  /** The last entries before the newest boundaries, the newest first. Earlier results are read from there. */
  readonly leaves: readonly string[];
  /** The model has refused the conversation as too long (compaction-5). */
  readonly isForced: boolean;
}

export const NO_BOUNDARY: BoundaryState = {
  count: 0,
  fruitless: 0,
  callsSince: 0,
  leaves: [],
  isForced: false,
};
