// `OwnChildren`: the children of sessions of this process, which run here even without `adopt`. Where a
// coordinator decides which sessions run here, it decides so for children too.

import { type HoldfastError, isEnded, toHoldfastError } from "@holdfast/core";
import type { LiveSessionsHost } from "./live-sessions-host.ts";

const PAGE = 200;

/** The sessions of this process, as their children know them. */
export interface DrivenHere {
  readonly closed: boolean;
  isLive(sessionId: string): boolean;
  activate(sessionId: string): Promise<void>;
  /** Must not throw. */
  failedToRun(sessionId: string, error: HoldfastError): void;
}

export class OwnChildren {
  readonly #host: LiveSessionsHost;
  readonly #sessions: DrivenHere;
  readonly #owned = new Set<string>();

  constructor(host: LiveSessionsHost, sessions: DrivenHere) {
    this.#host = host;
    this.#sessions = sessions;
  }

  has(sessionId: string): boolean {
    return this.#owned.has(sessionId);
  }

  delete(sessionId: string): void {
    this.#owned.delete(sessionId);
  }

  /** Run the children that sessions of this process asked for. */
  spawned(sessionIds: readonly string[]): void {
    const { adopt, dispatched } = this.#host;
    if (dispatched) return;
    for (const sessionId of sessionIds) {
      if (!adopt) this.#owned.add(sessionId);
      if (this.#sessions.closed || this.#sessions.isLive(sessionId)) continue;
      // An arrival during its load reached no driver and is not announced again (S2).
      this.#sessions.activate(sessionId).catch((error: unknown) => {
        // mutant: child-not-retried
        if (!this.#sessions.closed) this.#sessions.failedToRun(sessionId, toHoldfastError(error));
      });
    }
  }

  /** Run the stored children of a session. Paused ones are owned only, as they may be cancelled. */
  async ownAll(parent: string): Promise<void> {
    const { adopt, dispatched, storage } = this.#host;
    if (dispatched) return;
    let before: string | undefined;
    for (;;) {
      const from = before === undefined ? {} : { before };
      const page = await storage.reader.sessions({ parent, limit: PAGE, ...from });
      const living = page.filter(({ status }) => !isEnded(status));
      if (!adopt) for (const { sessionId } of living) this.#owned.add(sessionId);
      this.spawned(living.flatMap(({ sessionId, status }) => (status === "paused" ? [] : sessionId)));
      before = page.at(-1)?.sessionId;
      if (page.length < PAGE || before === undefined) return;
    }
  }
}
