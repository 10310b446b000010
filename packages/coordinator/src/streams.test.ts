// V2: readers of event streams that do not read, beside those that do. Real sockets, and a coordinator as it is.

import { JOURNAL_FORMAT, type Change, type JournalRecord } from "@holdfast/core";
import { EventReader } from "@holdfast/testkit/event-reader";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openFleet, type Fleet } from "./testing/fleet.ts";

const HEALTHY = 5;
const RECORDS = 64;
/** Of all records together many times what two kernels hold for a socket. */
const RECORD_CHARS = 400_000;
const LIVE_EVENTS = 30;
const PATIENCE = { timeout: 20_000 };

describe("V2: a reader that stops reading", () => {
  let fleet: Fleet;
  /** Records of the long session that were read for its reader. */
  let made: number;

  beforeEach(async () => {
    fleet = await openFleet({ config: { limits: { stalledMs: 300 } } });
    await create("ses_long");
    await create("ses_live");
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

  test("has at most what it may leave unread made for it, is cut off, and goes on from there without a gap", async () => {
    const stuck = readerOf("ses_long");
    stuck.pause();
    const cut = stuck.read();
    await expect.poll(openStreams, PATIENCE).toBe(1);
    await expect.poll(openStreams, PATIENCE).toBe(0); // The coordinator has let go of it.
    expect(made).toBeLessThan(RECORDS);
    stuck.resume();
    expect(await cut).toBe("cut"); // Never an end: the rest is still to come.
    expect(stuck.records.length).toBeLessThan(RECORDS);

    const rest = stuck.read();
    await expect.poll(() => stuck.records.length, PATIENCE).toBe(RECORDS);
    stuck.cut();
    await rest;
    const journal = await fleet.storage.reader.journal("ses_long", 0, RECORDS);
    expect(stuck.records).toEqual(journal.map((record) => JSON.stringify(record)));
  });

  test("slows nobody: whoever reads is told everything while it is stuck", async () => {
    await fleet.close();
    fleet = await openFleet({ storage: fleet.storage, seed: 2 }); // It is not cut while this goes on.
    const stuck = readerOf("ses_long");
    stuck.pause();
    const reading = [stuck.read()];
    await expect.poll(openStreams, PATIENCE).toBe(1);
    const healthy = Array.from({ length: HEALTHY }, () => readerOf("ses_live"));
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

  function readerOf(sessionId: string): EventReader {
    return new EventReader({ url: fleet.url, token: fleet.admin.token, sessionId });
  }

  /** As its metrics say. */
  async function openStreams(): Promise<number> {
    const response = await fetch(`${fleet.url}/metrics`, {
      headers: { authorization: `Bearer ${fleet.admin.token}` },
    });
    return Number(/^holdfast_streams (\d+)$/m.exec(await response.text())?.[1]);
  }

  async function create(sessionId: string): Promise<void> {
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
    expect(await fleet.storage.commit([change], 1)).toEqual([
      { status: "created", token: expect.any(Number) },
    ]);
  }

  function batch(sessionId: string, firstSeq: number, count: number, message: string): Change {
    const records = Array.from({ length: count }, (_, i): JournalRecord => ({
      type: "warned",
      seq: firstSeq + i,
      at: 1,
      payload: JSON.stringify(message),
    }));
    // Each is the only claim of its session, in the order they were made.
    const token = sessionId === "ses_long" ? 1 : 2;
    return { type: "commit_batch", sessionId, token, firstSeq, records, entries: [], consumed: [] };
  }
});
