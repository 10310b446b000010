// Mistakes that the compiler refuses. The check of types fails where it takes one of them, since a
// `@ts-expect-error` above a line without an error is an error itself. The tests run what they compile.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { MemoryStorage } from "@holdfast/runtime";
import { createRuntime, defineAgent, defineTask, local } from "../index.ts";

const runtime = () => createRuntime({ storage: new MemoryStorage(), development: false });

const report = defineAgent({
  name: "report",
  input: z.object({ title: z.string(), pages: z.number().default(3), on: z.string().transform(Number) }),
  run: async (_, { title, pages, on }) => `${title}, ${pages.toFixed()} pages, ${on.toFixed()}`,
});
const greet = defineAgent({ name: "greet", run: async (_, name: string) => `hello ${name}` });
const plain = defineAgent({ name: "plain", run: async () => "done" });

describe("the input of a start", () => {
  test("the compiler demands the input of an agent that has one", async () => {
    const { start } = bound();
    // @ts-expect-error -- the input is missing.
    await expect(start(report)).rejects.toThrow("input of agent");
    // @ts-expect-error -- the input is missing.
    await start(greet);
    expect(await (await start(plain)).result()).toBe("done");
    expect(await (await start(greet, "ada")).result()).toBe("hello ada");
  });

  test("the caller of an agent with a schema gives what the schema accepts", async () => {
    const { start } = bound();
    const session = await start(report, { title: "moon", on: "5" });
    expect(await session.result()).toBe("moon, 3 pages, 5");
    // @ts-expect-error -- `on` is a text before it is converted.
    await expect(start(report, { title: "moon", on: 5 })).rejects.toThrow("/on");
    // @ts-expect-error -- `title` has no default.
    await expect(start(report, { on: "5" })).rejects.toThrow("/title");
  });

  test("the caller of an agent of any type may leave the input out", async () => {
    const { start } = bound();
    // oxlint-disable-next-line typescript/no-explicit-any -- agents of any type are the subject.
    const any = plain as ReturnType<typeof defineAgent<any, any>>;
    expect(await (await start(any)).result()).toBe("done");
    expect(await (await start(any, 5, { sessionId: "own" })).result()).toBe("done");
  });

  function bound() {
    const made = runtime();
    return { start: made.start.bind(made) };
  }
});

describe("the input of a task and of a child", () => {
  const shout = defineTask({ name: "shout", run: (text: string) => text.toUpperCase() });
  const repeat = defineTask({
    name: "repeat",
    input: z.object({ text: z.string(), times: z.number().default(2) }),
    run: ({ text, times }) => text.repeat(times),
  });

  test("the input of a task is checked at the argument", async () => {
    const agent = defineAgent({
      name: "tasks",
      tasks: [shout, repeat],
      run: async (ctx) => {
        const shouted: string = await ctx.scheduleTask(shout, "a");
        const repeated: string = await ctx.scheduleTask(repeat, { text: "b" });
        const named: number = await ctx.scheduleTask<number>("shout", "c");
        const untyped: unknown = await ctx.scheduleTask("shout", "d");
        const uncertain = await ctx.scheduleTask(shout, "e", { onUncertain: "return" });
        // @ts-expect-error -- the answer may be that nobody knows.
        const certain: string = uncertain;
        return [shouted, repeated, named, untyped, certain];
      },
    });
    expect(await (await runtime().start(agent)).result()).toEqual(["A", "bb", "C", "D", "E"]);
    const mistaken = defineAgent({
      name: "mistaken",
      tasks: [shout, repeat],
      run: async (ctx) => {
        // @ts-expect-error -- the input is no text.
        const wrong = ctx.scheduleTask(shout, 5).catch(() => "refused");
        // @ts-expect-error -- the input is missing.
        const missing = ctx.scheduleTask(shout).catch(() => "refused");
        // @ts-expect-error -- `text` is missing.
        const without = ctx.scheduleTask(repeat, {}).catch(() => "refused");
        return Promise.all([wrong, missing, without]);
      },
    });
    expect(await (await runtime().start(mistaken)).result()).toEqual(["refused", "refused", "refused"]);
  });

  test("a parent gives what the schema of its child accepts, which fills in a default", async () => {
    const echo = defineAgent({
      name: "echo",
      input: z.object({ title: z.string(), pages: z.number().default(3) }),
      run: async (_, input) => input,
    });
    const agent = defineAgent({
      name: "parent",
      agents: [greet, plain, echo],
      run: async (ctx) => {
        const greeted: string = await ctx.waitForChild(ctx.spawnAgent(local(greet), "ada"));
        const done: string = await ctx.waitForChild(ctx.spawnAgent(local(plain)));
        const named: unknown = await ctx.waitForChild(ctx.spawnAgent(local("greet"), "eve"));
        // @ts-expect-error -- the input is missing.
        const missing = ctx.spawnAgent(local(greet));
        await ctx.waitForChild(missing);
        const partial = ctx.spawnAgent(local(echo), { title: "moon" });
        // @ts-expect-error -- `title` is missing.
        expect(() => ctx.spawnAgent(local(echo), { pages: 1 })).toThrow("title");
        return [greeted, done, named, await ctx.waitForChild(partial)];
      },
    });
    const session = await runtime().start(agent);
    expect(await session.result()).toEqual(["hello ada", "done", "hello eve", { title: "moon", pages: 3 }]);
  });
});

