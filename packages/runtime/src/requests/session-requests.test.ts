// `requestsOver`: requests in a process that drives nothing.

import { storageWith, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";
import { requestsOver } from "./session-requests.ts";

const asks = defineAgent({
  name: "asks",
  run: async (ctx) => [await ctx.waitForSignal("go"), await ctx.requestInput("which one?")],
});

test("a process that drives nothing sends signals and answers, without a subscription or a timer", async () => {
  const memory = new MemoryStorage();
  const runtime = createRuntime({ storage: memory, clock: new TestClock(), development: false });
  const { sessionId } = await runtime.start(asks);
  const asked: string[] = [];
  const requests = requestsOver(
    storageWith(memory, {
      subscribe: () => {
        asked.push("subscribe");
        return () => {};
      },
      claim: async () => {
        asked.push("claim");
        return { status: "not_found" };
      },
    }),
  );
  expect(await requests.signal(sessionId, "go", 1)).toEqual({ status: "stored" });
  await turns(10);
  expect(await requests.answer(sessionId, { approved: true })).toEqual({ status: "stored" });
  expect(await runtime.handle(sessionId).result()).toEqual([1, { approved: true }]);
  expect(await requests.cancel(sessionId)).toMatchObject({ status: "already_ended" });
  expect(asked).toEqual([]);
  await runtime.close();
});
