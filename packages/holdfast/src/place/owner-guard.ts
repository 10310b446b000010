// The storage of another process, and noticing that this process has ended.
//
// A runtime waits for storage that is unavailable, because most of what is unavailable comes back. An owner that ended does
// not: who waited for it would be deaf for ever. So a commit that fails is followed by a question, and when that fails as
// well the runtime is told something that it does not wait for.

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
  // One that is stopped answers nothing: questions must not pile up with it.
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
