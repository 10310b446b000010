import { MemoryStorage, createRuntime, defineAgent } from "@holdfast/runtime";
import { storageWith, type AgentStorage } from "@holdfast/core";
import { expect, test, vi } from "vitest";
import { JournalTail, type JournalEvent } from "./journal-events.ts";

const talker = defineAgent<number>({
  name: "talker",
  run: async (ctx, turns) => {
    for (let turn = 0; turn < turns; turn++) {
      ctx.appendEntry({ role: "assistant", content: `turn ${turn}` });
      await ctx.run("step", () => ({ turn }));
    }
    return "done";
  },
});

/** A storage that counts what is read of it. */
function counting(storage: AgentStorage): { storage: AgentStorage; reads: string[] } {
  const reads: string[] = [];
  const { reader } = storage;
  const counted = {
    ...reader,
    session: (id: string) => reader.session(id),
    journal: (...asked: Parameters<typeof reader.journal>) => {
      reads.push("journal");
      return reader.journal(...asked);
    },
    entries: (...asked: Parameters<typeof reader.entries>) => {
      reads.push("entries");
      return reader.entries(...asked);
    },
  };
  return { storage: storageWith(storage, { reader: counted }), reads };
}

test("a tail that watches its process shows what another tail reads, and reads nothing after the first time", async () => {
  const { storage, reads } = counting(new MemoryStorage());
  const sessionId = "ses_00000000-0000-7000-8000-000000000001";
  const tail = new JournalTail(storage.reader, sessionId);
  const shown: JournalEvent[] = [];
  let line = Promise.resolve();
  const readsAt: number[] = [];
  const runtime = createRuntime({
    storage: tail.watch(storage),
    agents: [talker],
    tracer: {
      trace: (event) => {
        if (event.type !== "committed") return;
        line = line
          .then(() => tail.advance((each) => void shown.push(each)))
          .then(() => void readsAt.push(reads.length));
      },
    },
  });
  await (await runtime.start(talker, 20, { sessionId })).result();
  await runtime.close();
  await line;
  tail.unwatch();
  await tail.advance((each) => void shown.push(each));
  const all: JournalEvent[] = [];
  await new JournalTail(storage.reader, sessionId).advance((each) => void all.push(each));
  expect(shown).toEqual(all);
  expect(all.length).toBeGreaterThan(60);
  expect(readsAt.length).toBeGreaterThan(10);
  expect(readsAt.at(-1)).toBe(readsAt[0]);
});

test("a tail shows once what its process and another one commit in turns", async () => {
  const pausing = defineAgent<number>({
    name: "pausing",
    run: async (ctx, turns) => {
      for (let turn = 0; turn < turns; turn++) {
        await ctx.waitForSignal("go");
        await ctx.run("step", () => turn);
      }
    },
  });
  const { storage } = counting(new MemoryStorage());
  const sessionId = "ses_00000000-0000-7000-8000-000000000002";
  const tail = new JournalTail(storage.reader, sessionId);
  const watched = tail.watch(storage);
  const shown: JournalEvent[] = [];
  const turns = 6;
  for (let turn = 0; turn < turns; turn++) {
    const runtime = createRuntime({ storage: turn % 2 === 0 ? watched : storage, agents: [pausing] });
    if (turn === 0) await runtime.start(pausing, turns, { sessionId });
    await runtime.signal(sessionId, "go");
    await vi.waitFor(async () => {
      const journal = await storage.reader.journal(sessionId, 0, 1_000);
      expect(journal.filter(({ type }) => type === "task_completed")).toHaveLength(turn + 1);
    });
    await runtime.close();
    if (turn !== 2 && turn !== 3) await tail.advance((each) => void shown.push(each));
  }
  tail.unwatch();
  await tail.advance((each) => void shown.push(each));
  const all: JournalEvent[] = [];
  await new JournalTail(storage.reader, sessionId).advance((each) => void all.push(each));
  expect(shown).toEqual(all);
});
