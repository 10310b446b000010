// Content above the coordinator's limit: a session that is pushed, an output of a task.

import {
  createRuntime,
  defineAgent,
  defineTask,
  MemoryStorage,
  moveSession,
  type Agent,
} from "@holdfast/runtime";
import { afterEach, expect, test } from "vitest";
import { LIMITS, MIB } from "@holdfast/core";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { outputOf, PATIENCE, sessionsOf, sessionBecomes } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
/** A coordinator that takes less than a process records. */
const SMALL = { config: { limits: { batchBytes: 8 * MIB } } };
afterEach(() => fleet.close());

// In a character of UTF-8 are up to three bytes, and the output of an agent is stored beside that of its step.
test.each(sampled([["漢", 1] as const, ["x", 2] as const]))(
  "the largest output of %s that a process records is recorded on a runner, %i times at once",
  async (character, times) => {
    fleet = await openFleet();
    const length = LIMITS.payloadChars - 2;
    const writer = defineAgent({
      name: "writer",
      run: async (ctx) => {
        const text = await ctx.run("write", () => character.repeat(length));
        return times === 1 ? text.length : text;
      },
    });
    await fleet.runner({ agents: [writer] });
    const output = await outputOf(fleet, await startSession(fleet, { agent: "writer" }));
    expect(times === 1 ? output : (output as string).length).toBe(length);
  },
);

/** Says so much, and waits. */
const talker = defineAgent<number, string>({
  name: "talker",
  run: async (ctx, entries) => {
    for (let n = 0; n < entries; n++) {
      ctx.appendEntry({ role: "user", content: "x".repeat(1_000_000) });
      await ctx.run("step", () => n);
    }
    return ctx.waitForSignal<string>("word");
  },
});

async function waiting(entries: number): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, agents: [talker as Agent], development: false });
  const session = await runtime.start(talker, entries, { sessionId: "s" });
  await expect.poll(async () => (await session.session()).status).toBe("waiting");
  await runtime.close();
  return storage;
}

test(
  "a session that is too large for a coordinator stays where it is, and continues there",
  ofCampaign,
  async () => {
    fleet = await openFleet(SMALL);
    const here = await waiting(10);
    const move = moveSession({ sessionId: "s", from: here, to: fleet.remote, toName: fleet.url });
    await expect(move).rejects.toMatchObject({ code: "too_large" });
    expect((await here.reader.session("s"))?.move).toBeUndefined();
  },
);

test(
  "an output that is too large for a coordinator is not made again and again: its session is paused, and says why",
  ofCampaign,
  async () => {
    fleet = await openFleet(SMALL);
    let made = 0;
    const writer = defineAgent({
      name: "writer",
      run: async (ctx) => {
        const text = await ctx.run("write", () => `${"x".repeat(9_000_000)}${made++}`);
        return text.length;
      },
    });
    const good = defineAgent({ name: "good", run: async (ctx) => ctx.run("step", () => "done") });
    await fleet.runner({ agents: [writer, good] });
    const ids = await Promise.all(["writer", "good"].map((agent) => startSession(fleet, { agent })));
    expect(await sessionBecomes(fleet, ids[0]!, { status: "paused" })).toMatchObject({
      pauseReason: "agent_fault",
      error: { code: "too_large", message: expect.stringContaining("has too much to store at once") },
    });
    expect(await outputOf(fleet, ids[1]!)).toBe("done");
    expect(made).toBe(1);
  },
);

test(
  "a session that asks for more than a coordinator takes before it is stored is refused, with the reason",
  ofCampaign,
  async () => {
    fleet = await openFleet(SMALL);
    const runtime = createRuntime({ storage: fleet.remote, agents: [talker as Agent], development: false });
    const large = defineAgent({
      name: "large",
      run: async (ctx) => {
        for (let n = 0; n < 10; n++) ctx.appendEntry({ role: "user", content: "x".repeat(1_000_000) });
        await ctx.waitForSignal("word");
      },
    });
    await expect(runtime.start(large, undefined, { sessionId: "s" })).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringContaining("has too much to store at once"),
    });
    expect(await fleet.storage.reader.session("s")).toBeUndefined();
    await runtime.close();
  },
);

// The larger output is refused while most of it is still to be sent.
test.each(sampled([5_000_000, 9_000_000]))(
  "a queued task whose output of %i characters is too large for a coordinator fails, and its session receives the error",
  async (chars) => {
    fleet = await openFleet(SMALL);
    let made = 0;
    const asks = defineAgent({
      name: "asks",
      run: async (ctx) => {
        try {
          return await ctx.scheduleTask("write", null);
        } catch (error) {
          const { code, cause } = error as { code: string; cause: { code: string } };
          return [code, cause.code];
        }
      },
    });
    const write = defineTask({ name: "write", run: () => `${"x".repeat(chars)}${made++}` });
    await fleet.runner({ agents: [asks] });
    await fleet.runner({ tasks: [write] });
    const sessionId = await startSession(fleet, { agent: "asks" });
    expect(await outputOf(fleet, sessionId)).toEqual(["task_failed", "too_large"]);
    expect(made).toBe(1);
    await expect.poll(() => sessionsOf(fleet, "task:write"), PATIENCE).toEqual([]);
  },
);
