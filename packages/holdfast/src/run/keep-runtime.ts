// `keepRuntime`: a runtime that runs whatever its agents have to do, until its command ends.
//
//   keep-runtime-1. It continues the sessions that an earlier process was running, and looks again for such sessions,
//       because another process may have ended since.

import { createRuntime, Watchdog, type Runtime, type RuntimeOptions } from "@holdfast/runtime";
import { leaseOf, suspectsFile, type Database } from "../place/project.ts";
import { isDebugged } from "../typing/stopper.ts";

/** How often it is looked for sessions that another process left behind. */
const RECOVER_MS = 5_000;

export interface Keeping<T> {
  readonly database: Database;
  readonly runtime: RuntimeOptions;
  /** Resolves when the command ends. */
  readonly until: Promise<T>;
  /** Called once, with the sessions that were resumed. */
  readonly begun?: (runtime: Runtime, resumed: readonly string[]) => void;
  /** Called at the end of the command, before the runtime is closed. @returns how long aborted work may take. */
  readonly ending?: (runtime: Runtime) => Promise<number | undefined>;
}

/** @returns what `until` gives. */
export async function keepRuntime<T>({
  database,
  runtime: options,
  until,
  begun,
  ending,
}: Keeping<T>): Promise<T> {
  const watchdog = isDebugged() ? undefined : new Watchdog({ path: suspectsFile(database) });
  const runtime = createRuntime({
    ...leaseOf(database),
    ...(watchdog === undefined ? {} : { watchdog }),
    ...options,
  });
  // The next timer tries again after a failure.
  const timer = setInterval(() => void runtime.recover().catch(() => {}), RECOVER_MS);
  let graceMs: number | undefined;
  try {
    begun?.(runtime, await runtime.recover());
    const outcome = await until;
    graceMs = await ending?.(runtime);
    return outcome;
  } finally {
    clearInterval(timer);
    await runtime.close(graceMs === undefined ? {} : { graceMs });
    await watchdog?.close();
  }
}
