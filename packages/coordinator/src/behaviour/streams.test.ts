// V2: readers of event streams that do not read, beside those that do. Real sockets, and a coordinator as it
// is.

import { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { JOURNAL_FORMAT, type Arrival, type Change, type Clock, type JournalRecord } from "@holdfast/core";
import { EventReader } from "@holdfast/testkit/event-reader";
import { gate, MemoryStorage, readerWith, storageWith, systemClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openFleet, type Fleet } from "../testing/fleet.ts";

const HEALTHY = 5;
const RECORDS = 64;
/** All records together are many times larger than the buffers of two kernels for a socket. */
const RECORD_CHARS = 400_000;
const LIVE_EVENTS = 30;
const STUCK = 4;
const MIB = 1024 * 1024;
const PATIENCE = { timeout: 20_000 };

describe("V2: a reader that stops reading", () => {
  let fleet: Fleet;
  /** Records of the long session that were read for its reader. */
  let made: number;

  beforeEach(async () => {
    fleet = await openFleet({ config: { limits: { stalledMs: 2_000 } } });
    await create(fleet, "ses_long");
    await create(fleet, "ses_live");
    await fleet.storage.commit([batch("ses_long", 0, RECORDS, "x".repeat(RECORD_CHARS))], 1);
    made = 0;
    const { reader } = fleet.storage;
    const journal = reader.journal.bind(reader);
    vi.spyOn(reader, "journal").mockImplementation(async (sessionId, fromSeq, limit) => {
      const page = await journal(sessionId, fromSeq, limit);
      if (sessionId === "ses_long") made += page.length;
      return page;
    });
  });
  afterEach(() => fleet.close());

  test("a stuck reader is cut off after a limited number of events, and continues from there without a gap", async () => {
    const stuck = readerOf(fleet, "ses_long");
    stuck.pause();
    const cut = stuck.read();
    // The stream may be over before the test looks. The events that were made for it stay counted.
    await expect.poll(() => made, PATIENCE).toBeGreaterThan(0);
    await expect.poll(openStreams, PATIENCE).toBe(0); // The coordinator has cut the stream.
    expect(made).toBeLessThan(RECORDS);
    stuck.resume();
    expect(await cut).toBe("cut"); // A cut is no end: more events follow.
    expect(stuck.records.length).toBeLessThan(RECORDS);

    const rest = stuck.read();
    await expect.poll(() => stuck.records.length, PATIENCE).toBe(RECORDS);
    stuck.cut();
    await rest;
    const journal = await fleet.storage.reader.journal("ses_long", 0, RECORDS);
    expect(stuck.records).toEqual(journal.map((record) => JSON.stringify(record)));
  });

  test("a stuck reader does not slow other readers, which get everything meanwhile", async () => {
    await fleet.close();
    fleet = await openFleet({ storage: fleet.storage, seed: 2 }); // The stuck reader is not cut in this test.
    const stuck = readerOf(fleet, "ses_long");
    stuck.pause();
    const reading = [stuck.read()];
    await expect.poll(openStreams, PATIENCE).toBe(1);
    const healthy = Array.from({ length: HEALTHY }, () => readerOf(fleet, "ses_live"));
    for (const reader of healthy) reading.push(reader.read());
    for (let seq = 0; seq < LIVE_EVENTS; seq++) {
      await fleet.admin.commit(batch("ses_live", seq, 1, "now"));
      for (const reader of healthy)
        await expect.poll(() => reader.records.length, { ...PATIENCE, interval: 1 }).toBe(seq + 1);
    }
    expect(await openStreams()).toBe(HEALTHY + 1);
    for (const reader of [stuck, ...healthy]) reader.cut();
    await Promise.all(reading);
  });

  /** As its metrics say. */
  async function openStreams(): Promise<number> {
    const response = await fetch(`${fleet.url}/metrics`, {
      headers: { authorization: `Bearer ${fleet.admin.token}` },
    });
    return Number(/^holdfast_streams (\d+)$/m.exec(await response.text())?.[1]);
  }
});

describe("V2: a reader that stops reading costs the memory of one event, or 1 MiB", () => {
  afterEach(() => void vi.restoreAllMocks());

  // Measures the reachable memory when the first stream is cut, while all of them are stuck.
  it.each([
    { char: "x", chars: 2_000_000, records: 8 },
    { char: "中", chars: 40_000, records: 140 },
  ])(
    "the memory stays within its limit for $records records of $chars $char",
    ofCampaign,
    async ({ char, chars, records }) => {
      const fleet = await openFleet({ config: { limits: { stalledMs: 300 } } });
      await create(fleet, "ses_long");
      const text = Buffer.alloc(chars * Buffer.byteLength(char), char).toString();
      await fleet.storage.commit([batch("ses_long", 0, records, text)], 1);
      const before = reachable();
      const atCut: number[] = [];
      const { destroy } = ServerResponse.prototype;
      vi.spyOn(ServerResponse.prototype, "destroy").mockImplementation(function (this: ServerResponse) {
        atCut.push(reachable());
        return destroy.call(this);
      });
      const stuck = Array.from({ length: STUCK }, () => readerOf(fleet, "ses_long"));
      const over = stuck.map((reader) => {
        reader.pause();
        return reader.read();
      });
      await expect.poll(() => atCut.length, PATIENCE).toBe(STUCK);
      const eventBytes = Buffer.byteLength(text);
      expect((atCut[0]! - before) / STUCK).toBeLessThan(Math.max(MIB, 1.5 * eventBytes));
      for (const reader of stuck) reader.resume();
      expect(new Set(await Promise.all(over))).toEqual(new Set(["cut"]));
      await fleet.close();
    },
  );
});

function readerOf(fleet: Fleet, sessionId: string): EventReader {
  return new EventReader({ url: fleet.url, token: fleet.admin.token, sessionId });
}

async function create(fleet: Fleet, sessionId: string): Promise<void> {
  const change: Change = {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input: undefined,
    seed: 1,
    flags: 0,
    format: JOURNAL_FORMAT,
    claimFor: { owner: "test", leaseMs: 3_600_000 },
  };
  expect(await fleet.storage.commit([change], 1)).toEqual([{ status: "created", token: expect.any(Number) }]);
}

function batch(sessionId: string, firstSeq: number, count: number, message: string): Change {
  const records = Array.from({ length: count }, (_, i): JournalRecord => ({
    type: "warned",
    seq: firstSeq + i,
    at: 1,
    payload: JSON.stringify(message),
  }));
  // Each is the only claim of its session, in the order they were made.
  const token = sessionId === "ses_live" ? 2 : 1;
  return { type: "commit_batch", sessionId, token, firstSeq, records, entries: [], consumed: [] };
}
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes that are not garbage, buffers included. */
function reachable(): number {
  collect();
  collect(); // Buffers are let go of beside the program, before the next one.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// The listener counts the time on, a little slower than the clocks, and schedules deadlines by it.
test("S3: a listener for arrivals is sent the time repeatedly", async () => {
  const clock: Clock = {
    ...systemClock,
    setTimer: (callback, ms, isIdle) => systemClock.setTimer(callback, ms === 10_000 ? 10 : ms, isIdle),
  };
  const fleet = await openFleet({ clock });
  const over = new AbortController();
  try {
    const { body } = await fetch(`${fleet.url}/v1/storage/subscribe`, {
      headers: { authorization: `Bearer ${fleet.admin.token}`, accept: "text/event-stream" },
      signal: over.signal,
    });
    let received = "";
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      received += chunk;
      if (received.split('"now"').length > 3) break;
    }
    expect(received).not.toMatch(/"sessionId":"[^"]/);
  } finally {
    over.abort();
    await fleet.close();
  }
});

