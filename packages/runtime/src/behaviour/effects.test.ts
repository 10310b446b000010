// Effect classes: what follows when the process of an attempt dies.

import {
  AttemptLostError,
  defined,
  TaskFailedError,
  UncertainEffectError,
  type EffectClass,
} from "@holdfast/core";
import { gate, journalOf, releaseClaim, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, defineTask, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

/** A payment whose first attempt is running when its process dies. */
function payment(effect: EffectClass | undefined) {
  const paid = gate();
  const keys: string[] = [];
  const task = defineTask({
    name: "pay",
    ...defined({ effect }),
    run: async (amount: number, { idempotencyKey, attempt }) => {
      keys.push(idempotencyKey);
      if (attempt === 1 && keys.length === 1) await paid.opened;
      return `paid ${amount}`;
    },
  });
  return { task, keys };
}

/** Starts the session in a process that dies in the middle of the payment, and resumes it in another one. */
async function resumedAfterDeath(agent: Agent, keys: readonly string[], change?: Agent) {
  const storage = new MemoryStorage();
  const open = (owner: string, agents: Agent[]): Runtime =>
    createRuntime({ storage, clock: new TestClock(), owner, agents, development: false });
  const dying = open("dying", [agent]);
  await dying.start(agent, undefined, { sessionId: "s" });
  await until(() => keys.length === 1, "the first attempt");
  vanishRuntime(dying);
  await releaseClaim(storage, "s");
  const runtime = open("survivor", [change ?? agent]);
  opened.push(runtime);
  return { handle: await runtime.resume("s"), storage, runtime };
}

test.each([undefined, "read", "repeatable", "keyed"] as const)(
  "a lost attempt of a task with the effect %s is run again, with the same idempotency key",
  async (effect) => {
    const { task, keys } = payment(effect);
    const agent = defineAgent({
      name: "payer",
      tasks: [task],
      run: async (ctx) => ctx.scheduleTask(task, 5),
    });
    const { handle } = await resumedAfterDeath(agent, keys);
    expect(await handle.result()).toBe("paid 5");
    expect(keys).toEqual([keys[0], keys[0]]);
  },
);

test("a lost attempt of an effect that happens once is an error of its own class, and is not run again", async () => {
  const { task, keys } = payment("once");
  const agent = defineAgent({
    name: "payer",
    tasks: [task],
    run: async (ctx) =>
      ctx
        .scheduleTask(task, 5)
        .catch((error: Error) => [
          error.name,
          error instanceof AttemptLostError && error instanceof TaskFailedError,
          UncertainEffectError.is(error),
          error.message,
        ]),
  });
  const { handle, storage } = await resumedAfterDeath(agent, keys);
  const message =
    'task "pay" failed: attempt 1 of 1 was running when its process ended; its outcome is unknown, ' +
    "and so is whether its effect has happened";
  expect(await handle.result()).toEqual(["UncertainEffectError", true, true, message]);
  expect(keys).toHaveLength(1);
  expect(await journalOf(storage, "s")).toMatchObject([
    { type: "started" },
    { type: "schedule_task", effect: "once" },
    { type: "task_failed" },
    {},
  ]);
});

test("an attempt with maxAttempts 1 and no declared effect is lost, and not uncertain", async () => {
  const { task, keys } = payment(undefined);
  const agent = defineAgent({
    name: "payer",
    tasks: [task],
    run: async (ctx) =>
      ctx
        .scheduleTask(task, 5, { retry: { maxAttempts: 1 } })
        .catch((error: Error) => [error.name, (error.cause as Error).name, UncertainEffectError.is(error)]),
  });
  const { handle } = await resumedAfterDeath(agent, keys);
  expect(await handle.result()).toEqual(["AttemptLostError", "AttemptLostError", false]);
});

test("a policy of several attempts repeats an effect that happens once after an error, and not after a loss", async () => {
  const { task, keys } = payment("once");
  const agent = defineAgent({
    name: "payer",
    tasks: [task],
    run: async (ctx) =>
      ctx.scheduleTask(task, 5, { retry: { maxAttempts: 5 } }).catch((error: Error) => error.name),
  });
  const { handle } = await resumedAfterDeath(agent, keys);
  expect(await handle.result()).toBe("UncertainEffectError");
  expect(keys).toHaveLength(1);

  let calls = 0;
  const flaky = defineTask({
    name: "flaky",
    effect: "once",
    run: () => {
      calls++;
      throw new Error("refused");
    },
  });
  const failing = defineAgent({
    name: "failing",
    tasks: [flaky],
    run: async (ctx) => ctx.scheduleTask(flaky, undefined).catch((error: Error) => error.message),
  });
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [failing] });
  opened.push(runtime);
  expect(await (await runtime.start(failing)).result()).toBe('task "flaky" failed: refused');
  expect(calls).toBe(1);
});

test("an uncertain effect is a value where the agent asks for one", async () => {
  const { task, keys } = payment("once");
  const agent = defineAgent({
    name: "payer",
    tasks: [task],
    run: async (ctx) => ctx.scheduleTask(task, 5, { onUncertain: "return" }),
  });
  const { handle } = await resumedAfterDeath(agent, keys);
  expect(await handle.result()).toEqual({
    uncertain: true,
    taskId: "s-0",
    message: expect.stringContaining("whether its effect has happened") as string,
  });
});

test.each([
  [true, "paid 5", 2],
  [false, "UncertainEffectError", 1],
])(
  "a person who is asked and answers %s decides whether the task runs again",
  async (approved, output, runs) => {
    const { task, keys } = payment("once");
    const agent = defineAgent({
      name: "payer",
      tasks: [task],
      run: async (ctx) =>
        ctx.scheduleTask(task, 5, { onUncertain: "ask" }).catch((error: Error) => error.name),
    });
    const { handle, runtime } = await resumedAfterDeath(agent, keys);
    await until(async () => (await handle.session()).status === "input_required", "the question");
    expect((await handle.session()).waits).toMatchObject([
      {
        type: "input",
        prompt: expect.stringMatching(/^Task "pay" was running .* Run it again\?$/) as string,
      },
    ]);
    await runtime.answer("s", { approved });
    expect(await handle.result()).toBe(output);
    expect(keys).toHaveLength(runs);
  },
);

test("on replay the recorded class counts, whatever the task declares now", async () => {
  const { task, keys } = payment("once");
  const agentOf = (effect: EffectClass): Agent => {
    const declared = { ...task, effect };
    return defineAgent({
      name: "payer",
      tasks: [declared],
      run: async (ctx) => ctx.scheduleTask(declared, 5).catch((error: Error) => error.name),
    });
  };
  const { handle } = await resumedAfterDeath(agentOf("once"), keys, agentOf("repeatable"));
  expect(await handle.result()).toBe("UncertainEffectError");
});

test.each([["defineTask", () => defineTask({ name: "x", effect: "twice" as EffectClass, run: () => 0 })]])(
  "%s refuses a class that there is not, and names those that there are",
  (_call, define) => {
    expect(define).toThrow(expect.objectContaining({ expected: expect.stringContaining("once") as string }));
  },
);
