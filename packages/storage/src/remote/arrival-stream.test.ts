// The stream alone: what is held without a word, by a network or by something in between, is opened again.

import type { Arrival } from "@holdfast/core";
import { fakeableTimers } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ArrivalStream } from "./arrival-stream.ts";

const OPEN_MS = 5_000;
const ARRIVAL: Arrival = { sessionId: "held", awaited: true };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The streams that were opened, which a test makes say something. A stream ends only when it is given up. */
function open() {
  const streams: { readonly say: (arrival?: Arrival) => void; readonly signal: AbortSignal }[] = [];
  const stream = new ArrivalStream({
    openMs: OPEN_MS,
    held: () => ["held"],
    ...fakeableTimers,
    async *open(signal, onReceived) {
      const said: (Arrival | undefined)[] = [];
      let wake = (): void => {};
      signal.addEventListener("abort", () => wake());
      const say = (arrival?: Arrival): void => {
        said.push(arrival);
        wake();
      };
      streams.push({ signal, say });
      while (!signal.aborted) {
        for (const each of said.splice(0)) {
          onReceived();
          if (each !== undefined) yield each;
        }
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  });
  const received: Arrival[] = [];
  stream.subscribe((arrival) => void received.push(arrival));
  return { stream, streams, received };
}

test("arrival-stream-3: a stream that does not begin delays callers no longer than a call may take, and is opened again", async () => {
  const { stream, streams, received } = open();
  let isReady = false;
  void stream.ready?.then(() => (isReady = true));
  await vi.advanceTimersByTimeAsync(OPEN_MS - 1);
  expect(isReady).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isReady).toBe(true);
  expect(streams.map(({ signal }) => signal.aborted)).toEqual([true, false]);
  streams[1]?.say();
  await vi.advanceTimersByTimeAsync(0);
  expect(received).toEqual([{ sessionId: "held", awaited: false }]); // arrival-stream-2.
  await stream.close();
  expect(vi.getTimerCount()).toBe(0);
});

test("arrival-stream-3: a silent stream is opened again, and a stream that only tells the time is not silent", async () => {
  const { stream, streams, received } = open();
  for (let i = 0; i < 12; i++) {
    streams[0]?.say();
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(streams).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(21_000);
  expect(streams).toHaveLength(2);
  streams[1]?.say();
  streams[1]?.say(ARRIVAL);
  await vi.advanceTimersByTimeAsync(0);
  expect(received).toEqual([{ sessionId: "held", awaited: false }, ARRIVAL]);
  await stream.close();
  expect(vi.getTimerCount()).toBe(0);
});
