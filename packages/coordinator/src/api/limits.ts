// `API_LIMITS` are the limits of the API, each with its unit in its name. A coordinator's configuration may
// change them. `ratesOf` makes of them the rates of starts and events.

import { MIB } from "@holdfast/core";
import type { Rate } from "./rates.ts";

export const API_LIMITS = {
  /** The size of a request's body. */
  bodyBytes: MIB,
  /**
   * The size of a body for methods whose requests carry many items. The largest value that a process records
   * (`LIMITS.payloadChars`) fits, as UTF-8 has up to three bytes for a character.
   */
  batchBytes: 32 * MIB,
  headerBytes: 16 * 1024,
  /** How long a connection may take to send a whole head. */
  headerMs: 10_000,
  /** How long a request may take to arrive whole. The time that a method waits is not included. */
  requestMs: 30_000,
  connections: 2_000,
  /**
   * How long an HTTP/2 connection without requests stays open. Node closes idle HTTP/1.1 connections, sooner
   * than this.
   */
  http2IdleMs: 60_000,
  /** Concurrent requests over one connection of HTTP/2. */
  http2Streams: 100,
  /**
   * How many bytes a reader may leave unread before the stream waits. The stream is cut when none of them
   * moves for `stalledMs`.
   */
  unreadBytes: 256 * 1024,
  stalledMs: 30_000,
  /** How long a stream may be silent before it is opened. A refusal before that is a status. */
  silentMs: 1000,
  /** The interval of comments in a silent stream. */
  heartbeatMs: 15_000,
  /** How often a stream checks its token. */
  recheckMs: 4_000,
  /** How long requests may still be answered when the API closes. */
  closeMs: 5_000,
  /** Starts by users and jobs. */
  startsPerSecond: 10,
  startsBurst: 50,
  eventsPerSecond: 200,
  streamsPerToken: 20,
} as const;

export type ApiLimits = { readonly [name in keyof typeof API_LIMITS]: number };

export function ratesOf(limits: ApiLimits): Readonly<Record<"start" | "event", Rate>> {
  return {
    start: { perSecond: limits.startsPerSecond, burst: limits.startsBurst },
    event: { perSecond: limits.eventsPerSecond, burst: limits.eventsPerSecond },
  };
}
