// Tasks in threads of their own, over the public interface: their module is a file as an author writes it.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { AgentTracer, TraceEvent } from "@holdfast/core";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import {
  createRuntime,
  defineAgent,
  MemoryStorage,
  type AgentContext,
  type Runtime,
  type RuntimeOptions,
  type TaskDefinition,
} from "../../index.ts";

const RUNTIME = JSON.stringify(import.meta.resolve("@holdfast/runtime"));
const CORE = JSON.stringify(import.meta.resolve("@holdfast/core"));
const MODULE = `
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, threadId } from "node:worker_threads";
import { defineAgent, defineTask, NonRetryableError } from ${RUNTIME};
import { HoldfastError, PauseError } from ${CORE};

const inThread = import.meta.url;
const once = { maxAttempts: 1 };
const task = (name, run, more = {}) => defineTask({ name, inThread, retry: once, run, ...more });

export const block = task("block", ({ begun, until }) => {
  writeFileSync(begun, "");
  while (!existsSync(until));
  return threadId;
});
export const tell = task("tell", async (input, task) => {
  task.streamToken("to");
  task.streamToken("ken");
  task.progress({ done: 1 });
  task.reportUsage({ model: "m", inputTokens: 3, outputTokens: 4 });
  await task.signalSession("told", [input, task.secret("API_KEY")]);
  const { sessionId, attempt, overlaps, idempotencyKey, taskId } = task;
  const row = await task.readSession();
  const undeclared = await Promise.resolve().then(() => task.secret("OTHER")).catch((error) => error.message);
  return { sessionId, attempt, overlaps, hasKey: idempotencyKey !== "", hasId: taskId !== "", row: row.agent.name, undeclared };
}, { secrets: ["API_KEY"] });
export const fail = task("fail", ({ how }, { secret }) => {
  if (how === "status") throw Object.assign(new Error("key " + "sk-CANARY-0123456789"), { status: 429 });
  if (how === "final") throw new NonRetryableError("no use");
  if (how === "own") throw new HoldfastError("model_auth", "refused", { fix: "log in" });
  if (how === "pause") throw new PauseError("model_auth", "refused", { pause: { reason: "auth_required" } });
  if (how === "late") return delay(100_000).then(setTimeout(() => { throw new Error("later") }, 1));
  if (how === "exit") process.exit(3);
  if (how === "forged") {
    for (const forged of [null, { type: "done", output: "forged" }]) parentPort.postMessage(forged);
    throw new Error("its own");
  }
  return () => "a function";
}, { retry: { maxAttempts: 2, initialDelayMs: 1 }, secrets: ["API_KEY"] });
export const loop = task("loop", ({ until }, { attempt, overlaps }) => {
  while (attempt === 1 && !existsSync(until));
  return { isLater: attempt > 1, overlaps };
}, { retry: { maxAttempts: 10, initialDelayMs: 1 }, timeoutMs: 2_000 });
export const heed = task("heed", async ({ begun, ended }, { signal }) => {
  writeFileSync(begun, "");
  await delay(1_000_000, undefined, { signal }).catch(() => {});
  writeFileSync(ended, signal.reason.message);
});
const hidden = task("hidden", () => "never");
const below = task("below", () => threadId);
export const agent = defineAgent({ name: "has", tasks: [below], run: () => "" });
export default [hidden, below];
`;

const OPENS = `
import { createRuntime, defineTask, MemoryStorage } from ${RUNTIME};
export const served = defineTask({ name: "served", inThread: import.meta.url, retry: { maxAttempts: 1 }, run: () => 1 });
export const runtime = createRuntime({ storage: new MemoryStorage() });
`;

const SECRETS = new Map([["API_KEY", "sk-CANARY-0123456789"]]);

let folder: string;
let tasks: readonly TaskDefinition[];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-threads-"));
  writeFileSync(at("tasks.mjs"), MODULE);
  writeFileSync(at("opens.mjs"), OPENS);
  const {
    default: unexported,
    agent: _,
    ...exported
  } = (await import(pathToFileURL(at("tasks.mjs")).href)) as {
    readonly default: TaskDefinition[];
  } & Record<string, TaskDefinition>;
  const { served } = (await import(pathToFileURL(at("opens.mjs")).href)) as {
    readonly served: TaskDefinition;
  };
  tasks = [...Object.values(exported), ...unexported, served];
});
afterAll(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);

function open(options: Partial<RuntimeOptions> = {}): Runtime {
  const runtime = createRuntime({ storage: new MemoryStorage(), secrets: SECRETS, ...options });
  onTestFinished(() => runtime.close());
  return runtime;
}

const agentOf = (run: (ctx: AgentContext) => unknown) =>
  defineAgent({ name: "caller", tasks, run: async (ctx) => run(ctx) });

