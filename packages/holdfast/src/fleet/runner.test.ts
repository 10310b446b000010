// Runners and a coordinator together: what is started at the coordinator is run by whoever offers it, also through what goes wrong.

import { defineAgent, defineTask, createRuntime, type TaskContext } from "@holdfast/runtime";
import { gate } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test, vi } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { startSession } from "../testing/coordinator-client.ts";

const PATIENCE = { timeout: 10_000, interval: 10 };

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

const echo = defineAgent({ name: "echo", run: async (ctx, input) => ctx.run("echo", () => input) });
const asks = defineAgent({
  name: "asks",
  run: async (ctx) => {
    const first = await ctx.waitForSignal("go");
    const second = await ctx.waitForSignal("go");
    return [first, second];
  },
});

describe("a runner", () => {
  test("is given what it offers, and its segments cost one request each", async () => {
    fleet = await openFleet();
    const runner = await fleet.runner({ agents: [echo] });
    const sessionId = await startSession(fleet, { agent: "echo", input: { n: 1 } });
    await ended(fleet, sessionId);
    expect(await fleet.storage.reader.session(sessionId)).toMatchObject({
      status: "completed",
      output: '{"n":1}',
    });
    expect(runner.events.map(({ type }) => type)).toEqual(["connecting", "registered", "started", "received"]);
  });

  test("goes on with a session that waits when what it waits for arrives", async () => {
    fleet = await openFleet();
    await fleet.runner({ agents: [asks] });
    const sessionId = await startSession(fleet, { agent: "asks" });
    await standing(fleet, sessionId, "waiting");
    await signal(fleet, sessionId, "go", 1);
    await signal(fleet, sessionId, "go", 2);
    await ended(fleet, sessionId);
    expect(await fleet.storage.reader.session(sessionId)).toMatchObject({ output: "[1,2]" });
  });

  test("holds no more than it may, and lets go of what only waits for what does something", async () => {
    fleet = await openFleet();
    const runner = await fleet.runner({ agents: [echo, asks], maxRuns: 1 });
    const waiting = await startSession(fleet, { agent: "asks" });
    await standing(fleet, waiting, "waiting");
    const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => startSession(fleet!, { agent: "echo", input: n })));
    for (const sessionId of ids) await ended(fleet, sessionId);
    expect(runner.health().held).toBeLessThanOrEqual(1);
  });

  test("is the same one after a restart, without another registration token", async () => {
    fleet = await openFleet();
    const first = await fleet.runner({ agents: [echo], stateFolder: "/tmp/hf/run-state" });
    await first.stop();
    const second = await fleet.runner({ agents: [echo], stateFolder: "/tmp/hf/run-state", token: "" });
    expect(second.runnerId).toBe(first.runnerId);
  });
});

async function standing(on: Fleet, sessionId: string, status: string): Promise<void> {
  await vi.waitFor(
    async () => expect(await on.storage.reader.session(sessionId)).toMatchObject({ status }),
    PATIENCE,
  );
}

async function ended(on: Fleet, sessionId: string): Promise<void> {
  await vi.waitFor(
    async () => expect((await on.storage.reader.session(sessionId))?.endedAt).toBeDefined(),
    PATIENCE,
  );
}

async function signal(on: Fleet, sessionId: string, name: string, payload: unknown): Promise<void> {
  const signalId = `sig-${Math.random()}`;
  await on.remote.commit(
    [{ type: "send_signal", sessionId, signalId, name, payload: JSON.stringify(payload) }],
    Date.now(),
  );
}

void [defineTask, createRuntime, gate];
export type { TaskContext };
