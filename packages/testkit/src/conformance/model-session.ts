// `Known` is the state of one session in the model of a storage.

import { isReservedName, type CommitBatch, type SessionStatus } from "@holdfast/core";

/** The known state of one session. */
export interface Known {
  status: SessionStatus;
  readonly journal: CommitBatch["records"][number][];
  readonly entries: string[];
  readonly signals: { id: string; name: string; order: number }[];
  readonly seen: Set<string>;
  waits: readonly string[];
  wakeAt: number | undefined;
  inbox: number;
  /** The deadline of its cancel. */
  deadlineAt: number | undefined;
  /** Its own. */
  readonly lifeUntil: number;
  readonly parent: { readonly sessionId: string; readonly isLeft: boolean } | undefined;
  readonly children: string[];
  /** How many it asked for; one that existed already is not its child. */
  births: number;
  /** Tokens, when it has a budget. */
  readonly account: { max: number; spent: number; reserved: number; isLow: boolean } | undefined;
  readonly payers: readonly string[];
  readonly holds: Map<number, number>;
  /** Given out so far, newest last. */
  readonly tokens: number[];
  owner: string | undefined;
  until: number;
  losses: number;
  lastBatch: CommitBatch | undefined;
}

export function newlyKnown(owner: string | undefined): Known {
  return {
    status: "submitted",
    journal: [],
    entries: [],
    signals: [],
    seen: new Set(),
    waits: [],
    wakeAt: undefined,
    inbox: 0,
    deadlineAt: undefined,
    lifeUntil: Infinity,
    parent: undefined,
    children: [],
    births: 0,
    account: undefined,
    payers: [],
    holds: new Map(),
    tokens: [],
    owner,
    until: Infinity,
    losses: 0,
    lastBatch: undefined,
  };
}

export function stand(
  known: Known,
  status: SessionStatus,
  waits: readonly string[],
  wakeAt: number | undefined,
): void {
  known.status = status;
  known.waits = waits;
  known.wakeAt = wakeAt;
}

/** Whether a signal goes between sessions, and is not the answer of a person. */
export function isNotification(name: string): boolean {
  return isReservedName(name) && !name.startsWith("answer:");
}

export function isDue({ status, waits, wakeAt, signals }: Known, now: number): boolean {
  if (status === "submitted" || status === "working") return true;
  if (status === "paused") return false;
  if (status === "cancelling" && waits.length === 0) return true;
  return (wakeAt !== undefined && wakeAt <= now) || signals.some(({ name }) => waits.includes(name));
}
