// A minimal session starts over when its process dies, but the effects of its earlier lives remain. These
// sessions began under the older rules, by which a session with children stayed minimal.

import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT } from "@holdfast/core";
import { BEHAVIOUR } from "@holdfast/core/internal";
import { gate, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}): { runtime: Runtime; storage: MemoryStorage } {
  const storage = (options.storage as MemoryStorage | undefined) ?? new MemoryStorage();
  const runtime = createRuntime({ clock: new TestClock(), ...options, storage, development: false });
  opened.push(runtime);
  return { runtime, storage };
}

const OLDER = {
  flags: BEHAVIOUR_FLAGS & ~(BEHAVIOUR.persistsFamilies | BEHAVIOUR.persistsListeners),
  format: JOURNAL_FORMAT,
} as const;

/** Store a session as it was made before minimal ones became persistent with their first child, and run it. */
async function startOlder(
  runtime: Runtime,
  storage: MemoryStorage,
  agent: Agent,
  { isMinimal = true } = {},
): Promise<void> {
  const { name, version } = agent;
  const creation = { type: "create_session", sessionId: "s", input: undefined, seed: 1, ...OLDER } as const;
  const little = isMinimal ? ({ persistence: "minimal" } as const) : {};
  await storage.commit([{ ...creation, agent: { name, version }, ...little }], 0);
  await runtime.resume("s");
}

