// Orderly stops of a program: they cost no attempt, and nothing that ran is lost.

import { UncertainEffectError } from "@holdfast/core";
import { countingRandom, gate, mortal, TestClock, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const ID = "ses-1";
type Open = { runtime: Runtime; clock: TestClock };

function open(storage: MemoryStorage, agent: Agent, concurrency = 10): Open {
  const clock = new TestClock();
  const options = { storage, clock, random: countingRandom(), development: false, adopt: false };
  return { runtime: createRuntime({ ...options, agents: [agent], concurrency }), clock };
}

async function stop({ runtime, clock }: Open, graceMs = 100): Promise<void> {
  const closed = runtime.close({ graceMs });
  await clock.advance(graceMs);
  await clock.advance(3_000);
  await closed;
}

/** An agent with one step, which stops at once when it is told to, unless the gate is open. */
function caller(options: object) {
  const done = gate();
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "caller",
    run: async (ctx) =>
      ctx
        .run(
          "call",
          async ({ attempt, signal }) => {
            attempts.push(attempt);
            await Promise.race([
              done.opened,
              new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason as Error))),
            ]);
            return `answer ${attempt}`;
          },
          options,
        )
        .catch((error: unknown) => ({
          isUncertain: UncertainEffectError.is(error),
          why: (error as Error).message,
        })),
  });
  return { agent, done, attempts };
}

test.each([{}, { retry: { maxAttempts: 3 } }, { retry: { maxAttempts: 1 } }])(
  "nine rollouts within a step cost no attempt (%o)",
  async (options) => {
    const storage = new MemoryStorage();
    const { agent, done, attempts } = caller(options);
    let process = open(storage, agent);
    await process.runtime.start(agent, undefined, { sessionId: ID });
    for (let rollout = 1; rollout < 10; rollout++) {
      await until(() => attempts.length === rollout, `attempt ${rollout}`);
      await stop(process);
      process = open(storage, agent);
      await process.runtime.resume(ID);
    }
    await until(() => attempts.length === 10, "the last attempt");
    done.open();
    expect(await process.runtime.handle(ID).result()).toBe("answer 10");
    await process.runtime.close();
  },
);

test("a step that ends within the grace is not repeated, and its agent goes on in the next process", async () => {
  const storage = new MemoryStorage();
  const { agent, done, attempts } = caller({});
  const first = open(storage, agent);
  await first.runtime.start(agent, undefined, { sessionId: ID });
  await until(() => attempts.length === 1, "the step");
  const closed = first.runtime.close({ graceMs: 1_000 });
  await first.clock.advance(900);
  done.open();
  await closed;
  const second = open(storage, agent);
  expect(await (await second.runtime.resume(ID)).result()).toBe("answer 1");
  expect(attempts).toEqual([1]);
  await second.runtime.close();
});

test("an effect that happens once and outlasts the grace is uncertain", async () => {
  const storage = new MemoryStorage();
  const { agent, attempts } = caller({ effect: "once" });
  const first = open(storage, agent);
  await first.runtime.start(agent, undefined, { sessionId: ID });
  await until(() => attempts.length === 1, "the step");
  await stop(first);
  const second = open(storage, agent);
  const why = expect.stringContaining("the grace was over") as string;
  expect(await (await second.runtime.resume(ID)).result()).toEqual({ isUncertain: true, why });
  expect(attempts).toEqual([1]);
  await second.runtime.close();
});

test("a step that waits for its turn has not begun, and certainly has no effect", async () => {
  const storage = new MemoryStorage();
  const done = gate();
  const began: string[] = [];
  const agent = defineAgent({
    name: "caller",
    run: (ctx) => {
      const step = (name: string) =>
        ctx.run(name, async ({ attempt }) => (began.push(`${name} ${attempt}`), await done.opened), {
          ...(name === "pay" ? { effect: "once" as const } : {}),
          retry: { maxAttempts: 1 },
        });
      return Promise.allSettled([step("first"), step("pay")]).then((all) => all.map(({ status }) => status));
    },
  });
  const first = open(storage, agent, 1);
  await first.runtime.start(agent, undefined, { sessionId: ID });
  await until(() => began.length === 1, "the first step");
  await stop(first);
  const second = open(storage, agent);
  const handle = await second.runtime.resume(ID);
  await until(() => began.length === 3, "both steps");
  done.open();
  expect(await handle.result()).toEqual(["fulfilled", "fulfilled"]);
  expect(began.toSorted()).toEqual(["first 1", "first 2", "pay 1"]);
  await second.runtime.close();
});

test("an attempt that follows a hand-over counts if it is lost", async () => {
  const storage = new MemoryStorage();
  const { agent, attempts } = caller({ retry: { maxAttempts: 1 } });
  const first = open(storage, agent);
  await first.runtime.start(agent, undefined, { sessionId: ID });
  await until(() => attempts.length === 1, "the step");
  await stop(first);
  const dying = mortal(storage);
  const second = open(dying.storage as MemoryStorage, agent);
  await second.runtime.resume(ID);
  await until(() => attempts.length === 2, "the second attempt");
  dying.die();
  vanishRuntime(second.runtime);
  const third = open(storage, agent);
  const why = expect.stringContaining("its outcome is unknown") as string;
  expect(await (await third.runtime.resume(ID)).result()).toEqual({ isUncertain: false, why });
  expect(attempts).toEqual([1, 2]);
  await third.runtime.close();
});

test("a session pauses when the same step was cut off ten times, and its reason names the grace", async () => {
  const storage = new MemoryStorage();
  const { agent, attempts } = caller({});
  for (let rollout = 1; rollout <= 10; rollout++) {
    const process = open(storage, agent);
    if (rollout === 1) await process.runtime.start(agent, undefined, { sessionId: ID });
    else await process.runtime.resume(ID);
    await until(() => attempts.length === rollout, `attempt ${rollout}`);
    await stop(process);
  }
  const last = open(storage, agent);
  expect(await last.runtime.handle(ID).session()).toMatchObject({
    status: "paused",
    error: {
      message: expect.stringContaining('task "call" was cut off 10 times'),
      fix: expect.stringContaining("--grace"),
    },
  });
  await last.runtime.close();
});
