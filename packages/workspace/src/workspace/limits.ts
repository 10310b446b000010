// Limits of one workspace, with their unit in the name. Reaching one is always visible: an error that names
// it, or a mark.

import { HOUR_MS, MIB } from "@holdfast/core";

export const WORKSPACE_LIMITS = {
  /** The largest file that is read or written as one piece. */
  fileBytes: 10 * MIB,
  /** Output kept of one command, both streams together; what is cut is marked. */
  outputBytes: 10 * MIB,
  /** A command without a time-out of its own. */
  timeoutMs: 120_000,
  /** The longest time-out a caller may ask for. */
  timeoutMaxMs: HOUR_MS,
  /** From SIGTERM to SIGKILL: what is cancelled is gone within two seconds, whatever it does. */
  killGraceMs: 1_500,
  /** Entries of one listing, and files looked at by one search. */
  entries: 20_000,
  /** Lines a search gives back. */
  matches: 200,
  /** Files larger than this are not searched. */
  searchFileBytes: MIB,
  /** One search, all files together. */
  searchMs: 10_000,
} as const;

/** The limits of a workspace, each with its number. */
export type WorkspaceLimits = { readonly [name in keyof typeof WORKSPACE_LIMITS]: number };
