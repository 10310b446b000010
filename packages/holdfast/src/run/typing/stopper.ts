// `stopper`: what Ctrl-C does to a command that runs something. `isDebugged`: whether the process stands
// under a debugger.
//
// The first Ctrl-C stops in order: running steps may end within the grace. The second hands them over at
// once, the next ends the process. Where no step runs, the second ends the process.

import { STOP_GRACE_MS } from "@holdfast/core";
import type { Runtime } from "@holdfast/runtime";
import type { Io, StopSignal } from "@holdfast/terminal/frame/command";
import { count, duration } from "@holdfast/terminal/frame/plain-text";

/** A runtime, or what stops as one. */
export type Stoppable = Pick<Runtime, "running" | "close">;

/** The steps that a command runs, as its stop sees them. */
export class StoppableWork {
  readonly graceMs: number;
  readonly #io: Io;
  #at: Stoppable | undefined;
  #stage: "works" | "stops" | "hands over" = "works";

  constructor(io: Io, graceMs: number = STOP_GRACE_MS) {
    this.#io = io;
    this.graceMs = graceMs;
  }

  /** The command runs steps there from now on. */
  begins(at: Stoppable): void {
    this.#at = at;
  }

  get isRunning(): boolean {
    return (this.#at?.running ?? 0) > 0;
  }

  /** Says that the command stops. @returns false when it was stopping already. */
  stop(after: string): boolean {
    if (this.#stage !== "works") return false;
    this.#stage = "stops";
    const { paint } = this.#io.notes;
    const drains = this.graceMs > 0 && this.isRunning;
    this.#io.note(paint.dim(`stopping: ${drains ? this.#draining() : `${after}; once more stops at once`}`));
    return true;
  }

  /** @returns false when there is nothing to hand over. */
  handOver(): boolean {
    if (this.#stage === "hands over" || !this.isRunning) return false;
    this.#stage = "hands over";
    this.#at?.close({ graceMs: 0 }).catch(() => {}); // The end of the command reports it.
    return true;
  }

  #draining(): string {
    const running = this.#at?.running ?? 0;
    const [have, them] = running === 1 ? ["has", "it"] : ["have", "them"];
    return `${count(running, "running step")} ${have} ${duration(this.graceMs)} to end; once more hands ${them} over at once`;
  }
}

/** Without work the second Ctrl-C ends the process. */
export function stopper(
  io: Io,
  after: string,
  stop: (signal: StopSignal) => void,
  work = new StoppableWork(io),
): (signal: StopSignal) => void {
  return (signal) => {
    if (work.stop(after)) stop(signal);
    else if (!work.handOver()) io.stopNow(signal);
  };
}

/** A watchdog must not end what stands at a breakpoint. */
export function isDebugged(): boolean {
  return process.execArgv.some((option) => option.startsWith("--inspect"));
}
