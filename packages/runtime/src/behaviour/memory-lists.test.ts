// memory-rows-6: a list of sessions reads only the sessions that it answers, however many others there are.

import type { Session, StorageReader } from "@holdfast/core";
import { expect, test } from "vitest";
import { MemoryStorage } from "../memory/memory-storage.ts";

const OTHERS = 1_000;

/** A storage with a few sessions before many others, and a count of how often any session's agent is read. */
async function filled(): Promise<{ readonly storage: MemoryStorage; readonly reads: () => number }> {
  const storage = new MemoryStorage();
  let reads = 0;
  const importing = async (sessionId: string, agent: string, owner: string, status: Session["status"]) => {
    const session: Session = {
      sessionId,
      get agent() {
        reads++;
        return { name: agent, version: "1" };
      },
      input: "1",
      status,
      waits: [],
      nextSeq: 0,
      entryCount: 0,
      turn: 0,
      inbox: 0,
      depth: 0,
      children: 0,
      payers: [],
      seed: 1,
      flags: 0,
      format: 1,
      createdAt: 1,
      updatedAt: 1,
      placement: { owner },
      ...(status === "failed"
        ? { error: { name: "TaskFailedError", code: "task_failed", message: "it failed" }, endedAt: 1 }
        : {}),
      ...(status === "completed" ? { output: "1", endedAt: 1 } : {}),
    };
    const change = { type: "import_session", sessionId, session, records: [], entries: [] } as const;
    expect(await storage.commit([change], 1)).toEqual([{ status: "created" }]);
  };
  for (const n of [1, 2, 3]) await importing(`ses-${n}`, "reviewer", "anna", "failed");
  for (let n = 0; n < OTHERS; n++) await importing(`other-${n}`, "writer", "ben", "completed");
  return { storage, reads: () => reads };
}

test.each<Partial<Parameters<StorageReader["sessions"]>[0]>>([
  { status: "failed" },
  { agent: "reviewer" },
  { owner: "anna" },
  { status: "failed", agent: "reviewer" },
  { status: "failed", owner: "anna", before: "ses-3" },
])("a page of the few sessions by %o reads none of the many others", async (query) => {
  const { storage, reads } = await filled();
  const before = reads();
  const page = await storage.reader.sessions({ limit: 10, ...query });
  expect(reads() - before).toBeLessThan(20);
  const ids = page.map(({ sessionId }) => sessionId);
  expect(ids).toEqual(query.before === undefined ? ["ses-3", "ses-2", "ses-1"] : ["ses-2", "ses-1"]);
});
