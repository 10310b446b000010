// The form in which a group is sent (write-statement-5). The conformance suite tests the effects of both
// forms.

import type { Change } from "@holdfast/core";
import { expect, onTestFinished, test, vi } from "vitest";
import { Database } from "../database/database.ts";
import { EmptiedSchema } from "../testing/emptied.ts";

const AGENT = { name: "agent", version: "1" };
const [A, B] = ["ses-a", "ses-b"] as const;

function creating(sessionId: string, agent = AGENT): Change {
  const claimFor = { owner: "owner", leaseMs: Infinity };
  return {
    type: "create_session",
    sessionId,
    agent,
    input: "1",
    seed: 1,
    flags: 0,
    format: 1,
    claimFor,
  };
}

function step(sessionId: string, token: number, seq: number): Change {
  const records = [{ type: "warned", seq, at: 1, payload: '"x"' }] as const;
  return { type: "commit_batch", sessionId, token, firstSeq: seq, records, entries: [], consumed: [] };
}

test("a step of one session is a statement of plain values, and the steps of several sessions are a statement of arrays", async () => {
  const storage = await new EmptiedSchema().open({ notices: false });
  onTestFinished(() => storage.close());
  const created = await storage.commit([creating(A), creating(B)], 1);
  const [a, b] = created.map((result) => (result as { readonly token: number }).token);
  const run = vi.spyOn(Database.prototype, "run");
  onTestFinished(() => run.mockRestore());
  const written = async (...changes: Change[]): Promise<string[]> => {
    run.mockClear();
    const results = await storage.commit(changes, 2);
    expect(results.map(({ status }) => status)).toEqual(changes.map(() => "committed"));
    return run.mock.calls.map(([{ text }]) => text).filter((text) => text.includes("INSERT INTO journal"));
  };

  const alone = await written(step(A, a!, 0));
  expect(alone).toEqual([expect.stringContaining("(VALUES ($")]);
  expect(alone[0]).not.toMatch(/unnest|FOR UPDATE|FROM ok/);
  const together = await written(step(A, a!, 1), step(B, b!, 0));
  expect(together).toEqual([expect.stringContaining("unnest($")]);
});

test("sessions that are created together, alike and different, are read as they were created", async () => {
  const storage = await new EmptiedSchema().open({ notices: false });
  onTestFinished(() => storage.close());
  const other: Change = {
    ...creating("ses-d", { name: "other", version: "2" }),
    claimFor: undefined,
  } as never;
  await storage.commit([creating(A), creating(B)], 1);
  await storage.commit([creating("ses-c"), other], 2);
  for (const [sessionId, name, isDue] of [
    [A, "agent", false],
    [B, "agent", false],
    ["ses-c", "agent", false],
    ["ses-d", "other", true],
  ] as const) {
    const snapshot = await storage.load(sessionId);
    expect(snapshot?.session).toMatchObject({ sessionId, agent: { name } });
    const { sessionIds } = await storage.due({ now: 3, limit: 10 });
    expect(sessionIds.includes(sessionId)).toBe(isDue);
  }
  const held = await storage.reader.sessions({ limit: 10, agent: "agent" });
  expect(held.map(({ sessionId }) => sessionId).sort()).toEqual([A, B, "ses-c"]);
});
