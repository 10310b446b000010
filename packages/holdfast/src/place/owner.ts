// The process that owns a database, as a text for people.

import type { Database } from "./project.ts";

/** A busy owner answers late; then we say nothing rather than wait. */
const PATIENCE_MS = 300;

/** The pid of the process that owns it; `undefined` when nobody does, or nobody answers soon. */
export async function findOwner({
  path,
  coordinator,
}: Pick<Database, "path" | "coordinator">): Promise<number | undefined> {
  if (coordinator !== undefined) return undefined;
  const { connectSqliteStorage } = await import("@holdfast/storage/sqlite");
  const connecting = connectSqliteStorage({ path });
  const timer = Promise.withResolvers<undefined>();
  const timeout = setTimeout(timer.resolve, PATIENCE_MS, undefined);
  try {
    const storage = await Promise.race([connecting, timer.promise]);
    if (storage === undefined) {
      void connecting.then((late) => late?.close()).catch(() => {});
      return undefined;
    }
    await storage.close();
    const owner: unknown = "owner" in storage ? storage.owner : undefined;
    return typeof owner === "object" && owner !== null && "pid" in owner ? Number(owner.pid) : undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timeout);
  }
}