// A slow reader would otherwise keep one notice in memory for each arrival.
test("V2: repeated arrivals for one session are sent as one notice", async () => {
  const listeners: ((arrival: Arrival) => void)[] = [];
  const subscribe = (listener: (arrival: Arrival) => void) => (listeners.push(listener), () => {});
  const fleet = await openFleet({ storage: storageWith(new MemoryStorage(), { subscribe }) });
  const over = new AbortController();
  const arrive = (sessionId: string, awaited: boolean): void => {
    for (const listener of listeners) listener({ sessionId, awaited });
  };
  try {
    await create(fleet, "ses_often");
    await create(fleet, "ses_last");
    const { body } = await fetch(`${fleet.url}/v1/storage/subscribe`, {
      headers: { authorization: `Bearer ${fleet.admin.token}`, accept: "text/event-stream" },
      signal: over.signal,
    });
    let received = "";
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      if (received === "") {
        for (let i = 0; i < 100; i++) arrive("ses_often", i === 50);
        arrive("ses_last", false);
      }
      received += chunk;
      if (received.includes("ses_last")) break;
    }
    expect(received.match(/"sessionId":"ses_often".*/g)).toEqual(['"sessionId":"ses_often","awaited":true}']);
  } finally {
    over.abort();
    await fleet.close();
  }
});

test("a wait for a result ends if its caller had gone before the token was checked", async () => {
  const memory = new MemoryStorage();
  const known = await openFleet({ storage: memory });
  const sessionId = await known.admin.start();
  await known.close();
  const lookedUp = gate();
  let isSlow = false;
  const followed = { ever: 0, now: 0 };
  const storage = storageWith(memory, {
    reader: readerWith(memory.reader, {
      async document(collection, id) {
        if (isSlow) await lookedUp.opened;
        return memory.reader.document(collection, id);
      },
    }),
    follow(id, onNotice) {
      followed.ever++;
      followed.now++;
      const leave = memory.follow(id, onNotice);
      return () => {
        followed.now--;
        leave();
      };
    },
  });
  const fleet = await openFleet({ storage, seed: 2 });
  isSlow = true;
  const asking = new AbortController();
  const headers = { authorization: `Bearer ${known.admin.token}` };
  const result = `${fleet.url}/v1/sessions/${sessionId}/result?waitMs=20000`;
  const asked = fetch(result, { headers, signal: asking.signal });
  await delay(50);
  asking.abort();
  await expect(asked).rejects.toThrow("aborted");
  await delay(50);
  lookedUp.open();
  await expect.poll(() => followed, { ...PATIENCE, timeout: 5_000 }).toEqual({ ever: 1, now: 0 });
  await fleet.close();
});
