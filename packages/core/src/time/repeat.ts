// `repeat`: looks again and again, for as long as a process lives, whatever a look meets.
//
//   repeat-1. Every look is followed by another until `close`: one that fails, too, whatever it throws and
//       however early.
//   repeat-2. There is one look at a time. A look that is asked for during another one follows it.
//   repeat-3. The first of several failures in a row is reported. A look that succeeds ends the row.
//
// It does not know what is looked for, nor whether an error may pass. A caller that must give up closes it.

import type { Clock } from "../ports/clock.ts";

export interface RepeatOptions {
  readonly clock: Pick<Clock, "setTimer">;
  /** One look. May throw and reject. A look that never ends is followed by no other. */
  look(): Promise<unknown>;
  /**
   * The milliseconds until the next look. Must not throw. @param failures how many looks in a row have
   * failed; 0 after a success.
   */
  pauseMs(failures: number): number;
  /** The least milliseconds until a look that was asked for with `hurry`; 0 when absent. Must not throw. */
  restMs?(): number;
  /** repeat-3. Must not throw. */
  failed?(error: unknown): void;
  /** Whether a process that has nothing else to do may end. */
  readonly isIdle?: boolean;
  /** Begin with a look instead of a pause. */
  readonly atOnce?: boolean;
}

export interface Repetition {
  /** Look now, or right after the look under way. */
  hurry(): void;
  /** Look no more. A look under way is not waited for. */
  close(): void;
}

export function repeat(options: RepeatOptions): Repetition {
  const { clock, isIdle } = options;
  let cancel = (): void => {};
  let [isLooking, isHurried, isClosed] = [false, false, false];
  let failures = 0;

  const wait = (ms: number): void => {
    cancel();
    cancel = clock.setTimer(() => void look(), Math.max(0, ms), isIdle);
  };
  const restMs = (): number => options.restMs?.() ?? 0;
  const look = async (): Promise<void> => {
    cancel();
    [isLooking, isHurried] = [true, false];
    try {
      await options.look();
      failures = 0;
    } catch (error) {
      // mutant: loop-ended-by-error
      if (failures++ === 0) options.failed?.(error);
    }
    isLooking = false;
    if (!isClosed) wait(isHurried ? restMs() : options.pauseMs(failures));
  };

  if (options.atOnce === true) void look();
  else wait(options.pauseMs(failures));
  return {
    hurry() {
      if (isClosed) return;
      const ms = restMs();
      if (isLooking) isHurried = true;
      else if (ms > 0) wait(ms);
      else void look();
    },
    close() {
      isClosed = true;
      cancel();
    },
  };
}
