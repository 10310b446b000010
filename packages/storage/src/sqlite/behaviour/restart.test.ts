// The session's row is written seldom; what it lacks is in the journal, the entries and the signals. After a
// restart nobody may see a difference.

import type { Change, CommitBatch } from "@holdfast/core";
import { expect, test } from "vitest";
import { ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

const creating: Change = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};

function signalling(signalId: string): Change {
  return { type: "send_signal", sessionId: "ses-1", signalId, name: "go", payload: '"x"' };
}

function consuming(token: number, firstSeq: number, signalId: string): CommitBatch {
  const records = [{ type: "signal_received", seq: firstSeq, at: 1, wait: 0, signalId }] as const;
  return {
    type: "commit_batch",
    sessionId: "ses-1",
    token,
    firstSeq,
    records,
    entries: [],
    consumed: [signalId],
  };
}

// A signal's number is the inbox of its moment. Its row goes when it is consumed; a number must not come
// twice.
test("ST12: the inbox does not go back when the signals that raised it were consumed by plain steps", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit([creating, signalling("sig-1"), signalling("sig-2")], 1);
  const { token } = (await storage.claim({ sessionId: "ses-1", owner: "me", now: 1, leaseMs: Infinity })) as {
    token: number;
  };
  const committed = { status: "committed", inbox: 2 };
  expect(await storage.commit([consuming(token, 0, "sig-1"), consuming(token, 1, "sig-2")], 2)).toEqual([
    committed,
    committed,
  ]);
  const before = await storage.reader.session("ses-1");
  await storage.close();

  const again = await ownSqliteStorage({ path });
  expect(await again.reader.session("ses-1")).toEqual(before);
  expect(await again.arrivals("ses-1", 0)).toMatchObject({ inbox: 2, signals: [] });
  expect(await again.commit([signalling("sig-3")], 3)).toEqual([
    { status: "stored", order: 3, awaited: true },
  ]);
  await again.close();
});

test("ST14: a session of plain steps only is read back to the last of them", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit([creating], 1);
  const { token } = (await storage.claim({ sessionId: "ses-1", owner: "me", now: 1, leaseMs: Infinity })) as {
    token: number;
  };
  for (let seq = 0; seq < 20; seq++) {
    const records = [{ type: "append_entry", seq, id: seq, role: "user", hash: "h" }] as const;
    const entries = [{ id: seq, index: seq, role: "user", turn: 0, content: `"${seq}"` }];
    const step: Change = {
      type: "commit_batch",
      sessionId: "ses-1",
      token,
      firstSeq: seq,
      records,
      entries,
      consumed: [],
    };
    expect(await storage.commit([step], 10 + seq)).toMatchObject([{ status: "committed" }]);
  }
  const before = await storage.load("ses-1");
  await storage.close();

  const again = await ownSqliteStorage({ path });
  expect(await again.load("ses-1")).toEqual(before);
  expect(await again.reader.session("ses-1")).toMatchObject({ nextSeq: 20, entryCount: 20, updatedAt: 29 });
  expect(await again.conversation("ses-1", 19)).toHaveLength(1);
  await again.close();
});
