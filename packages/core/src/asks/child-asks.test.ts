// Asks for children contain only values that every storage can keep. Otherwise storage would refuse the whole
// batch.

import { KernelStand } from "@holdfast/testkit/kernel-stand";
import { expect, test } from "vitest";
import type { AgentContext } from "../kernel/context.ts";

const options = { agents: ["one"] };
const one = { type: "local", name: "one" } as const;

test("times of children are whole numbers, and `Infinity` is no limit", async () => {
  const stand = new KernelStand(async (ctx) => {
    const child = ctx.spawnAgent(one, 1, { timeoutMs: 1_000 / 3 });
    ctx.spawnAgent(one, 2, { timeoutMs: Infinity });
    ctx.cancelChild(child, { graceMs: 0.5 });
    return 1;
  }, options);
  expect(await stand.start()).toMatchObject({ type: "ended" });
  const [first, second, cancel] = stand.seal().effects;
  expect(first).toMatchObject({ deadlineAt: 1_334 });
  expect(second).not.toHaveProperty("deadlineAt");
  expect(cancel).toMatchObject({ graceMs: 1 });
});

test("a child and a successor demand the machine, the labels and the version that they were asked for with", async () => {
  const demands = { machine: "m1", labels: { gpu: "yes" } };
  const versioned = { type: "remote", name: "one", version: "7" } as const;
  const stand = new KernelStand(async (ctx) => {
    ctx.spawnAgent(versioned, 1, demands);
    ctx.spawnAgent(one, 1);
    return ctx.handoffToAgent(one, 1, { ...demands, completion: "immediate" });
  }, options);
  expect(await stand.start()).toMatchObject({ type: "ended" });
  const [child, plain, successor] = stand.seal().effects;
  const placement = { demands: { machine: "m1", gpu: "yes" } };
  expect(child).toMatchObject({ agent: { version: "7" }, placement });
  expect(plain).not.toHaveProperty("placement");
  expect(successor).toMatchObject({ agent: { version: "1" }, placement });
});

const none = undefined as unknown as typeof one;
const wrong: readonly (readonly [string, (ctx: AgentContext) => unknown])[] = [
  ['"one" as mode', (ctx) => ctx.spawnAgent("one" as unknown as typeof one)],
  ["undefined as mode", (ctx) => ctx.spawnAgent(none)],
  ["undefined as mode", (ctx) => ctx.handoffToAgent(none)],
  ["undefined as mode", (ctx) => ctx.handoffToAgent(none, 1, { completion: "immediate" })],
  ["a time-out of -1 ms", (ctx) => ctx.spawnAgent(one, 1, { timeoutMs: -1 })],
  ["a time-out of NaN ms", (ctx) => ctx.spawnAgent(one, 1, { timeoutMs: Number.NaN })],
  ['"some" as persistence', (ctx) => ctx.spawnAgent(one, 1, { persistence: "some" as "full" })],
  ['"stay" as onParentEnd', (ctx) => ctx.spawnAgent(one, 1, { onParentEnd: "stay" as "wait" })],
  ['"all" as shared', (ctx) => ctx.spawnAgent(one, 1, { shared: "all" as "none" })],
  ["as shared", (ctx) => ctx.spawnAgent(one, 1, { shared: { all: 1 } as unknown as "none" })],
  ["as labels", (ctx) => ctx.spawnAgent(one, 1, { labels: { gpu: 1 as unknown as string } })],
  ["7 as machine", (ctx) => ctx.handoffToAgent(one, 1, { machine: 7 as unknown as string })],
  ['no option "timeout"', (ctx) => ctx.spawnAgent(one, 1, { timeout: 7 } as object)],
  ["as respawn", (ctx) => ctx.spawnAgent(one, 1, { respawn: { maxAttempts: "2" as unknown as number } })],
  ['"now" as completion', (ctx) => ctx.handoffToAgent(one, 1, { completion: "now" as "immediate" })],
  ["7 as reason", (ctx) => ctx.cancelChild(ctx.spawnAgent(one), { reason: 7 as unknown as string })],
  ["NaN ms to clean up", (ctx) => ctx.cancelChild(ctx.spawnAgent(one), { graceMs: Number.NaN })],
  ["Infinity ms to clean up", (ctx) => ctx.cancelChild(ctx.spawnAgent(one), { graceMs: Infinity })],
];

test.each(wrong)("%s is refused when it is asked for, and nothing of it is committed", async (what, ask) => {
  const stand = new KernelStand(async (ctx) => {
    await ask(ctx);
  }, options);
  expect(await stand.start()).toMatchObject({
    type: "faulted",
    fault: { code: "usage", message: expect.stringContaining(what) },
  });
  expect(() => stand.seal()).toThrow();
});
