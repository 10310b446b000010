// `Workload` is a generator of lines, with the main variant last.

import type { AgentTracer, Budget } from "@holdfast/core";
import type { Measured } from "./line.ts";
import type { StorageKind } from "./storages.ts";

export interface Bench {
  readonly storage: StorageKind;
  /** A smoke test: everything once, small. Its figures mean nothing. */
  readonly isQuick: boolean;
  readonly repeats: number;
  /** Where databases are made, on the disk that is to be measured. */
  readonly folder: string;
  /** `full`, or in a smoke test `quick`. */
  size(full: number, quick: number): number;
}

/** Optional parts of a session. */
export interface Additions {
  readonly tracer?: AgentTracer;
  readonly budget?: Budget;
}

export interface Workload {
  readonly id: string;
  readonly title: string;
  /** Why it cannot be measured with a storage; `undefined` when it can. */
  readonly refuses?: (storage: StorageKind) => string | undefined;
  /** Whether a goal that is missed is an error: the bench then ends with 1. */
  readonly isGate?: boolean;
  run(bench: Bench): AsyncGenerator<Measured>;
}
