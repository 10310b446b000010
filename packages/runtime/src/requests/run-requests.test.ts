import { storageWith } from "@holdfast/testkit/test-runtime";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, MemoryStorage, Watchdog } from "../index.ts";

test("a start answers although another process has claimed the new session before this one", async () => {
  const shared = new MemoryStorage();
  const storage = storageWith(shared, {
    claim: async (claim) => {
      await shared.claim({ ...claim, owner: "a faster process", unlessHeld: true });
      return shared.claim(claim);
    },
  });
  const watchdog = new Watchdog(); // With one, the session is stored before it is claimed.
  const runtime = createRuntime({ storage, watchdog });
  onTestFinished(() => Promise.all([runtime.close(), watchdog.close()]).then(() => {}));
  const { created } = await runtime.start(defineAgent({ name: "agent", run: async () => "done" }));
  expect(created).toBe(true);
  expect(runtime.live).toBe(0);
});

test("a start under a taken id finds the session of the same agent, input and environment, and no other", async () => {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  onTestFinished(() => runtime.close());
  type Refund = { readonly cents: number } | undefined;
  const refund = defineAgent({ name: "refund", run: (ctx, asked: Refund) => ctx.run("refund", () => asked) });
  await (await runtime.start(refund, { cents: 5 }, { sessionId: "A-1" })).result();
  const again = await runtime.start(refund, { cents: 5 }, { sessionId: "A-1" });
  expect([again.created, await again.result()]).toEqual([false, { cents: 5 }]);
  const charge = defineAgent({ name: "charge", run: async (_ctx, asked: Refund) => asked });
  for (const [agent, input] of [
    [refund, { cents: 9 }],
    [refund, undefined],
    [charge, { cents: 5 }],
  ] as const)
    await expect(runtime.start(agent, input, { sessionId: "A-1" })).rejects.toMatchObject({
      code: "session_exists",
      expected: 'agent "refund" with the input and the environment of its start',
    });
  const environment = { values: { REGION: "us" } };
  await expect(runtime.start(refund, { cents: 5 }, { sessionId: "A-1", environment })).rejects.toThrow(
    "was started with another environment",
  );
  const inUs = { sessionId: "A-3", environment };
  expect((await runtime.start(refund, { cents: 5 }, inUs)).created).toBe(true);
  expect((await runtime.start(refund, { cents: 5 }, inUs)).created).toBe(false);
  expect((await runtime.start(charge, { cents: 5 }, { sessionId: "A-2" })).created).toBe(true);
  expect(await runtime.handle("A-1").result()).toEqual({ cents: 5 });
});
