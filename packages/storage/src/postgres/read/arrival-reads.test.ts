// ArrivalReads: the arrivals of many sessions, read at the same time.

import type { AgentStorage, Arrivals, Change } from "@holdfast/core";
import { afterEach, expect, test } from "vitest";
import type { PostgresStorage } from "../index.ts";
import { EmptiedSchema } from "../testing/emptied.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

const emptied = new EmptiedSchema();
let storage: PostgresStorage;

afterEach(() => storage.close());

const idOf = (n: number): string => `ses-${n}`;

/** Make this many sessions, each with two signals whose payloads name session and signal. */
async function openWith(sessions: number, payloadOf: (n: number, which: number) => string): Promise<void> {
  storage = await emptied.open();
  const all = Array.from({ length: sessions }, (_, n): Change[] => {
    const sessionId = idOf(n);
    const agent = { name: "agent", version: "1" };
    const rest = { agent, input: "1", seed: 1, flags: 0, format: 1 };
    return [
      { type: "create_session", sessionId, ...rest },
      ...[1, 2].map((which): Change => {
        const payload = JSON.stringify(payloadOf(n, which));
        return { type: "send_signal", sessionId, signalId: `sig-${which}`, name: "go", payload };
      }),
    ];
  });
  await storage.commit(all.flat(), 0);
}

function payloadsOf({ signals }: Arrivals): unknown[] {
  return signals.map(({ payload }) => JSON.parse(payload!) as unknown);
}

test("the reads of one turn are one statement, and each session is answered alone", async () => {
  await openWith(5, (n, which) => `${n}/${which}`);
  const before = storage.statementCount;
  const [all, later, twice, none, last] = await Promise.allSettled([
    storage.arrivals(idOf(0), 0),
    storage.arrivals(idOf(1), 1),
    storage.arrivals(idOf(1), 0),
    storage.arrivals("ses-none", 0),
    storage.arrivals(idOf(4), 2),
  ]);
  expect(storage.statementCount - before).toBe(1);
  expect(payloadsOf(valueOf(all))).toEqual(["0/1", "0/2"]);
  expect(payloadsOf(valueOf(later))).toEqual(["1/2"]);
  expect(payloadsOf(valueOf(twice))).toEqual(["1/1", "1/2"]);
  expect(none).toMatchObject({ status: "rejected", reason: { code: "session_not_found" } });
  expect(valueOf(last)).toEqual({ inbox: 2, signals: [], session: { status: "submitted" } });
});

test("a damaged row rejects only the read of its session, and large payloads go to the session that they belong to", async () => {
  await openWith(4, (n, which) => (n === 3 ? String(which).repeat(100_000) : `${n}`));
  const url = await sharedServerUrl();
  await runSql(url, `UPDATE ${emptied.schema}.signal SET payload = '"x"' WHERE session_id = 'ses-1'`);
  await runSql(url, `UPDATE ${emptied.schema}.state SET status = 'failed' WHERE session_id = 'ses-2'`);
  const [sound, signal, state, large] = await Promise.allSettled(
    [0, 1, 2, 3].map((n) => (storage as AgentStorage).arrivals(idOf(n), 0)),
  );
  expect(payloadsOf(valueOf(sound))).toEqual(["0", "0"]);
  expect(signal).toMatchObject({
    reason: { code: "corrupt_record", message: expect.stringContaining("signal, row ses-1/1") as string },
  });
  expect(state).toMatchObject({
    reason: { code: "corrupt_record", message: expect.stringContaining("state, row ses-2") as string },
  });
  expect(payloadsOf(valueOf(large))).toEqual(["1".repeat(100_000), "2".repeat(100_000)]);
});

function valueOf(settled: PromiseSettledResult<Arrivals> | undefined): Arrivals {
  if (settled?.status !== "fulfilled") throw new Error(`it was not answered: ${String(settled?.reason)}`);
  return settled.value;
}
