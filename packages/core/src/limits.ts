// Every limit, with its unit in its name. Reaching one is always visible: an error that names it, or a state.
//
// The values in `LIMITS` are defaults, which a runtime may replace; `FORMAT_LIMITS` are part of the format.

import { MIB, MINUTE_MS } from "./units.ts";

export const LIMITS = {
  /** Commands an agent may ask for between two deliveries (K4a). */
  commandsPerSlice: 10_000,
  /** Journal records from one checkpoint to the next. */
  recordsPerCheckpoint: 1_000_000,
  /** Conversation entries from one checkpoint to the next. */
  entriesPerCheckpoint: 100_000,
  /** Outcomes delivered into one segment before it is committed. */
  deliveriesPerSegment: 4_096,
  /** Any one payload (input, output, signal, entry, state) in UTF-16 code units of its JSON. */
  payloadChars: 10 * MIB,
  /**
   * All texts that an agent asks to have recorded, stored or sent between two deliveries, because they are in
   * one batch. Outcomes are delivered into a batch up to half as much.
   */
  batchChars: 32 * MIB,
  /** Sessions above a session, predecessors included. */
  depth: 8,
  /** Children a session may ever ask for. */
  children: 1_000,
  /** Unconsumed signals of one session. */
  signalsPending: 100_000,
  /** Waits that may still be asked, and are cancelled, after a graceful cancel. */
  cancelledWaits: 100,
  /** One slice may keep the process busy this long before the watchdog ends it (K4a). */
  sliceMs: 5_000,
  /**
   * A step without a time-out may block the event loop this long before the watchdog lets the leases of its
   * process end (O5).
   */
  stepBlocksMs: 10 * MINUTE_MS,
  /** An agent that is blocked on nothing durable for this long is faulted (K2). */
  blockedOnNothingMs: 1_000,
  /** Attempts of in-process tasks running at once in one process. */
  tasksRunning: 256,
  /** The time that a cancelled session has for its own end. */
  cancelGraceMs: 10_000,
} as const;

/**
 * A process that stops in order gives its running tasks this long, unless it is told otherwise. Service
 * managers and containers must wait longer before they kill (docs/deploy.md).
 */
export const STOP_GRACE_MS = 25_000;

/** The limits that a runtime may replace, each with its number. */
export type Limits = { readonly [name in keyof typeof LIMITS]: number };

export const FORMAT_LIMITS = {
  /** Nesting of any JSON value. */
  jsonDepth: 64,
  /** A task's input is kept in the journal up to this size; its hash always. */
  inputKeptChars: 16 * 1024,
  /** Payloads from this size on are stored as content-addressed blobs. */
  blobChars: 64 * 1024,
  /** Names of agents, task kinds and signals. */
  nameChars: 200,
  /** Calls whose repeats are counted, in each session. */
  repeats: 50,
} as const;
