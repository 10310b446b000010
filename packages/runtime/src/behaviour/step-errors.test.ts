// Errors of steps as their agents see them: the properties that they keep, and the codes that steer retries.

import { HoldfastError, TaskFailedError, type ErrorCode } from "@holdfast/core";
import { countingRandom, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const ID = "ses-1";

function open(storage: MemoryStorage, agents: readonly Agent[]): { runtime: Runtime; clock: TestClock } {
  const clock = new TestClock();
  const options = { storage, agents, clock, random: countingRandom(), development: false, adopt: false };
  return { runtime: createRuntime(options), clock };
}

test("an agent tells errors apart by their properties, and sees the same of them after a restart", async () => {
  const storage = new MemoryStorage();
  const seen: unknown[] = [];
  const agent = defineAgent({
    name: "caller",
    run: async (ctx) => {
      try {
        await ctx.run(
          "call",
          () => {
            const cause = new AggregateError([Object.assign(new Error("a"), { status: 500 })], "all failed");
            const details = { status: 429, code: 14, issues: [{ path: ["a"] }], response: { body: "big" } };
            throw Object.assign(new Error("slow down", { cause }), details);
          },
          { retry: { maxAttempts: 1 } },
        );
      } catch (error) {
        if (!TaskFailedError.is(error)) throw error;
        const { status, code, issues, response, cause } = error.cause;
        const { errors = [] } = cause as { errors?: { status?: number }[] };
        seen.push({ status, code, issues, response, deep: errors[0]?.status });
      }
      await ctx.waitForSignal("more");
      return seen.at(-1);
    },
  });
  const first = open(storage, []);
  await first.runtime.start(agent, undefined, { sessionId: ID });
  await first.clock.advance(1_000);
  await first.runtime.close();
  const second = open(storage, [agent]);
  const handle = await second.runtime.resume(ID);
  await handle.signal("more");
  const expected = { status: 429, code: 14, issues: [{ path: ["a"] }], deep: 500 };
  expect(await handle.result()).toEqual(expected);
  expect(seen).toEqual([expected, expected]);
  await second.runtime.close();
});

test("a foreign error is tried again whatever its code, and one of ours is not if that cannot help", async () => {
  const { runtime, clock } = open(new MemoryStorage(), []);
  const attempts: Record<string, number> = {};
  const agent = defineAgent({
    name: "caller",
    run: async (ctx, make: string) => {
      const { code, isOwn } = JSON.parse(make) as { code: ErrorCode; isOwn: boolean };
      await ctx.run("call", () => {
        attempts[make] = (attempts[make] ?? 0) + 1;
        throw isOwn ? new HoldfastError(code, "x") : Object.assign(new Error("x"), { code });
      });
    },
  });
  const makes = ["usage", "not_json", "policy_denied", "unavailable", "cancelled"].map((code) =>
    JSON.stringify({ code, isOwn: false }),
  );
  const own = JSON.stringify({ code: "invalid_input", isOwn: true });
  for (const make of [...makes, own])
    await runtime.start(agent, make, { sessionId: `ses-${make.replace(/\W+/g, "")}` });
  await clock.advance(60_000);
  expect(attempts).toEqual({ ...Object.fromEntries(makes.map((make) => [make, 3])), [own]: 1 });
  await runtime.close();
});
