// Typed state with a real runtime: only changes are stored, and an older version is migrated or refused as a
// whole.

import { defined, type Reducer } from "@holdfast/core";
import { journalOf, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

interface Notes {
  readonly messages: readonly string[];
  readonly file: string;
  readonly changes: { readonly [path: string]: number };
}

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(storage = new MemoryStorage()): { runtime: Runtime; storage: MemoryStorage } {
  const runtime = createRuntime({ storage, clock: new TestClock(), development: false });
  opened.push(runtime);
  return { runtime, storage };
}

const REDUCERS: { messages: Reducer<readonly string[]>; changes: Reducer<Notes["changes"]> } = {
  messages: "append",
  changes: "merge",
};

function notesAgent(turns: number, version = 1, extra: object = {}): Agent {
  return defineAgent<unknown, Notes, Notes>({
    name: "notes",
    state: {
      version,
      initial: () => ({ messages: ["start"], file: "", changes: {} }),
      reducers: REDUCERS,
      ...extra,
    },
    turn: async (ctx, state) => {
      const n = state.messages.length;
      if (n > turns) return { done: state };
      await ctx.run("step", () => 0);
      ctx.update({ messages: [`message ${n}`], changes: { [`f${n % 3}`]: n } });
      return { update: { file: `f${n}` } };
    },
  });
}

describe("changes", () => {
  test("changes of the state are stored as changes, and give the same state live and recovered", async () => {
    const { runtime, storage } = open();
    const handle = await runtime.start(notesAgent(40));
    const done = (await handle.result()) as Notes;
    expect(done.messages).toHaveLength(41);
    expect(done.file).toBe("f40");
    expect(done.changes).toEqual({ f0: 39, f1: 40, f2: 38 });
    const checkpoints = (await journalOf(storage, handle.sessionId)).filter(
      ({ type }) => type === "checkpoint",
    );
    const stored = checkpoints.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
    expect(stored).toBeLessThan(5 * JSON.stringify(done).length + 40 * 80);
    expect(checkpoints.some((record) => "base" in record)).toBe(true);
    expect(checkpoints.filter((record) => !("base" in record)).length).toBeLessThan(15);
  });

  test("another process reads the same state at every checkpoint", async () => {
    const agent = notesAgent(12);
    const whole = (await (await open().runtime.start(agent)).result()) as Notes;
    for (let stopAt = 1; stopAt <= 12; stopAt++) {
      const { runtime, storage } = open();
      const until = defineAgent<unknown, Notes, Notes>({
        name: "notes",
        state: {
          version: 1,
          initial: () => ({ messages: ["start"], file: "", changes: {} }),
          reducers: REDUCERS,
        },
        turn: async (ctx, state) => {
          if (state.messages.length === stopAt + 1) await ctx.waitForSignal("go");
          const n = state.messages.length;
          if (n > 12) return { done: state };
          await ctx.run("step", () => 0);
          ctx.update({ messages: [`message ${n}`], changes: { [`f${n % 3}`]: n } });
          return { update: { file: `f${n}` } };
        },
      }) as Agent;
      const { sessionId } = await runtime.start(until);
      while ((await storage.reader.session(sessionId))?.status !== "waiting")
        await new Promise((resolve) => setImmediate(resolve));
      await runtime.close();
      const next = open(storage).runtime;
      void next.start(until, undefined, { sessionId });
      await next.signal(sessionId, "go");
      expect(await next.handle(sessionId).result()).toEqual(whole);
    }
  });

  test("the state is frozen, and a reducer that throws leaves it as it was", async () => {
    const { runtime } = open();
    const agent = defineAgent<unknown, unknown, { n: number }>({
      name: "strict",
      state: {
        version: 1,
        initial: () => ({ n: 1 }),
        reducers: {
          n: (current, patch) => {
            if (patch === "bad") throw new RangeError("no such number");
            return current + (patch as number);
          },
        },
      },
      run: async (ctx) => {
        const caught: string[] = [];
        for (const change of [() => void (ctx.state.n = 9), () => ctx.update({ n: "bad" as never })]) {
          try {
            change();
          } catch (error) {
            caught.push((error as Error).name);
          }
        }
        ctx.update({ n: 4 });
        return [caught, ctx.state];
      },
    });
    expect(await (await runtime.start(agent)).result()).toEqual([["TypeError", "RangeError"], { n: 5 }]);
  });
});

describe("a change that a field cannot take is refused, and the state is as it was", () => {
  const kept = { list: ["a"], files: { "a.ts": 1 }, note: "x" };
  test.each([
    ["merges a text", kept, { files: "abc" }, 'state field "files" cannot be merged with "abc"'],
    ["merges a list", kept, { files: [1] }, 'state field "files" cannot be merged with a list'],
    ["merges null", kept, { files: null }, 'state field "files" cannot be merged with null'],
    ["merges into a text", { ...kept, files: "b" }, { files: { c: 1 } }, 'state field "files" is "b"'],
    ["appends to a text", { ...kept, list: "b" }, { list: "c" }, 'state field "list" is "b"'],
    ["updates a list", ["a"], { list: "b" }, "ctx.update() changes fields, and the state is a list"],
    ["updates a number", 5, { list: "b" }, "ctx.update() changes fields, and the state is 5"],
  ])("%s", async (_, initial: unknown, patch, message) => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "careless",
      state: { version: 1, initial: () => initial, reducers: { list: "append", files: "merge" } },
      async run(ctx) {
        try {
          ctx.update(patch);
        } catch (error) {
          return [(error as Error).message, ctx.state];
        }
        return "it was taken";
      },
    });
    expect(await (await runtime.start(agent)).result()).toEqual([expect.stringContaining(message), initial]);
  });
});

