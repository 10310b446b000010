// The parts of a session's state that belong to its boundaries (`BoundaryState`, `EarlierWork`).

/** The facts about its boundaries that a session remembers. */
export interface BoundaryState {
  readonly count: number;
  /** Fruitless boundaries in a row (compaction-4). */
  readonly fruitless: number;
  /** Tool calls since the last boundary. */
  readonly callsSince: number;
  /** The model has refused the conversation as too long (compaction-5). */
  readonly isForced: boolean;
}

export const NO_BOUNDARY: BoundaryState = { count: 0, fruitless: 0, callsSince: 0, isForced: false };

/**
 * The work of a session that its model cannot see any more. It changes at a boundary and when a result is
 * cut, not in each turn.
 */
export interface EarlierWork {
  /** The files that the session has written, in the order of their first change. */
  readonly files: readonly string[];
  /** The results that `read_result` can read, the newest last. */
  readonly calls: readonly EarlierCall[];
}

export interface EarlierCall {
  /** The id of the tool call. */
  readonly id: string;
  /** The name of the tool. */
  readonly name: string;
  /** The beginning of the first text among the arguments, such as a path. */
  readonly about: string;
  /** The characters of the whole result. */
  readonly chars: number;
  /** The last entry of the conversation that has the whole result. */
  readonly entry: string;
}

export const NO_EARLIER_WORK: EarlierWork = { files: [], calls: [] };
