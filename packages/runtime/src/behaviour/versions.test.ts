// V1: a session resumes in the version of its agent that started it, and in another one only when a person
// allows that.

import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(storage: MemoryStorage, agents: readonly Agent[]): Runtime {
  const runtime = createRuntime({ storage, agents, clock: new TestClock(), development: false });
  opened.push(runtime);
  return runtime;
}

function greeter(version: string, greeting: string): Agent {
  return defineAgent({
    name: "greeter",
    version,
    run: async (ctx) => `${greeting}, ${String(await ctx.waitForSignal("name"))}`,
  });
}

/** Its code has changed where it looks somebody else up. */
function asking(person: string, version = "1"): Agent {
  const lookUp = defineTask({ name: "look up", run: (name: string) => name });
  return defineAgent({
    name: "asking",
    version,
    tasks: [lookUp],
    async run(ctx) {
      const found = await ctx.scheduleTask(lookUp, person);
      return `${found}, ${String(await ctx.waitForSignal("name"))}`;
    },
  });
}

/** A session of version 1 that waits, and that no process runs. */
async function waiting(): Promise<{ storage: MemoryStorage; sessionId: string }> {
  const storage = new MemoryStorage();
  const runtime = open(storage, []);
  const { sessionId } = await runtime.start(greeter("1", "hello"));
  await runtime.close();
  return { storage, sessionId };
}

test("agent-registry-3: a child that is asked for by its name gets no version where a coordinator chooses it", async () => {
  const storage = new MemoryStorage();
  let know: (agents: readonly Agent[], current: readonly Agent[]) => void = () => {};
  const dispatched = { claimAgeMs: 1_000, knowing: (given: typeof know) => (know = given) };
  const own = greeter("1", "hello");
  const parent = defineAgent({
    name: "parent",
    async run(ctx, name: string) {
      ctx.spawnAgent(local(name), undefined);
      await ctx.waitForSignal("never");
    },
  });
  const runtime = createRuntime({ storage, agents: [own], dispatched, development: false });
  opened.push(runtime);
  const pushed = (version: string) => defineAgent({ name: "pushed", version, run: async () => version });
  const current = pushed("2");
  know([current, pushed("3"), pushed("1")], [current]);
  const versionOf = async (name: string) => {
    await runtime.start(parent, name);
    const [child] = await storage.reader.sessions({ agent: name, limit: 1 });
    return child?.agent.version;
  };
  expect(await versionOf("greeter")).toBe("1");
  expect(await versionOf("pushed")).toBe("");
});

test("each session runs in its own version when two versions are known", async () => {
  const { storage, sessionId } = await waiting();
  const runtime = open(storage, [greeter("2", "good day"), greeter("1", "hello")]);
  const newer = await runtime.start(greeter("3", "hi"));
  await runtime.signal(sessionId, "name", "Ada");
  await runtime.signal(newer.sessionId, "name", "Ada");
  expect(await runtime.handle(sessionId).result()).toBe("hello, Ada");
  expect(await newer.result()).toBe("hi, Ada");
});

test("a session with an unknown version is parked with that reason, and its own version resumes it", async () => {
  const { storage, sessionId } = await waiting();
  const runtime = open(storage, [greeter("2", "good day")]);
  await expect(runtime.resume(sessionId)).rejects.toMatchObject({
    code: "agent_version",
    message: expect.stringContaining('version "1"'),
    got: '"2"',
    fix: expect.stringContaining("--accept-drift"),
  });
  expect(await storage.reader.session(sessionId)).toMatchObject({
    status: "paused",
    pauseReason: "no_matching_runner",
    error: { message: expect.stringContaining('version "1"') },
  });
  await runtime.close();
  const old = open(storage, [greeter("1", "hello")]);
  await old.resume(sessionId);
  await old.signal(sessionId, "name", "Ada");
  expect(await old.handle(sessionId).result()).toBe("hello, Ada");
});

test("a due session with an unknown version is parked", async () => {
  const { storage, sessionId } = await waiting();
  const runtime = open(storage, [greeter("2", "good day")]);
  await runtime.signal(sessionId, "name", "Ada");
  await turns(20);
  expect((await storage.reader.session(sessionId))?.status).toBe("paused");
});

test("a person may resume a session in another version", async () => {
  const { storage, sessionId } = await waiting();
  const runtime = open(storage, [greeter("2", "good day")]);
  await runtime.resume(sessionId, { acceptDrift: true });
  await runtime.signal(sessionId, "name", "Ada");
  expect(await runtime.handle(sessionId).result()).toBe("good day, Ada");
});

test("two agents of one name and version are refused", () => {
  expect(() => open(new MemoryStorage(), [greeter("1", "a"), greeter("1", "b")])).toThrow(
    /two different agents/,
  );
});

test.each([
  ["another version", asking("nobody", "2"), "agent_version"],
  ["other code", asking("somebody"), "nondeterminism"],
])(
  "%s that was refused goes on once a person says so, also after it has left memory",
  async (_, agent, code) => {
    const storage = new MemoryStorage();
    const before = open(storage, []);
    const { sessionId } = await before.start(asking("nobody"));
    await turns(20);
    await before.close();
    const runtime = open(storage, [agent]);
    const refused = runtime.resume(sessionId).then((handle) => handle.result());
    await expect(refused).rejects.toMatchObject({ code });
    await runtime.resume(sessionId, { acceptDrift: true });
    await turns(20);
    runtime.releaseWaiting();
    await turns(20);
    expect(runtime.live).toBe(0);
    await runtime.signal(sessionId, "name", "Ada");
    expect(await runtime.handle(sessionId).result()).toMatch(/, Ada$/);
  },
);
