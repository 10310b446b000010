// `keepRuntime`: a runtime that runs whatever its agents have to do, until its command ends.
//
//   keep-runtime-1. It continues the sessions that an earlier process was running, and looks again for such sessions,
//       because another process may have ended since.
//   keep-runtime-2. It ends when the owner of the storage is gone, so that the command opens the storage again.

import { createRuntime, Watchdog, type Runtime, type RuntimeOptions } from "@holdfast/runtime";
import type { GuardedStorage } from "../place/owner-guard.ts";
import { leaseOf, suspectsFile, type Database } from "../place/project.ts";
import { isDebugged } from "../typing/stopper.ts";

/** How often it is looked whether the owner lives, because nothing tells. */
const LOOK_MS = 250;
/** How often it is looked for sessions that another process left behind. */
const RECOVER_MS = 5_000;

export interface Keeping<T> {
  readonly database: Database;
  /** The owner of the storage, when that is another process. */
  readonly owner: GuardedStorage | undefined;
  readonly runtime: RuntimeOptions;
  /** Resolves when the command ends. */
  readonly until: Promise<T>;
  /** Called once, with the sessions that were resumed. */
  readonly begun?: (runtime: Runtime, resumed: readonly string[]) => void;
  /** Called at the end of the command, before the runtime is closed. @returns how long aborted work may take. */
  readonly ending?: (runtime: Runtime) => Promise<number | undefined>;
}

/** @returns what `until` gives; `undefined` when the owner of the storage is gone (keep-runtime-2). */
export async function keepRuntime<T>({
  database,
  owner,
  runtime: options,
  until,
  begun,
  ending,
}: Keeping<T>): Promise<T | undefined> {
  const watchdog = isDebugged() ? undefined : new Watchdog({ path: suspectsFile(database) });
  const runtime = createRuntime({
    ...leaseOf(database),
    ...(watchdog === undefined ? {} : { watchdog }),
    ...options,
  });
  const gone = Promise.withResolvers<undefined>();
  const look = async (): Promise<void> => {
    if (owner !== undefined && !(await owner.look())) gone.resolve(undefined);
  };
  // The next timer tries again after a failure.
  const timers = [
    setInterval(() => void look().catch(() => {}), LOOK_MS),
    setInterval(() => void runtime.recover().catch(() => {}), RECOVER_MS),
  ];
  let graceMs: number | undefined;
  try {
    begun?.(runtime, await runtime.recover());
    const outcome = await Promise.race([until, gone.promise]);
    if (outcome !== undefined) graceMs = await ending?.(runtime);
    return outcome;
  } finally {
    for (const timer of timers) clearInterval(timer);
    await runtime.close(graceMs === undefined ? {} : { graceMs });
    await watchdog?.close();
  }
}