describe("a change of typed state", () => {
  test("each field takes what its reducer takes", async () => {
    const agent = defineAgent({
      name: "notes",
      state: {
        version: 1,
        initial: () => ({ notes: ["a"], by: { name: "ada", age: 3 }, tags: ["x"], n: 1, seen: ["s"] }),
        reducers: {
          notes: "append",
          by: "merge",
          n: (now, more) => now + String(more).length,
          seen: (now, more) => [...now, String(more)],
        },
      },
      run: async (ctx) => {
        ctx.update({ notes: "b" });
        ctx.update({ notes: ["c"], by: { age: 4 }, tags: ["y"], n: "two", seen: 5 });
        return ctx.state;
      },
    });
    expect(await (await runtime().start(agent)).result()).toEqual({
      notes: ["a", "b", "c"],
      by: { name: "ada", age: 4 },
      tags: ["y"],
      n: 4,
      seen: ["s", "5"],
    });
  });

  test("the compiler refuses a value of another type, and a field that there is not", async () => {
    const state = { version: 1, initial: () => ({ messages: ["a"], n: 1, by: { name: "ada", age: 3 } }) };
    const agent = defineAgent({
      name: "mistaken",
      state,
      run: async (ctx) => {
        // @ts-expect-error -- a list is replaced by a list.
        ctx.update({ messages: "x" });
        // @ts-expect-error -- the field is a number.
        ctx.update({ n: "one" });
        // @ts-expect-error -- there is no such field.
        ctx.update({ z: 1 });
        // @ts-expect-error -- without a reducer the whole value is replaced.
        ctx.update({ by: { name: "eve" } });
        return ctx.state;
      },
    });
    await (await runtime().start(agent)).result();
    const turns = defineAgent({
      name: "turns",
      state: { ...state, reducers: { messages: "append" as const } },
      // @ts-expect-error -- nothing that this turn returns fits.
      turn: async (_, { n }) => (n === 1 ? { update: { messages: 5, n: "one", z: 1 } } : { done: n }),
    });
    expect(await (await runtime().start(turns)).result()).toBe("one");
  });

  test("each field takes its own type where the types are given by hand", async () => {
    interface Notes {
      readonly notes: readonly string[];
      readonly n: number;
    }
    const agent = defineAgent<unknown, Notes, Notes>({
      name: "by-hand",
      state: { version: 1, initial: () => ({ notes: [], n: 1 }), reducers: { notes: "append" } },
      turn: async (ctx, now) => {
        if (now.n === 2) return { done: now };
        ctx.update({ notes: ["a"] });
        // @ts-expect-error -- a list is appended.
        ctx.update({ notes: 5 });
        return { update: { n: 2 } };
      },
    });
    expect(await (await runtime().start(agent)).result()).toEqual({ notes: ["a", 5], n: 2 });
  });

  test("a state without a type has fields of any name", async () => {
    const initial: unknown = { a: 1 };
    const agent = defineAgent({
      name: "untyped",
      state: { version: 1, initial: () => initial },
      run: async (ctx) => {
        ctx.update({ b: 2 });
        return ctx.state;
      },
    });
    expect(await (await runtime().start(agent)).result()).toEqual({ a: 1, b: 2 });
  });
});
