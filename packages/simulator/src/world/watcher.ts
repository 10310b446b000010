// `Watcher`: a simulation as it hears of what happens in its storage.

import type { JournalRecord, Session } from "@holdfast/core";

export interface Watcher {
  /** The time of the processes that serve the storage, where that is known. */
  servedAt?(): number | undefined;
  /** Called for every row that has changed. */
  changed(row: Session): void;
  /** Called for every new session. */
  born(row: Session): void;
  /** A record was committed to a journal. */
  recorded?(sessionId: string, record: JournalRecord): void;
  /** A cancel has refused a commit of the session. */
  refused?(sessionId: string): void;
  /** A session was claimed for `owner`; `before` held it and had not released it. */
  claimed?(sessionId: string, owner: string, before: string | undefined): void;
}
