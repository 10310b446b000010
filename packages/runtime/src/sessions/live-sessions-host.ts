// LiveSessionsHost: what the sessions of a process need of it.

import type { AgentStorage } from "@holdfast/core";
import type { DriverWorld } from "../session/driver-environment.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import type { Watchdog } from "../isolation/watchdog.ts";

/** What the sessions of a process need of it. */
export interface LiveSessionsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly world: DriverWorld;
  /** For whom a claim is asked for, and how long it lasts. Call right before each claim: its lease may begin from then on. */
  claimTerms(): ClaimTerms;
  /** Whether sessions nobody here asked for are run when something arrives for them. */
  readonly adopt: boolean;
  /** Whether storage says which sessions are run here, children of these as any others. */
  readonly dispatched: boolean;
  readonly watchdog: Watchdog | undefined;
  /** Something is due at this time. */
  lookAt(at: number): void;
  /** The session is driven here no longer. */
  left(sessionId: string): void;
  /** Tell who watches of what went wrong where nobody waits for it. */
  warn(sessionId: string, message: string): void;
}

/** As of `AgentStorage.claim`. */
export interface ClaimTerms {
  readonly owner: string;
  readonly leaseMs: number;
}