describe("a minimal session that starts over", () => {
  const done = defineAgent({ name: "done", run: async () => "done" });
  const other = defineAgent({ name: "other", run: async () => "other" });

  /** Run it from life to life: each but the last ends when the session waits for the signal of its name. */
  async function live(
    agent: Agent,
    options: Partial<RuntimeOptions>,
    ...names: readonly string[]
  ): Promise<unknown> {
    const storage = new MemoryStorage();
    let { runtime } = open({ storage, agents: [agent], ...options });
    await startOlder(runtime, storage, agent);
    for (const name of names) {
      const waitsForIt = async () =>
        (await storage.reader.session("s"))?.waits.some((wait) => "name" in wait && wait.name === name);
      await until(async () => (await waitsForIt()) === true, `it waits for ${name}`);
      await turns(30); // Its children have read what it told them.
      await runtime.close();
      ({ runtime } = open({ storage, agents: [agent], ...options }));
      await runtime.resume("s");
    }
    await runtime.signal("s", names.at(-1)!);
    await turns(50);
    return runtime.handle("s").session();
  }

  test("a session that starts over gets a child's end also after the life that is stored whole", async () => {
    let lives = 0;
    const agent = defineAgent({
      name: "parent",
      agents: [done],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(done));
        const life = await ctx.run("life", () => ++lives);
        if (life === 1) await ctx.waitForChild(child);
        if (life === 1) await ctx.waitForSignal("first");
        ctx.enablePersistence();
        await ctx.waitForSignal("second");
        return ctx.waitForChild(child);
      },
    });
    expect(await live(agent, {}, "first", "second")).toMatchObject({ status: "completed", output: '"done"' });
  });

  test("a session that starts over may send its child another signal, and sends none twice", async () => {
    const counting = defineAgent({
      name: "counting",
      run: async (ctx) => {
        const told = [await ctx.waitForSignal("word"), await ctx.waitForSignal("word")];
        return [...told, ctx.drainSignals("*").length];
      },
    });
    let lives = 0;
    const agent = defineAgent({
      name: "parent",
      agents: [counting],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(counting));
        ctx.signalChild(child, "once");
        ctx.signalChild(child, "word", await ctx.run("life", () => ++lives));
        await ctx.waitForSignal("go");
        return ctx.waitForChild(child);
      },
    });
    expect(await live(agent, {}, "go")).toMatchObject({ status: "completed", output: "[1,2,1]" });
  });

  test("a session that starts over signals its child again when the child has started over, too", async () => {
    const listening = defineAgent({
      name: "listening",
      run: async (ctx) => [await ctx.waitForSignal("word"), await ctx.waitForSignal("end")],
    });
    const agent = defineAgent({
      name: "parent",
      agents: [listening],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(listening), undefined, { persistence: "minimal" });
        ctx.signalChild(child, "word", 1);
        await ctx.waitForSignal("go");
        ctx.signalChild(child, "end", 2);
        return ctx.waitForChild(child);
      },
    });
    expect(await live(agent, {}, "go")).toMatchObject({ status: "completed", output: "[1,2]" });
  });

  test("a question that is asked again in each life may be answered once in each", async () => {
    const storage = new MemoryStorage();
    const agent = defineAgent({
      name: "asks",
      run: async (ctx) => {
        const { approved } = await ctx.requestInput("may I?");
        await ctx.waitForSignal("go");
        return approved;
      },
    });
    let { runtime } = open({ storage });
    await runtime.start(agent, undefined, { sessionId: "s", persistence: "minimal" });
    const stands = (status: string) =>
      until(async () => (await storage.reader.session("s"))?.status === status, `it is ${status}`);
    for (const approved of [true, false]) {
      await stands("input_required");
      const answers = [runtime.answer("s", { approved }), runtime.answer("s", { approved: !approved })];
      const told = (await Promise.all(answers)).map(({ status }) => status);
      expect(told).toEqual(["stored", "duplicate"]);
      await stands("waiting");
      if (!approved) break;
      await runtime.close();
      ({ runtime } = open({ storage, agents: [agent] }));
      await runtime.resume("s");
    }
    await runtime.signal("s", "go");
    expect(await runtime.handle("s").result()).toBe(false);
  });

  test("a session that starts over takes no answer to a request of an earlier life", async () => {
    const storage = new MemoryStorage();
    const { opened: isReady, open: ready } = gate();
    const answered: number[] = [];
    const answer = defineTask({
      name: "answer",
      run: async (asked: number) => {
        if (asked === 1) await isReady;
        answered.push(asked);
        return `to ${asked}`;
      },
    });
    let lives = 0;
    const asking = defineAgent({
      name: "asking",
      run: async (ctx) => {
        const life = await ctx.run("life", () => ++lives);
        await ctx.waitForSignal("ask");
        return ctx.requestFromParent("answer", life);
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [asking],
      handlers: { answer },
      run: async (ctx) =>
        ctx.waitForChild(ctx.spawnAgent(local(asking), undefined, { persistence: "minimal" })),
    });
    const { runtime } = open({ storage, agents: [agent] });
    await startOlder(runtime, storage, agent, { isMinimal: false });
    const waitsFor = (name: string) =>
      until(
        async () =>
          (await storage.reader.session("s-0"))?.waits.some((one) => "name" in one && one.name === name) ===
          true,
        `it waits for ${name}`,
      );
    await waitsFor("ask");
    await runtime.signal("s-0", "ask");
    await waitsFor("reply:2");
    runtime.abandon("s-0");
    await until(
      async () => (await runtime.resume("s-0").catch(() => undefined)) !== undefined,
      "it is released",
    );
    await waitsFor("ask");
    ready();
    await until(() => answered.length === 1, "the first is answered");
    await turns(20);
    await runtime.signal("s-0", "ask");
    expect(await runtime.handle("s").result()).toBe("to 2");
    expect(answered).toEqual([1, 2]);
  });

  test.each(["before its process dies", "by the next one"])(
    "a session that starts over answers its child's request, %s, wherever it was lost",
    async (when) => {
      const storage = new MemoryStorage();
      let asked = 0;
      const never = gate();
      const answer = defineTask({
        name: "answer",
        run: async (n: number) => {
          if (++asked === 2 && when === "by the next one") await never.opened;
          return n + asked;
        },
      });
      const asking = defineAgent({
        name: "asking",
        run: async (ctx) => [
          await ctx.requestFromParent("answer", 10),
          await ctx.requestFromParent("answer", 20),
        ],
      });
      const agent = defineAgent({
        name: "parent",
        agents: [asking],
        handlers: { answer },
        run: async (ctx) => {
          const child = ctx.spawnAgent(local(asking));
          await ctx.waitForSignal("go");
          return ctx.waitForChild(child);
        },
      });
      const first = open({ storage, agents: [agent] });
      await startOlder(first.runtime, storage, agent);
      await until(() => asked === 2, "it is asked twice");
      await turns(30);
      await first.runtime.close();
      const { runtime } = open({ storage, agents: [agent] });
      await runtime.resume("s");
      await turns(50);
      expect(await storage.reader.pendingSignals("s")).toHaveLength(2);
      await runtime.signal("s", "go");
      const twice = when === "by the next one";
      expect(await runtime.handle("s").result()).toEqual([11, twice ? 23 : 22]);
      expect(asked).toBe(twice ? 3 : 2);
    },
  );

  test("a session that starts over may spawn the full number of children in each life", async () => {
    const limits = { children: 4 };
    let lives = 0;
    const agent = defineAgent({
      name: "parent",
      agents: [done],
      run: async (ctx) => {
        const children = [1, 2, 3].map((n) => ctx.spawnAgent(local(done), n));
        for (const child of children) await ctx.waitForChild(child);
        const life = await ctx.run("life", () => ++lives);
        if (life < 3) await ctx.waitForSignal(`${life}`);
        ctx.enablePersistence();
        await ctx.waitForSignal("3");
        return ctx.waitForChild(ctx.spawnAgent(local(done)));
      },
    });
    expect(await live(agent, { limits }, "1", "2", "3")).toMatchObject({
      status: "completed",
      children: 4,
    });
  });

  test("a parent gets its child's end for each wait in each life", async () => {
    const agent = defineAgent({
      name: "parent",
      agents: [done],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(done));
        const told = [await ctx.waitForChildEvent(child), await ctx.waitForChildEvent(child)];
        await ctx.waitForSignal("go");
        return told.map(({ type }) => type);
      },
    });
    const output = '["completed","completed"]';
    expect(await live(agent, {}, "go", "go")).toMatchObject({ status: "completed", output });
  });

  test.each([
    { what: "agent", ask: (life: number) => [local(life === 1 ? done : other), 1] as const },
    { what: "input", ask: (life: number) => [local(done), life] as const },
  ])("a parent does not get the output of another $what as its child's", async ({ ask }) => {
    let lives = 0;
    const agent = defineAgent({
      name: "parent",
      agents: [done, other],
      run: async (ctx) => {
        const life = await ctx.run("life", () => ++lives);
        const [mode, input] = ask(life);
        const child = ctx.spawnAgent(mode, input);
        const told = await ctx
          .waitForChild(child)
          .catch(({ cause }: { cause: { code: string } }) => cause.code);
        await ctx.waitForSignal("go");
        return told;
      },
    });
    expect(await live(agent, {}, "go")).toMatchObject({ status: "completed", output: '"session_exists"' });
  });
});
