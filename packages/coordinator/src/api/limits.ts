// Every limit of the API, with its unit in its name. A coordinator's configuration may give others.

import type { Rate } from "./rates.ts";

export const API_LIMITS = {
  /** A request's body. */
  bodyBytes: 1024 * 1024,
  /** The same of methods whose requests carry many things at once. */
  batchBytes: 8 * 1024 * 1024,
  headerBytes: 16 * 1024,
  /** A connection that has not sent a whole head by then is closed. */
  headerMs: 10_000,
  /** The same of a whole request. What a method waits for counts apart. */
  requestMs: 30_000,
  connections: 2_000,
  /** A connection of HTTP/2 over which nothing is asked is closed; Node does so with those of HTTP/1.1, and sooner. */
  http2IdleMs: 60_000,
  /** Requests at once over one connection of HTTP/2. */
  http2Streams: 100,
  /** When a reader leaves more of a stream unread the stream waits, and is cut when nothing of it moves for `stalledMs`. */
  unreadBytes: 256 * 1024,
  stalledMs: 30_000,
  /** A stream that has said nothing by then is opened; before, what refuses it is its status. */
  silentMs: 1000,
  /** Between two comments of a stream that has nothing to say. */
  heartbeatMs: 15_000,
  /** A stream asks so often whether its token is still good. */
  recheckMs: 4_000,
  /** Requests that are still answered when the API closes. */
  closeMs: 5_000,
  /** Of users and jobs. */
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
