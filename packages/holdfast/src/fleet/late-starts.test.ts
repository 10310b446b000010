// H7: what starts a queued task hangs at a coordinator, and is applied when nobody wants it any more.

import { UnavailableError, type AgentStorage, type Change, type ChangeResult } from "@holdfast/core";
import { defineAgent, defineTask } from "@holdfast/runtime";
import { MemoryStorage, storageWith } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test, vi } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { outputOf, PATIENCE, sessionsOf, signal, sessionBecomes } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

const asks = defineAgent({ name: "asks", run: (ctx) => ctx.scheduleTask("work", null) });

test("a task is not done once more when the session went on with another attempt meanwhile", async () => {
  const hanging = hangingStorage();
  fleet = await openFleet(hanging);
  const { work, begun } = counted();
  const first = await fleet.runner({ agents: [asks], graceMs: 1 });
  const sessionId = await startSession(fleet, { agent: "asks" });
  await vi.waitFor(() => expect(hanging.late).not.toEqual([]), PATIENCE);
  await first.stop();

  hanging.resume();
  await fleet.runner({ agents: [asks] });
  await fleet.runner({ tasks: [work] });
  expect(await outputOf(fleet, sessionId)).toBe(2);
  await vi.waitFor(nothingIsLeft, PATIENCE);

  expect(new Set(await hanging.applyLate())).toEqual(new Set(["fenced"]));
  await nothingIsLeft();
  expect(begun).toEqual([2]);
});

test("a task is not done once more when its second start was answered, and its outcome committed", async () => {
  const hanging = hangingStorage();
  fleet = await openFleet(hanging);
  const { work, begun } = counted();
  await fleet.runner({ agents: [continuing] });
  await fleet.runner({ tasks: [work] });
  const sessionId = await startSession(fleet, { agent: "goes-on" });
  await vi.waitFor(() => expect(hanging.late).not.toEqual([]), PATIENCE);

  hanging.resume();
  await vi.waitFor(() => expect(begun).toEqual([1]), PATIENCE);
  await sessionBecomes(fleet, sessionId, { status: "waiting" });
  await vi.waitFor(nothingIsLeft, PATIENCE);

  // The same runner holds the session by the same claim.
  expect(new Set(await hanging.applyLate())).toEqual(new Set(["duplicate"]));
  await nothingIsLeft();
  await signal(fleet, sessionId, "end");
  expect(await outputOf(fleet, sessionId)).toBe(1);
  expect(begun).toEqual([1]);
});

test("a task is not done when it was withdrawn before its start was answered", async () => {
  const hanging = hangingStorage();
  fleet = await openFleet(hanging);
  const { work, begun } = counted();
  await fleet.runner({ agents: [withdraws] });
  const sessionId = await startSession(fleet, { agent: "withdraws" });
  await vi.waitFor(() => expect(hanging.late).not.toEqual([]), PATIENCE);
  await signal(fleet, sessionId, "withdraw");
  await vi.waitFor(async () => expect(await hasCheckpoint(sessionId)).toBe(true), PATIENCE);

  // It is made once more, to be taken back.
  hanging.resume();
  await vi.waitFor(() => expect(hanging.started).toBe(1), PATIENCE);
  await vi.waitFor(nothingIsLeft, PATIENCE);
  expect(new Set(await hanging.applyLate())).toEqual(new Set(["duplicate"]));
  await nothingIsLeft();
  await fleet.runner({ tasks: [work] });
  await signal(fleet, sessionId, "end");
  expect(await outputOf(fleet, sessionId)).toBe("withdrawn");
  expect(begun).toEqual([]);
});

test("a task that a session asks for otherwise when it starts over takes the place of the one before", async () => {
  fleet = await openFleet();
  let lives = 0;
  const asking = defineAgent({
    name: "asking",
    run: async (ctx) => ctx.scheduleTask("work", await ctx.run("life", () => ++lives)),
  });
  const first = await fleet.runner({ agents: [asking], graceMs: 1 });
  const sessionId = await startSession(fleet, { agent: "asking", persistence: "minimal" });
  await vi.waitFor(async () => expect(await sessionsOf(fleet!, "task:work")).toHaveLength(1), PATIENCE);
  await first.stop();

  await fleet.runner({ agents: [asking] });
  await vi.waitFor(() => expect(lives).toBe(2), PATIENCE);
  await fleet.runner({ tasks: [defineTask({ name: "work", run: (life: number) => life })] });
  expect(await outputOf(fleet, sessionId)).toBe(2);
  await vi.waitFor(nothingIsLeft, PATIENCE);
});

const continuing = defineAgent({
  name: "goes-on",
  run: async (ctx) => {
    const done = await ctx.scheduleTask("work", null);
    await ctx.waitForSignal("end");
    return done;
  },
});

const withdraws = defineAgent({
  name: "withdraws",
  run: async (ctx) => {
    if (ctx.state === undefined) {
      await ctx.race([ctx.scheduleTask("work", null), ctx.waitForSignal("withdraw")]);
      await ctx.checkpoint("done without", { openTasks: "cancel" });
    }
    await ctx.waitForSignal("end");
    return "withdrawn";
  },
});

function counted() {
  const begun: number[] = [];
  const run = (_: unknown, { attempt }: { readonly attempt: number }): number => {
    begun.push(attempt);
    return attempt;
  };
  return { work: defineTask({ name: "work", run }), begun };
}

async function nothingIsLeft(): Promise<void> {
  expect(await sessionsOf(fleet!, "task:work")).toEqual([]);
}

async function hasCheckpoint(sessionId: string): Promise<boolean> {
  const journal = await fleet!.storage.reader.journal(sessionId, 0, 100);
  return journal.some(({ type }) => type === "checkpoint");
}

/** A storage whose answers to starts of queued tasks are lost, and which applies them when it is told to. */
function hangingStorage() {
  const inner = new MemoryStorage();
  const late: Change[] = [];
  let isHanging = true;
  let started = 0;
  const storage: AgentStorage = storageWith(inner, {
    async commit(changes, now) {
      const starts = changes.filter(isTaskStart);
      if (!isHanging || starts.length === 0) {
        started += starts.length;
        return inner.commit(changes, now);
      }
      late.push(...starts);
      await inner.commit(
        changes.filter((change) => !isTaskStart(change)),
        now,
      );
      throw new UnavailableError("storage_unavailable", "the database was cut off");
    },
  });
  return {
    storage,
    late,
    get started() {
      return started;
    },
    resume: (): void => void (isHanging = false),
    async applyLate(): Promise<readonly ChangeResult["status"][]> {
      return (await inner.commit(late, Date.now())).map(({ status }) => status);
    },
  };
}

function isTaskStart(change: Change): boolean {
  const made = change.type === "audited" ? change.change : undefined;
  return made?.type === "create_session" && made.agent.name === "task:work";
}