/** How a session of one task ends. */
async function settled(kind: string, input: unknown = {}, options: Partial<RuntimeOptions> = {}) {
  const handle = await open(options).start(agentOf((ctx) => ctx.scheduleTask(kind, input)));
  return { sessionId: handle.sessionId, ...(await handle.settled()) };
}

test("a task that blocks its thread leaves the event loop of the process free", async () => {
  const files = { begun: at("begun"), until: at("until") };
  const runtime = open();
  const handle = await runtime.start(agentOf((ctx) => ctx.scheduleTask("block", files)));
  const neighbour = await runtime.start(
    defineAgent({ name: "neighbour", run: (ctx) => ctx.run("step", () => delay(5, "done")) }),
  );
  expect(await neighbour.result()).toBe("done");
  writeFileSync(files.until, "");
  expect(await handle.result()).toBeGreaterThan(0);
});

test("a task in a thread has the whole context of a task", async () => {
  const events: TraceEvent[] = [];
  const tracer: AgentTracer = { trace: (event) => void events.push(event) };
  const runtime = open({ tracer });
  const handle = await runtime.start(
    agentOf(async (ctx) => [await ctx.scheduleTask("tell", "in"), await ctx.waitForSignal("told")]),
  );
  const context = {
    sessionId: handle.sessionId,
    attempt: 1,
    overlaps: false,
    hasKey: true,
    hasId: true,
    row: "caller",
    undeclared: "the secret OTHER is not declared",
  };
  expect(await handle.result()).toEqual([context, ["in", "[secret]"]]);
  const deltas = events.flatMap((event) => (event.type === "task_delta" ? [event.delta] : []));
  const tokens = deltas.flatMap((delta) => (delta.type === "token" ? [delta.text] : []));
  expect(tokens.join("")).toBe("token");
  expect(deltas).toContainEqual({ type: "progress", data: { done: 1 } });
  expect(deltas).toContainEqual({ type: "usage", usage: { model: "m", inputTokens: 3, outputTokens: 4 } });
});

test.for([
  ["status", 2, { message: "key [secret]", data: { status: 429 } }],
  ["final", 1, { name: "NonRetryableError", message: "no use" }],
  ["own", 1, { code: "model_auth", fix: "log in" }],
  ["late", 2, { message: "later" }],
  ["exit", 2, { message: 'the thread of task "fail" ended with exit code 3 before its handler did' }],
  ["forged", 2, { message: "its own" }],
  ["function", 1, { code: "usage", message: 'the output of task "fail" cannot be copied between threads' }],
] as const)("an error of a thread is the error of its task: %s", async ([how, attempts, cause]) => {
  const storage = new MemoryStorage();
  const { sessionId, ...end } = await settled("fail", { how }, { storage });
  expect(end).toMatchObject({ status: "failed", error: { cause } });
  const journal = await storage.reader.journal(sessionId, 0, 100);
  expect(journal.filter(({ type }) => type === "attempt_failed").length + 1).toBe(attempts);
});

test("a thread's request for a pause pauses the session", async () => {
  const storage = new MemoryStorage();
  const { sessionId, status } = await settled("fail", { how: "pause" }, { storage });
  expect(status).toBe("paused");
  expect(await storage.reader.session(sessionId)).toMatchObject({ pauseReason: "auth_required" });
});

test("a thread that outlives its time-out is ended, and the next attempt runs alone", async () => {
  const never = { until: at("never") };
  const { output } = (await settled("loop", never, { limits: { cancelGraceMs: 5_000 } })) as {
    output: unknown;
  };
  expect(output).toEqual({ isLater: true, overlaps: false });
});

test("a thread learns that it is to stop", async () => {
  const files = { begun: at("heeding"), ended: at("heeded") };
  const runtime = open();
  await runtime.start(agentOf((ctx) => ctx.scheduleTask("heed", files)));
  await vi.waitUntil(() => existsSync(files.begun), { timeout: 30_000 });
  await runtime.close();
  expect(readFileSync(files.ended, "utf8")).toContain("the task was aborted: its process was stopped");
});

test("a task of an exported agent is found, and one that is not exported is refused", async () => {
  expect(await settled("below")).toMatchObject({ status: "completed" });
  const message = 'task "hidden" is not exported by the module of its `inThread`';
  expect(await settled("hidden")).toMatchObject({
    status: "failed",
    error: { cause: { code: "usage", message } },
  });
});

test("a module that opens a runtime is refused in a thread", async () => {
  const message = 'the module of task "served" opens a runtime when a thread imports it';
  expect(await settled("served")).toMatchObject({
    status: "failed",
    error: { cause: { code: "usage", message } },
  });
});

test("a function of ctx.run cannot run in a thread, and the error says why", async () => {
  const handle = await open().start(
    agentOf((ctx) => ctx.run("step", () => 1, { inThread: import.meta.url } as object)),
  );
  const message = "a function of ctx.run cannot run in a thread, because it shares variables with its agent";
  expect(await handle.settled()).toMatchObject({ fault: { code: "usage", message } });
});
