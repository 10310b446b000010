// Sessions that a newer Holdfast began in a shared storage, with an unknown journal format or behaviour flag.

import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT, type CreateSession } from "@holdfast/core";
import { journalOf, recordingTracer, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { replaySession } from "../requests/replay-session.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const listener = defineAgent({ name: "listener", run: async (ctx) => ctx.waitForSignal("go") });
const CREATION = {
  type: "create_session",
  sessionId: "s",
  agent: { name: listener.name, version: listener.version },
  input: undefined,
  seed: 1,
  flags: BEHAVIOUR_FLAGS,
  format: JOURNAL_FORMAT,
} as const satisfies CreateSession;

describe.each([
  ["a behaviour flag", { flags: BEHAVIOUR_FLAGS + 1 }],
  ["a journal format", { format: JOURNAL_FORMAT + 1 }],
])("a session with %s that is not known", (_, newer) => {
  /** The session has something to do, and no process runs it. */
  async function world() {
    const storage = new MemoryStorage();
    await storage.commit([{ ...CREATION, ...newer }], 0);
    const tracer = recordingTracer();
    const clock = new TestClock();
    const runtime = createRuntime({ storage, agents: [listener], clock, tracer, development: false });
    opened.push(runtime);
    const stored = async () => ({
      session: await storage.reader.session("s"),
      journal: await journalOf(storage, "s"),
      due: await storage.due({ now: 0, limit: 9 }),
    });
    return { storage, runtime, tracer, stored, before: await stored() };
  }

  const REFUSED = {
    code: "version_unsupported",
    message: "session s was begun by a newer Holdfast",
    expected: `journal format ${JOURNAL_FORMAT} or older, behaviour flags up to ${BEHAVIOUR_FLAGS}`,
    fix: expect.stringContaining("newer Holdfast") as string,
  };

  test("the session is refused by name when it is resumed or started again, and stays as it was", async () => {
    const { runtime, stored, before } = await world();
    await expect(runtime.resume("s")).rejects.toMatchObject(REFUSED);
    await expect(runtime.start(listener, undefined, { sessionId: "s" })).rejects.toMatchObject(REFUSED);
    expect(await stored()).toEqual(before);
  });

  test("the session is left to a newer process when it is found due, with a warning", async () => {
    const { storage, runtime, tracer, stored, before } = await world();
    expect(await runtime.recover()).toEqual([]);
    expect(await stored()).toEqual(before);
    expect(tracer.events).toContainEqual(
      expect.objectContaining({ type: "warned", sessionId: "s", message: REFUSED.message }),
    );
    const claim = { sessionId: "s", owner: "newer", now: 0, leaseMs: Infinity };
    expect(await storage.claim(claim)).toMatchObject({ status: "claimed", losses: 0 });
  });

  test("the session keeps a signal that arrives here for a newer process", async () => {
    const { storage, runtime } = await world();
    await runtime.signal("s", "go", 1);
    await turns(20);
    expect((await storage.reader.session("s"))?.status).toBe("submitted");
    expect(await storage.reader.pendingSignals("s")).toMatchObject([{ name: "go", payload: "1" }]);
  });

  test("the session stays paused when a person resumes it here", async () => {
    const { storage, runtime, stored } = await world();
    await storage.commit([{ type: "pause_session", sessionId: "s" }], 0);
    const before = await stored();
    expect(before.session?.status).toBe("paused");
    await expect(runtime.resume("s")).rejects.toMatchObject(REFUSED);
    expect(await stored()).toEqual(before);
  });

  test("the session is neither forked nor replayed", async () => {
    const { storage, runtime, before } = await world();
    await expect(runtime.fork("s", { sessionId: "fork" })).rejects.toMatchObject(REFUSED);
    expect(await storage.reader.session("fork")).toBeUndefined();
    const replay = { agent: listener, session: before.session!, records: before.journal, onStep: () => {} };
    await expect(replaySession(replay)).rejects.toMatchObject(REFUSED);
  });
});
