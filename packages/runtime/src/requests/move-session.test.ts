// moveSession: a session moves after any commit, and any interrupted move leaves at most one live copy.

import { Readable } from "node:stream";
import { UnavailableError, type AgentStorage } from "@holdfast/core";
import { faultyStorage, type FaultKind } from "@holdfast/testkit";
import { countingRandom, storageWith, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { moveSession } from "./move-session.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const TURNS = 3;
/** Each turn a step, a signal and an entry. */
const agent = defineAgent<undefined, string[], string[]>({
  name: "traveller",
  initial: () => [],
  turn: async (ctx, seen) => {
    if (seen.length === TURNS) return { done: seen };
    const step = await ctx.run("step", () => `step ${seen.length}`);
    const word = await ctx.waitForSignal<string>("word");
    ctx.appendEntry({ role: "user", content: word });
    return { state: [...seen, `${step} ${word}`] };
  },
}) as Agent;
const DONE = ["step 0 a", "step 1 b", "step 2 c"];

function open(storage: AgentStorage, agents: readonly Agent[] = [agent]): Runtime {
  const runtime = createRuntime({ storage, agents, random: countingRandom(), development: false });
  opened.push(runtime);
  return runtime;
}

function move(from: AgentStorage, to: AgentStorage, toName = "there"): Promise<void> {
  return moveSession({ sessionId: "s", from, to, toName, random: countingRandom(9) });
}

async function sendAll(runtime: Runtime): Promise<void> {
  for (const word of ["a", "b", "c"]) await runtime.signal("s", "word", word, { signalId: `sig_${word}` });
}

/** Send the signals that the session has not received, and resume it to its end. */
async function finish(storage: AgentStorage): Promise<unknown> {
  const runtime = open(storage);
  await sendAll(runtime);
  return (await runtime.resume("s")).result();
}

/** The number of storages in which the session can still run. */
async function livePlaces(...storages: readonly AgentStorage[]): Promise<number> {
  const rows = await Promise.all(storages.map((storage) => storage.reader.session("s")));
  return rows.filter((row) => row !== undefined && row.move === undefined).length;
}

describe("a session that moves", () => {
  test("an ephemeral session does not move until it enables persistence", async () => {
    const [here, there] = [new MemoryStorage(), new MemoryStorage()];
    const lasting = defineAgent({
      name: "lasting",
      run: async (ctx) => {
        const word = await ctx.waitForSignal<string>("word");
        ctx.enablePersistence();
        return [word, await ctx.waitForSignal("word")];
      },
    });
    const first = open(here, [lasting]);
    const session = await first.start(lasting, undefined, { sessionId: "s", persistence: "ephemeral" });
    await until(async () => (await session.session()).status === "waiting", "it has begun");
    await expect(move(here, there)).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("session s is ephemeral"),
    });
    expect(await livePlaces(here, there)).toBe(1);
    await session.signal("word", "a");
    await until(async () => (await session.session()).persistence === undefined, "it lasts");
    await move(here, there);
    const second = open(there, [lasting]);
    await second.signal("s", "word", "b");
    expect(await (await second.resume("s")).result()).toEqual(["a", "b"]);
  });

  test("a moved session resumes in its new storage, and the old storage names it", async () => {
    const [here, there] = [new MemoryStorage(), new MemoryStorage()];
    const first = open(here);
    await first.start(agent, undefined, { sessionId: "s" });
    await first.signal("s", "word", "a", { signalId: "sig_a" });
    await until(async () => (await here.reader.session("s"))?.turn === 1, "its first turn");
    await move(here, there);

    expect(await livePlaces(here, there)).toBe(1);
    await expect(first.signal("s", "word", "b")).rejects.toMatchObject({
      code: "session_moved",
      at: "there",
    });
    await expect(first.cancel("s")).rejects.toMatchObject({ code: "session_moved" });
    await expect(first.resume("s")).rejects.toMatchObject({ code: "session_moved" });
    const second = open(there);
    expect(await second.signal("s", "word", "a", { signalId: "sig_a" })).toEqual({ status: "duplicate" });
    expect(await finish(there)).toEqual(DONE);
  });

  test("a session moves back and forth any number of times", async () => {
    const [here, there] = [new MemoryStorage(), new MemoryStorage()];
    const first = open(here);
    await first.start(agent, undefined, { sessionId: "s" });
    await first.close();
    await move(here, there);
    await move(there, here, "here");
    await move(here, there);
    await move(there, here, "here");
    expect((await here.reader.session("s"))?.home?.number).toBe(4);
    expect(await finish(here)).toEqual(DONE);
  });

  test("a session moves after any of its commits, also while it runs", async () => {
    for (let commits = 1; ; commits++) {
      const [inside, there] = [new MemoryStorage(), new MemoryStorage()];
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
      const here = faultyStorage(inside, {
        fault: ({ number }) => {
          if (number === commits) reach();
          return undefined;
        },
      });
      const first = open(here);
      const handle = await first.start(agent, undefined, { sessionId: "s" });
      void sendAll(first).catch(() => {}); // Signals after the move are refused, and sent again there.
      const ended = handle.settled();
      await Promise.race([reached, ended]);
      if ((await handle.session()).status === "completed") return expect(commits).toBeGreaterThan(5);
      await move(inside, there).catch((error: { code: string }) => expect(error.code).toBe("session_ended"));
      if ((await livePlaces(there)) === 0) continue;
      expect(await finish(there)).toEqual(DONE);
      expect((await there.reader.entries("s", 0, 9)).map(({ content }) => content)).toEqual([
        '"a"',
        '"b"',
        '"c"',
      ]);
    }
  });

  const faults: readonly FaultKind[] = ["before", "reply_lost"];
  for (const fault of faults) {
    test(`a session is never in two places, and arrives when a failed move is repeated: ${fault}`, async () => {
      for (const side of ["from", "to"] as const) {
        for (let step = 1; ; step++) {
          const [inside, beyond] = [new MemoryStorage(), new MemoryStorage()];
          const first = open(inside);
          await first.start(agent, undefined, { sessionId: "s" });
          await first.signal("s", "word", "a");
          await turns(10);
          await first.close();
          const plan = { fault: ({ number }: { number: number }) => (number === step ? fault : undefined) };
          const here = side === "from" ? faultyStorage(inside, plan) : inside;
          const there = side === "to" ? faultyStorage(beyond, plan) : beyond;
          const failed = await move(here, there).then(
            () => false,
            () => true,
          );
          expect(await livePlaces(inside, beyond)).toBeLessThanOrEqual(1);
          if (!failed) break;
          await move(here, there);
          expect(await livePlaces(inside, beyond)).toBe(1);
          expect(await livePlaces(beyond)).toBe(1);
        }
      }
    });
  }

  test("a session stays where it is when the other storage refuses it", async () => {
    const [here, there] = [new MemoryStorage(), new MemoryStorage()];
    const first = open(here);
    const other = open(there);
    await first.start(agent, undefined, { sessionId: "s" });
    await other.start(agent, undefined, { sessionId: "s" });
    await expect(move(here, there)).rejects.toMatchObject({ code: "session_exists" });
    expect((await here.reader.session("s"))?.move).toBeUndefined();
    await first.close();
    expect(await finish(here)).toEqual(DONE);
  });

  test("a frozen session whose target is gone continues as a copy from its file", async () => {
    const [from, to] = [new MemoryStorage(), new MemoryStorage()];
    const runtime = open(from);
    await runtime.start(agent, undefined, { sessionId: "s" });
    await turns(20);
    const gone = storageWith(to, {
      commit: () => Promise.reject(new UnavailableError("storage_unavailable", "nobody listens any more")),
    });
    await expect(move(from, gone)).rejects.toThrow("nobody listens any more");
    await expect(runtime.signal("s", "word", "a")).rejects.toMatchObject({
      code: "session_moved",
      fix: expect.stringContaining("`holdfast import FILE --session OTHER`") as string,
    });
    const copy = await runtime.import(
      Readable.from(runtime.export("s")).map((line: string) => Buffer.from(line)),
      { name: "file", sessionId: "copy" },
    );
    for (const word of ["a", "b", "c"]) await runtime.signal(copy.sessionId, "word", word);
    expect(await (await runtime.resume(copy.sessionId)).result()).toEqual(DONE);
    expect((await from.reader.session("s"))?.move?.to).toBe("there");
  });

  test("move-session-4: a session is not frozen for a storage that is unreachable", async () => {
    const [from, to] = [new MemoryStorage(), new MemoryStorage()];
    const runtime = open(from);
    await runtime.start(agent, undefined, { sessionId: "s" });
    await turns(20);
    const away = storageWith(to, {
      reader: {
        ...to.reader,
        session: () => Promise.reject(new UnavailableError("storage_unavailable", "nobody listens there")),
      },
    });
    await expect(move(from, away)).rejects.toThrow("nobody listens there");
    expect((await from.reader.session("s"))?.move).toBeUndefined();
    await sendAll(runtime);
    expect(await runtime.handle("s").result()).toEqual(DONE);
  });

  test("a session with a living child does not move, and a move to a second place is refused", async () => {
    const parent = defineAgent({
      name: "parent",
      agents: [agent],
      run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(agent))),
    });
    const [here, there] = [new MemoryStorage(), new MemoryStorage()];
    const first = open(here, [agent, parent]);
    await first.start(parent, undefined, { sessionId: "s" });
    await until(async () => (await here.reader.session("s"))?.children === 1, "its child");
    await expect(move(here, there)).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("family"),
    });
    await expect(
      moveSession({ sessionId: "none", from: here, to: there, toName: "there" }),
    ).rejects.toMatchObject({ code: "session_not_found" });
  });
});