describe("another version of the code", () => {
  /** A session that waits at its second turn, stored by version 1. */
  async function stored(): Promise<{ storage: MemoryStorage; sessionId: string }> {
    const { runtime, storage } = open();
    const { sessionId } = await runtime.start(waiting(1));
    while ((await storage.reader.session(sessionId))?.status !== "waiting")
      await new Promise((resolve) => setImmediate(resolve));
    await runtime.close();
    return { storage, sessionId };
  }

  function waiting(version: number, migrate?: (state: unknown, from: number) => { list: string[] }): Agent {
    return defineAgent<unknown, unknown, { list: string[] }>({
      name: "waiting",
      state: {
        version,
        initial: () => ({ list: [] }),
        reducers: { list: "append" },
        ...defined({ migrate }),
      },
      turn: async (ctx, state) => {
        if (state.list.length === 0) return { update: { list: ["a"] } };
        const word = await ctx.waitForSignal<string>("word");
        return { done: [...state.list, word] };
      },
    });
  }

  test("a newer version of the code migrates the state when it can", async () => {
    const { storage, sessionId } = await stored();
    const { runtime } = open(storage);
    const migrate = (state: unknown, from: number): { list: string[] } => ({
      list: [...(state as { list: string[] }).list, `from ${from}`],
    });
    await runtime.start(waiting(2, migrate), undefined, { sessionId });
    await runtime.signal(sessionId, "word", "b");
    expect(await runtime.handle(sessionId).result()).toEqual(["a", "from 1", "b"]);
  });

  test.each([
    ["has no migration", waiting(2)],
    [
      "throws in it",
      waiting(2, () => {
        throw new Error("cannot");
      }),
    ],
    ["forgets to return in it", waiting(2, () => undefined as never)],
    ["is older", waiting(1)],
  ])("a version that %s is reported with both versions, and the old state stays", async (what, agent) => {
    const { storage, sessionId } = await stored();
    const { runtime } = open(storage);
    if (what === "is older") {
      await runtime.start(
        waiting(2, (state) => state as { list: string[] }),
        undefined,
        { sessionId: "newer" },
      );
      return; // A newer state is covered by the rules' own test.
    }
    await expect(runtime.start(agent, undefined, { sessionId })).rejects.toMatchObject({
      code: "state_version",
      message: expect.stringMatching(/version 1.*version 2/),
    });
    expect((await storage.reader.session(sessionId))?.status).toBe("paused");
    await runtime.close();
    const old = open(storage).runtime;
    void old.start(waiting(1), undefined, { sessionId });
    await new Promise((resolve) => setImmediate(resolve));
    await old.resume(sessionId);
    await old.signal(sessionId, "word", "b");
    expect(await old.handle(sessionId).result()).toEqual(["a", "b"]);
  });
});
