// Dispatch of sessions with a damaged row: no runner gets them, and they keep no other session from its
// runner.

import { CorruptRecordError, type AgentStorage, type StorageReader } from "@holdfast/core";
import { MemoryStorage, readerWith, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { creation, openDispatch } from "../testing/dispatch-stand.ts";
import { Registry } from "../store/registry.ts";
import { NO_MATCH_MS } from "./rules.ts";
import { SWEEP_MS, Unmatched } from "./unmatched.ts";

/** Its rows of this session are damaged. */
function damaged({ reader }: AgentStorage): { readonly reader: StorageReader } {
  const session: StorageReader["session"] = async (sessionId) => {
    return sessionId === "bad" ? refuse() : reader.session(sessionId);
  };
  return { reader: readerWith(reader, { session }) };
}

async function refuse(): Promise<never> {
  throw new CorruptRecordError("table session, row 1", "not what was written");
}

describe("claiming-2: a damaged session", () => {
  test("a damaged session that is due does not keep others from a runner", async () => {
    const { clock, poll, create } = await openDispatch({ changes: damaged });
    await create("bad");
    await create("good");
    const answer = poll("p1", 10_000);
    await clock.advance(10_000);
    expect((await answer).claims.map(({ sessionId }) => sessionId)).toEqual(["good"]);
  });

  test("a damaged session with an arrival does not keep others from a runner", async () => {
    const { clock, storage, poll, create } = await openDispatch({ changes: damaged });
    const answer = poll("p1", 10_000);
    await clock.advance(1);
    await create("bad");
    const send = { type: "request_cancel", sessionId: "bad", mode: "graceful", graceMs: 9_000 } as const;
    await storage.commit([send], clock.now());
    await create("good");
    await clock.advance(10_000);
    expect((await answer).claims.map(({ sessionId }) => sessionId)).toEqual(["good"]);
  });

  test.each(["row", "journal"])(
    "a damaged session that no runner fits does not keep others from ending: its %s is damaged",
    async (what) => {
      const [memory, clock] = [new MemoryStorage(), new TestClock()];
      const load = (sessionId: string) => (sessionId === "bad" ? refuse() : memory.load(sessionId));
      const storage = storageWith(memory, what === "row" ? damaged(memory) : { load });
      const registry = new Registry({ storage, clock });
      const unmatched = new Unmatched({ storage, clock, registry, isKept: async () => false });
      await memory.commit([creation("bad"), creation("good")], clock.now());
      for (let past = 0; past <= NO_MATCH_MS; past += SWEEP_MS) {
        await unmatched.sweep();
        await clock.advance(SWEEP_MS);
      }
      expect((await memory.reader.session("good"))?.status).toBe("failed");
    },
  );
});
