/**
 * Hears of the steps whose code runs in this process: the watchdog, which names the one that blocks the event
 * loop (O5). Its methods must not throw.
 */
export interface StepObserver {
  /** The code of a step is called next. @returns a number that stands for the step. */
  began(sessionId: string, task: string, timeoutMs: number | undefined): number;
  /** The code that was called last has returned, with a result or a promise. */
  returned(): void;
  /** The code has settled. */
  ended(step: number): void;
}
