// `recordingAnswers`, `AnswerPrincipals`: the person who gave an answer on this machine, as a row of the
// audit beside the answer.
//
// A coordinator records its callers in the same rows. On this machine the user of the answering process is
// the principal, because only that user may open the database.
//
// The row and the answer are one transaction. The row names the answer by the id of its signal.

import { userInfo } from "node:os";
import {
  type AgentStorage,
  type Change,
  isAuditedAnswer,
  type StorageReader,
  storageWith,
  withAnswerDetails,
} from "@holdfast/core";

const PAGE_ROWS = 500;
const ACTION = "session.answer";
const USER = "user:";

/** The user who runs this process. */
export function userOfMachine(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "of this machine"}`; // A container may know no name.
  }
}

/** A storage of this machine that records the principal of each answer which this process gives. */
export function recordingAnswers(storage: AgentStorage): AgentStorage {
  return storageWith(storage, {
    commit: async (changes, now) => {
      const recorded = changes.map((change) => withPrincipal(change));
      if (!recorded.some(isAuditedAnswer)) return storage.commit(changes, now);
      const { reader } = storage;
      return storage.commit(
        await Promise.all(recorded.map((change) => withAnswerDetails(reader, change))),
        now,
      );
    },
  });
}

function withPrincipal(change: Change): Change {
  if (change.type !== "send_signal") return change;
  const { sessionId, signalId } = change;
  const audited: Change = {
    type: "audited",
    change,
    audit: {
      actor: `${USER}${userOfMachine()}`,
      action: ACTION,
      object: `session:${sessionId}`,
      requestId: signalId,
    },
  };
  return isAuditedAnswer(audited) ? audited : change;
}

/** Reads the principals of answers. The audit is read as far as it goes, once. */
export class AnswerPrincipals {
  readonly #reader: Pick<StorageReader, "audit">;
  readonly #names = new Map<string, string>();
  #after = 0;

  constructor(reader: Pick<StorageReader, "audit">) {
    this.#reader = reader;
  }

  /** The name of the person; `undefined` for an answer that no row of the audit tells of. */
  async of(signalId: string): Promise<string | undefined> {
    while (!this.#names.has(signalId)) {
      const rows = await this.#reader.audit({ after: this.#after, limit: PAGE_ROWS });
      for (const { seq, action, actor, requestId } of rows) {
        this.#after = seq;
        if (action === ACTION && requestId !== undefined)
          this.#names.set(requestId, actor.startsWith(USER) ? actor.slice(USER.length) : actor);
      }
      if (rows.length < PAGE_ROWS) break;
    }
    return this.#names.get(signalId);
  }
}
