// Time and chance, as ports: the only way either reaches Holdfast.

/** The port for time. A test hands in a clock that it moves. */
export interface Clock {
  /** Wall clock, epoch milliseconds, an integer. May jump. */
  now(): number;
  /** Milliseconds that never go back, with fractions, from an arbitrary start. */
  monotonic(): number;
  /**
   * Call back once, not before `ms` have passed. The callback must not throw. Returns the canceller, safe to
   * call twice.
   *
   * @param isIdle whether a process that has nothing else to do may end without it.
   */
  setTimer(callback: () => void, ms: number, isIdle?: boolean): () => void;
}

/** The port for random numbers. */
export interface Random {
  /** An unpredictable integer in [0, 2^32). */
  u32(): number;
}
