// `keepRuntime`: a runtime that runs whatever its agents have to do, until its command ends.
//
// It continues the sessions that an earlier process was running, and looks again for such sessions, because
// another process may have ended since.

import { defined, repeat } from "@holdfast/core";
import { createRuntime, systemClock, Watchdog, type Runtime, type RuntimeOptions } from "@holdfast/runtime";
import { leaseOf, suspectsFile, type Database } from "@holdfast/place/project";
import { isDebugged, type StoppableWork } from "./typing/stopper.ts";

/** How often it is looked for sessions that another process left behind. */
const RECOVER_MS = 5_000;

export interface Keeping<T> {
  readonly database: Database;
  readonly runtime: RuntimeOptions;
  /** Resolves when the command ends. */
  readonly until: Promise<T>;
  /** Called once, with the sessions that were resumed. */
  readonly begun?: (runtime: Runtime, resumed: readonly string[]) => void;
  /** Called at the end of the command, before the runtime is closed. */
  readonly ending?: () => Promise<void>;
  readonly work: StoppableWork;
}

/** @returns what `until` gives. */
export async function keepRuntime<T>({
  database,
  runtime: options,
  until,
  begun,
  ending,
  work,
}: Keeping<T>): Promise<T> {
  const watchdog = isDebugged() ? undefined : new Watchdog({ path: suspectsFile(database) });
  const runtime = createRuntime({
    ...leaseOf(database),
    showsTexts: true,
    ...defined({ watchdog }),
    ...options,
  });
  const recovery = repeat({ clock: systemClock, pauseMs: () => RECOVER_MS, look: () => runtime.recover() });
  work.begins(runtime);
  let graceMs = 0;
  try {
    begun?.(runtime, await runtime.recover());
    const outcome = await until;
    await ending?.();
    graceMs = work.graceMs;
    return outcome;
  } finally {
    recovery.close();
    await runtime.close({ graceMs });
    await watchdog?.close();
  }
}
