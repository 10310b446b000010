// Closing a runtime while a handler that has read its abort signal does not settle.

import type { TraceEvent } from "@holdfast/core";
import { countingRandom, gate, TestClock, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const ID = "ses-1";

/** An agent whose first task looks at its abort signal and settles when the gate opens. */
function stubborn() {
  const settle = gate();
  const began: number[] = [];
  const agent = defineAgent({
    name: "stubborn",
    run: (ctx) =>
      ctx.run("deploy", async ({ signal, attempt }) => {
        began.push(attempt);
        if (attempt > 1) return "done";
        expect(signal.aborted).toBe(false);
        await settle.opened;
        return "late";
      }),
  });
  return { agent, settle, began };
}

function open(storage: MemoryStorage, clock: TestClock, owner: string, events: TraceEvent[] = []): Runtime {
  const tracer = { trace: (event: TraceEvent) => void events.push(event) };
  return createRuntime({
    storage,
    clock,
    random: countingRandom(),
    development: false,
    adopt: false,
    owner,
    tracer,
  });
}

test("a runtime that is closed waits for a handler no longer than the grace, and names its task in a warning", async () => {
  const [storage, clock, events] = [new MemoryStorage(), new TestClock(), [] as TraceEvent[]];
  const { agent, began, settle } = stubborn();
  const runtime = open(storage, clock, "first", events);
  await runtime.start(agent, undefined, { sessionId: ID });
  await until(() => began.length === 1, "the task has begun");
  let isClosed = false;
  const closing = runtime.close({ graceMs: 200 }).then(() => (isClosed = true));
  await clock.advance(199);
  expect(isClosed).toBe(false);
  await clock.advance(1);
  await clock.advance(1_500); // The aborted handler has this long.
  await closing;
  expect(events.filter(({ type }) => type === "warned")).toMatchObject([
    { sessionId: ID, message: expect.stringContaining('"deploy"') },
  ]);
  settle.open();
});

test("a session does not run in the same process until its abandoned handler has settled", async () => {
  const [storage, clock] = [new MemoryStorage(), new TestClock()];
  const { agent, began, settle } = stubborn();
  const first = open(storage, clock, "first");
  await first.start(agent, undefined, { sessionId: ID });
  await until(() => began.length === 1, "the task has begun");
  await Promise.all([first.close({ graceMs: 0 }), clock.advance(1_500)]);

  const second = open(storage, clock, "second");
  await expect(second.start(agent, undefined, { sessionId: "ses-2" })).resolves.toBeDefined();
  await expect(second.resume(ID)).rejects.toMatchObject({ code: "session_claimed" });
  await until(() => began.length === 2, "the task of the other session has begun");
  settle.open();
  await until(
    async () =>
      second.resume(ID).then(
        () => true,
        () => false,
      ),
    "the session is released",
  );
  expect(await second.handle(ID).result()).toBe("done");
  await second.close();
});

test("an invalid grace is refused", async () => {
  const runtime = open(new MemoryStorage(), new TestClock(), "first");
  await expect(runtime.close({ graceMs: -1 })).rejects.toMatchObject({ code: "usage" });
  await runtime.close();
});
