// Wrong arguments are refused at the call, before anything starts. The error says what was given, what is
// expected and how to fix it.

import { HoldfastError } from "@holdfast/core";
import { afterAll, describe, expect, test } from "vitest";
import { defineAgent, defineTask } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

const storage = new MemoryStorage();
const agent = defineAgent({ name: "a", run: async () => 1 });
const run = async (): Promise<number> => 1;
const schema = (validate: unknown) => ({ "~standard": { version: 1, vendor: "test", validate } });

type Row = readonly [what: string, call: (() => unknown) | ((runtime: never) => unknown), where: string];

// Decision 17: nobody can store the local variables of a free-form agent.
test("a checkpoint every turn is what the turn form does, and is refused beside run with the form to use", async () => {
  const every = { checkpoint: "every_turn" } as const;
  const error = errorOf(() => defineAgent({ name: "free", run, ...every } as never));
  expect(error).toMatchObject({
    name: "UsageError",
    fix: expect.stringContaining("turn: async (ctx, state)"),
  });
  const counts = defineAgent({
    name: "counts",
    ...every,
    initial: () => 0,
    turn: async (_, n: number) => (n < 3 ? { state: n + 1 } : { done: n }),
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const session = await runtime.start(counts);
  expect([await session.result(), (await session.session()).turn]).toEqual([3, 3]);
  await runtime.close();
});

describe("refused at once", () => {
  const define = (more: object) => () => defineAgent({ name: "a", run, ...more });
  const make = (more: object) => () => createRuntime({ storage, ...more });
  const task = (more: object) => () => defineTask({ name: "t", run, ...more });
  test.each<Row>([
    ["no runtime options", () => createRuntime(undefined as never), "createRuntime: options"],
    ["no storage", () => createRuntime({} as never), "createRuntime: storage"],
    ["a storage that is not awaited", make({ storage: Promise.resolve(storage) }), "createRuntime: storage"],
    ["agents that are functions", make({ agents: [run] }), "createRuntime: agents"],
    ["a limit that there is not", make({ limits: { dept: 1 } }), "createRuntime: limits"],
    ["a limit that is no number", make({ limits: { depth: NaN } }), "createRuntime: limits"],
    ["no attempts at once", make({ concurrency: 0 }), "createRuntime: concurrency"],
    ["an option that there is not", make({ agnets: [] }), "createRuntime: agnets"],
    ["no agent", () => defineAgent(undefined as never), "defineAgent: options"],
    ["a version that is a number", define({ version: 2 }), "defineAgent: version"],
    ["a schema that is none", define({ input: {} }), "defineAgent: input"],
    ["tasks that are none", define({ tasks: [undefined] }), "defineAgent: tasks"],
    ["handlers that are none", define({ handlers: { a: 5 } }), "defineAgent: handlers"],
    ["a checkpoint that is made at no known time", define({ checkpoint: true }), "defineAgent: checkpoint"],
    ["no task", () => defineTask(null as never), "defineTask: options"],
    ["a time-out that is a text", task({ timeoutMs: "5s" }), "defineTask: timeoutMs"],
    ["a cost that is none", task({ cost: 5 }), "defineTask: cost"],
  ])("%s", (_, call, where) => {
    const error = errorOf(call as () => unknown);
    expect(error).toMatchObject({ name: "UsageError", code: "usage", at: where });
    for (const part of [error.got, error.expected, error.fix]) expect(part).toMatch(/./);
  });

  test.each([
    ["a reducer that is none", { reducers: { a: 5 } }] as const,
    ["reducers in a list", { reducers: [] }] as const,
  ])("%s", (_, more) => {
    const state = { version: 1, initial: () => ({}), ...more };
    expect(errorOf(define({ state }))).toMatchObject({
      code: "usage",
      expected: expect.stringContaining("reducers"),
    });
  });
});

test("a task in the place of the name of a step is refused with the call that takes it", async () => {
  const charge = defineTask({ name: "charge", run: () => 1 });
  const confused = defineAgent({
    name: "confused",
    run: async (ctx) => {
      const error = errorOf(() => ctx.run(charge as never, () => 1));
      return [error.message, error.got, error.fix];
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  expect(await (await runtime.start(confused)).result()).toEqual([
    "the name of a task is no text",
    "object",
    "call a task of defineTask by ctx.scheduleTask(task, input)",
  ]);
  await runtime.close();
});

describe("refused by a runtime", () => {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  afterAll(() => runtime.close());
  const start = (options: unknown) => () => runtime.start(agent, 1, options as never);
  const schedule = (more: object) => () =>
    runtime.schedule({ cron: "* * * * *", timeZone: "UTC", ...more } as never);
  test.each<Row>([
    ["no agent", () => runtime.start(undefined as never), "start: agent"],
    ["options that are a text", start("id"), "start: options"],
    ["an option that there is not", start({ sesionId: "x" }), "start: sesionId"],
    ["an id that is a number", start({ sessionId: 5 }), "start: sessionId"],
    ["a budget that is a number", start({ budget: 5 }), "start: budget"],
    ["a persistence that is none", start({ persistence: "none" }), "start: persistence"],
    ["a signal without a name", () => runtime.signal("s", undefined as never), "signal: name"],
    [
      "a dedup key that is a number",
      () => runtime.signal("s", "a", 1, { dedupKey: 5 } as never),
      "signal: dedupKey",
    ],
    [
      "a question that is a text",
      () => runtime.answer("s", 1, { question: "1" } as never),
      "answer: question",
    ],
    ["no limits", () => runtime.setBudget("s", undefined as never), "setBudget: limits"],
    ["tasks of a fork", () => runtime.fork("s", { tasks: "keep" } as never), "fork: tasks"],
    ["a file that is a text", () => runtime.import("file" as never), "import: file"],
    [
      "a schedule without a zone",
      () => runtime.schedule({ cron: "* * * * *", start: { agent } } as never),
      "schedule: timeZone",
    ],
    ["a schedule of nothing", schedule({}), "schedule: start or signal"],
    [
      "a schedule of both",
      schedule({ start: { agent }, signal: { sessionId: "s", name: "n" } }),
      "schedule: start or signal",
    ],
  ])("%s", async (_, call, where) => {
    const error = await rejectionOf(call as () => Promise<unknown>);
    expect(error).toMatchObject({ name: "UsageError", code: "usage", at: where });
    for (const part of [error.got, error.expected, error.fix]) expect(part).toMatch(/./);
    expect(runtime.live).toBe(0);
  });

  test("an input that is a promise, also one that never settles", async () => {
    const never = new Promise<number>(() => {});
    expect(await rejectionOf(() => runtime.start(agent, never))).toMatchObject({
      code: "not_json",
      fix: "await it first",
    });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["answers nothing", () => undefined],
    ["has issues that are no list", () => ({ issues: 5 })],
  ])("a schema that %s", async (what, validate) => {
    const strange = defineAgent({ name: what, run, input: schema(validate) as never });
    expect(await rejectionOf(() => runtime.start(strange, 1))).toMatchObject({
      code: "usage",
      fix: "correct the schema",
    });
  });
});

// Without its check, each of these calls waited for years or without end, or lost its state silently.
describe("an agent's own asks", () => {
  const wait = (options: unknown) =>
    defineAgent({ name: "w", run: (ctx) => ctx.waitForSignal("go", options as never) });
  const withState = (state: object) =>
    defineAgent({
      name: "s",
      state: { version: 1, initial: () => ({ a: 1 }), ...state },
      run: async (ctx) => {
        ctx.update({ a: 2 });
        return ctx.state;
      },
    });
  test.each([
    ["a time-out that is a text", wait({ timeoutMs: "1" }), "a finite time"],
    ["an option that there is not", wait({ timeout: 5 }), "did you mean timeoutMs?"],
    ["options that are a text", wait("5s"), "as options"],
    ["a first state that is a promise", withState({ initial: async () => ({ a: 1 }) }), "a promise"],
    ["a first state with a Map in it", withState({ initial: () => ({ a: new Map() }) }), "Map"],
    ["no first state", withState({ initial: () => undefined }), "begins with nothing"],
    ["a reducer that gives nothing", withState({ reducers: { a: () => undefined } }), "gives nothing"],
  ])("%s", async (_, asking, says) => {
    const runtime = createRuntime({ storage: new MemoryStorage() });
    const settled = await (await runtime.start(asking, null)).settled();
    await runtime.close();
    expect(["paused", "failed"]).toContain(settled.status);
    expect(
      JSON.stringify(settled, (_key, value: unknown) => (value instanceof Error ? value.message : value)),
    ).toContain(says);
  });
});

function errorOf(call: () => unknown): HoldfastError {
  try {
    call();
  } catch (error) {
    return error as HoldfastError;
  }
  throw new Error("it was taken");
}

async function rejectionOf(call: () => unknown): Promise<HoldfastError> {
  try {
    await call();
  } catch (error) {
    return error as HoldfastError;
  }
  throw new Error("it was taken");
}
