// Pauses that a task asks for, as a person sees them: a provider's usage limit, and refused credentials.

import { defined, HoldfastError, PauseError, type PauseRequest } from "@holdfast/core";
import { TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, type TaskContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";
import { QUOTA_WAITS_MAX } from "../tasks/wanting-patch.ts";

const HOUR = 3_600_000;

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = (options.clock ?? new TestClock()) as TestClock;
  const runtime = createRuntime({ ...options, storage, clock, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

/** An agent that calls a tool and then a provider, which answers as `answer` says: a text, or an error. */
function caller(answer: (attempt: number) => string | Error, effect?: "once") {
  const ran: string[] = [];
  const tool = defineTask({ name: "tool", run: () => void ran.push("tool") });
  const provider = defineTask({
    name: "provider",
    retry: { initialDelayMs: 1, maxDelayMs: 1, ...(effect === "once" ? {} : { maxAttempts: 3 }) },
    ...defined({ effect }),
    cost: () => ({ maxTokens: 100 }),
    run: (_: undefined, task: TaskContext) => {
      ran.push("call");
      const given = answer(ran.filter((one) => one === "call").length);
      task.reportUsage({ model: "m", inputTokens: 0, outputTokens: 0 });
      if (given instanceof Error) throw given;
      return given;
    },
  });
  const agent = defineAgent({
    name: "caller",
    tasks: [tool, provider],
    run: async (ctx) => {
      await ctx.scheduleTask(tool, undefined);
      return ctx.scheduleTask(provider, undefined);
    },
  });
  return { agent, ran };
}

function limited(pause: Omit<Extract<PauseRequest, { reason: "quota" }>, "reason" | "pool"> = {}) {
  return new PauseError("quota_exceeded", "provider m: its usage limit is reached", {
    fix: "wait for the reset, or use another model",
    pause: { reason: "quota", pool: "m", ...pause },
  });
}

const refused = new PauseError("model_auth", "provider m refused the key", {
  fix: "set M_KEY",
  pause: { reason: "auth_required" },
});

const paused = (runtime: Runtime, sessionId = "s") =>
  until(async () => (await runtime.handle(sessionId).session()).status === "paused", "it pauses");

test("a usage limit pauses the session, and an unpause asks again without repeating what was done", async () => {
  const { runtime, clock } = open();
  const resetsAt = clock.now() + HOUR;
  const { agent, ran } = caller((attempt) => (attempt === 1 ? limited({ resetsAt }) : "answer"));
  const handle = await runtime.start(agent, undefined, { sessionId: "s" });
  expect(await handle.settled()).toMatchObject({
    status: "paused",
    fault: {
      code: "quota_exceeded",
      message: "session s is paused (quota): provider m: its usage limit is reached",
      fix: expect.stringContaining("wait for the reset, or use another model. Then `holdfast resume s`"),
    },
  });
  expect(await handle.session()).toMatchObject({ pauseReason: "quota", quota: { pool: "m", resetsAt } });
  await clock.advance(3 * HOUR);
  expect((await handle.session()).status).toBe("paused"); // Nobody asked that it continues then.
  await handle.unpause();
  expect(await handle.result()).toBe("answer");
  expect(ran).toEqual(["tool", "call", "call"]);
  const session = await handle.session();
  expect([session.quota, session.pauseReason, session.error]).toEqual([undefined, undefined, undefined]);
});

describe("a session that the user wants to continue at the reset", () => {
  test("it continues then, also in another process", async () => {
    const first = open();
    const { clock, storage } = first;
    const resetsAt = clock.now() + HOUR;
    const { agent, ran } = caller((attempt) =>
      attempt === 1 ? limited({ resetsAt, resumeAtReset: true }) : "answer",
    );
    await first.runtime.start(agent, undefined, { sessionId: "s" });
    await paused(first.runtime);
    vanishRuntime(first.runtime);
    const { runtime } = open({ storage, clock, agents: [agent] });
    const result = runtime.handle("s").result();
    await clock.advance(HOUR - 1);
    expect(ran).toEqual(["tool", "call"]);
    await clock.advance(1);
    expect(await result).toBe("answer");
    expect(ran).toEqual(["tool", "call", "call"]);
  });

  test("it waits for a person after its limit was not reset so many times in a row", async () => {
    const { runtime, clock } = open();
    const { agent, ran } = caller(() => limited({ resetsAt: clock.now() + HOUR, resumeAtReset: true }));
    await runtime.start(agent, undefined, { sessionId: "s" });
    for (let n = 0; n < QUOTA_WAITS_MAX + 3; n++) {
      await paused(runtime);
      await clock.advance(HOUR);
    }
    await until(async () => (await runtime.handle("s").session()).quota?.resumesAt === undefined, "it stays");
    expect(ran.filter((one) => one === "call")).toHaveLength(QUOTA_WAITS_MAX + 1);
    expect(await runtime.handle("s").session()).toMatchObject({ status: "paused", pauseReason: "quota" });
  });

  test.each([
    ["no time", undefined],
    ["a time in a hundred days", 2_400 * HOUR],
    ["a time that is none", Number.NaN],
  ])("it waits for a person where the provider named %s", async (_, after) => {
    const { runtime, clock } = open();
    const resetsAt = after === undefined ? {} : { resetsAt: clock.now() + after };
    const { agent } = caller(() => limited({ ...resetsAt, resumeAtReset: true }));
    const handle = await runtime.start(agent, undefined, { sessionId: "s" });
    await handle.settled();
    expect((await handle.session()).quota).toEqual({ pool: "m" });
  });

  test("a pause by a person takes the reset away", async () => {
    const { runtime, clock } = open();
    const resetsAt = clock.now() + HOUR;
    const { agent, ran } = caller(() => limited({ resetsAt, resumeAtReset: true }));
    const handle = await runtime.start(agent, undefined, { sessionId: "s" });
    await paused(runtime);
    await handle.pause();
    await clock.advance(2 * HOUR);
    expect((await handle.session()).quota).toEqual({ pool: "m", resetsAt });
    expect(ran).toEqual(["tool", "call"]);
  });
});

test("refused credentials pause the session, and the error names the repair", async () => {
  const { runtime } = open();
  const { agent, ran } = caller((attempt) => (attempt === 1 ? refused : "answer"));
  const handle = await runtime.start(agent, undefined, { sessionId: "s" });
  expect(await handle.settled()).toMatchObject({
    status: "paused",
    fault: { code: "model_auth", fix: expect.stringContaining("set M_KEY. Then `holdfast resume s`") },
  });
  expect(await handle.session()).toMatchObject({ pauseReason: "auth_required", error: { fix: "set M_KEY" } });
  await handle.unpause();
  expect(await handle.result()).toBe("answer");
  expect(ran).toEqual(["tool", "call", "call"]);
});

test.each([
  ["a code", "auth_required", { reason: "auth_required" }],
  ["a reason", "model_auth", { reason: "no_key" }],
  ["a limit without a name", "quota_exceeded", { reason: "quota", resetsAt: 5 }],
  ["no pause at all", "quota_exceeded", undefined],
])(
  "a pause with %s that is unknown fails the task at once, and the error says what is known",
  async (_, code, pause) => {
    const { runtime } = open();
    const { agent, ran } = caller(
      () => new PauseError(code as "usage", "no key", { pause: pause as PauseRequest }),
    );
    const handle = await runtime.start(agent, undefined, { sessionId: "s" });
    expect(await handle.settled()).toMatchObject({
      status: "failed",
      error: {
        code: "task_failed",
        cause: {
          code: "usage",
          message: expect.stringMatching(/^a PauseError has a (code|pause) that is not one of Holdfast's$/),
          expected: expect.stringMatching(/docs\/errors\.md|auth_required/),
        },
      },
    });
    expect(ran).toEqual(["tool", "call"]);
  },
);

test("attempts that paused their session do not count toward the attempts of their task", async () => {
  const { runtime, clock } = open();
  const busy = new HoldfastError("model_unavailable", "busy");
  const { agent } = caller((attempt) => (attempt <= 4 ? refused : attempt <= 6 ? busy : "answer"));
  const handle = await runtime.start(agent, undefined, { sessionId: "s" });
  for (let n = 0; n < 4; n++) {
    await handle.settled();
    await handle.unpause();
  }
  for (let n = 0; n < 20; n++) await clock.advance(1);
  expect(await handle.result()).toBe("answer");
});

test("a task whose effect happens once fails instead, because it may have no other attempt", async () => {
  const { runtime } = open();
  const { agent } = caller(() => refused, "once");
  const handle = await runtime.start(agent, undefined, { sessionId: "s" });
  expect(await handle.settled()).toMatchObject({
    status: "failed",
    error: { code: "task_failed", cause: { code: "model_auth" } },
  });
});

test("a session that is cancelled while it waits for its limit does not pause again", async () => {
  const { runtime } = open();
  const { agent } = caller(() => limited());
  const handle = await runtime.start(agent, undefined, { sessionId: "s" });
  await paused(runtime);
  await handle.cancel();
  expect(await handle.settled()).toMatchObject({
    status: "failed",
    error: { cause: { code: "quota_exceeded" } },
  });
  expect((await handle.session()).quota).toBeUndefined();
});

test("a session with a budget pays nothing for the attempt that met the limit", async () => {
  const { runtime } = open();
  const { agent } = caller((attempt) => (attempt < 4 ? limited() : "answer"));
  const handle = await runtime.start(agent, undefined, { sessionId: "s", budget: { maxTokens: 150 } });
  for (let n = 0; n < 3; n++) {
    await handle.settled();
    expect((await handle.session()).account).toMatchObject({ spent: { tokens: 0 }, reserved: { tokens: 0 } });
    await handle.unpause();
  }
  expect(await handle.result()).toBe("answer");
});
