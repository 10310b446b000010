// `stopper`: what Ctrl-C does to a command that runs something. `isDebugged`: whether the process stands under a debugger.

import type { Io, StopSignal } from "../frame/command.ts";

/** Ctrl-C once stops cleanly; twice, at once. */
export function stopper(
  io: Io,
  after: string,
  stop: (signal: StopSignal) => void,
): (signal: StopSignal) => void {
  let isStopping = false;
  return (signal) => {
    if (isStopping) io.stopNow(signal);
    isStopping = true;
    io.note(io.notes.paint.dim(`stopping: ${after}; once more stops at once`));
    stop(signal);
  };
}

/** A watchdog must not end what stands at a breakpoint. */
export function isDebugged(): boolean {
  return process.execArgv.some((option) => option.startsWith("--inspect"));
}
