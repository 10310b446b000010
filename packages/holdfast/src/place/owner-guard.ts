// The storage of another process, and noticing that this process has ended.
//
// A runtime waits for unavailable storage, because most unavailable storage comes back. An owner that ended
// does not come back, and the runtime would wait forever. After a failed commit the guard therefore asks the
// owner. If that fails as well, the runtime receives an error that it does not wait for.

import { ConflictError, HoldfastError, type AgentStorage } from "@holdfast/core";
import { storageWith } from "@holdfast/core/internal";

export interface GuardedStorage {
  readonly storage: AgentStorage;
  readonly isGone: boolean;
  /** Whether the owner still answers. */
  look(): Promise<boolean>;
}

export function guardOwner(storage: AgentStorage): GuardedStorage {
  let isGone = false;
  let looking: Promise<boolean> | undefined;
  // A stopped owner answers nothing, and questions must not pile up.
  const look = async (): Promise<boolean> => {
    if (isGone) return false;
    looking ??= ask().finally(() => (looking = undefined));
    return looking;
  };
  const ask = async (): Promise<boolean> => {
    try {
      await storage.reader.session("-");
    } catch (error) {
      isGone ||= HoldfastError.is(error) && error.code === "storage_unavailable";
    }
    return !isGone;
  };
  const guarded = storageWith(storage, {
    async commit(changes, now) {
      try {
        return await storage.commit(changes, now);
      } catch (error) {
        // The owner of a lost database lives, and ends the connection after this answer.
        if (HoldfastError.is(error) && error.code === "storage_lost") throw error;
        if (await look()) throw error;
        throw new ConflictError("locked", "the process that owned the database has ended", { cause: error });
      }
    },
  });
  return {
    storage: guarded,
    get isGone() {
      return isGone;
    },
    look,
  };
}
