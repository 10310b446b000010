// Secrets of agents and tasks: which handlers get them, and that none is recorded or shown.

import { type AgentTracer, defined, type TraceEvent } from "@holdfast/core";
import { declaredSecretsOf } from "@holdfast/system";
import { afterEach, describe, expect, test } from "vitest";
import {
  createRuntime,
  defineAgent,
  defineTask,
  MemoryStorage,
  type Runtime,
  type TaskContext,
} from "../index.ts";

const CANARY = "sk-CANARY-0123456789";
const SECRETS = new Map([["API_KEY", CANARY]]);

let runtime: Runtime | undefined;
afterEach(async () => {
  await runtime?.close();
  delete process.env["API_KEY"];
});

interface Ran {
  readonly settled: { readonly status: string; readonly error?: unknown; readonly output?: unknown };
  /** Everything that was recorded, and everything that was shown. */
  readonly recorded: string;
  readonly events: readonly TraceEvent[];
}

/** Run an agent whose only task is this function. */
async function ran(
  run: (task: TaskContext) => unknown,
  { declares = ["API_KEY"], secrets }: { declares?: readonly string[]; secrets?: Map<string, string> } = {},
): Promise<Ran> {
  const task = defineTask({
    name: "call",
    secrets: declares,
    retry: { maxAttempts: 1 },
    run: (_input, context) => run(context),
  });
  const agent = defineAgent({ name: "caller", tasks: [task], run: (ctx) => ctx.scheduleTask(task, null) });
  return runAgent(agent, secrets);
}

async function runAgent(agent: ReturnType<typeof defineAgent>, secrets?: Map<string, string>): Promise<Ran> {
  const storage = new MemoryStorage();
  const events: TraceEvent[] = [];
  const tracer: AgentTracer = { trace: (event) => void events.push(event) };
  runtime = createRuntime({ storage, tracer, ...defined({ secrets }) });
  const handle = await runtime.start(agent);
  const settled = await handle.settled();
  const recorded: unknown[] = [];
  for await (const line of runtime.export(handle.sessionId)) recorded.push(line);
  return {
    settled,
    recorded: JSON.stringify([recorded.map(String), await handle.session()]),
    events,
  };
}

describe("a handler gets a secret that its task declares", () => {
  test("the value comes from the given source, and is used without being recorded", async () => {
    const { settled, recorded } = await ran((task) => task.secret("API_KEY").length, { secrets: SECRETS });
    expect(settled).toMatchObject({ status: "completed", output: CANARY.length });
    expect(recorded).not.toContain("CANARY");
  });

  test("the value comes from the environment when no source is given", async () => {
    process.env["API_KEY"] = CANARY;
    const { settled } = await ran((task) => task.secret("API_KEY") === CANARY);
    expect(settled).toMatchObject({ output: true });
  });

  test("a function of ctx.run gets a secret that its agent declares", async () => {
    const agent = defineAgent({
      name: "inline",
      secrets: ["API_KEY"],
      run: (ctx) =>
        ctx.run("use", (task: TaskContext) => [task.secret("API_KEY").length, task.secret("API_KEY")]),
    });
    const { settled, recorded } = await runAgent(agent, SECRETS);
    expect(settled).toMatchObject({ output: [CANARY.length, "[secret]"] });
    expect(recorded).not.toContain("CANARY");
  });
});

describe("a handler without the secret fails, and is not tried again", () => {
  test("a name that the task does not declare is refused", async () => {
    const { settled } = await ran((task) => task.secret("API_KEY"), { declares: [], secrets: SECRETS });
    expect(settled).toMatchObject({
      status: "failed",
      error: { cause: { code: "usage", message: "the secret API_KEY is not declared", at: 'task "call"' } },
    });
  });

  test("a declared name without a value is an error that names it", async () => {
    const { settled } = await ran((task) => task.secret("API_KEY"), { secrets: new Map([["API_KEY", ""]]) });
    expect(settled).toMatchObject({ status: "failed", error: { cause: { code: "secret_missing" } } });
  });
});

describe("a secret is replaced before it is recorded or shown", () => {
  const leaks: Readonly<Record<string, (task: TaskContext) => unknown>> = {
    "an output": (task) => ({ headers: { authorization: `Bearer ${task.secret("API_KEY")}` } }),
    "an output of a handler that knows the value from elsewhere": () => ({ key: CANARY }),
    "an output in base64": (task) => btoa(`user:${task.secret("API_KEY")}`),
    "an error": (task) => {
      throw new Error(`401 for ${task.secret("API_KEY")}`, { cause: new Error(task.secret("API_KEY")) });
    },
    "an error that is cut within the secret": (task) => {
      throw new Error("x".repeat(8_192 - 10) + task.secret("API_KEY"));
    },
    "tokens that share it": (task) => {
      for (const char of `before ${task.secret("API_KEY")} after`) task.streamToken(char);
      return "done";
    },
    progress: (task) => {
      task.progress({ calling: task.secret("API_KEY") });
      return "done";
    },
  };
  test.each(Object.entries(leaks))("%s has no secret", async (_what, leak) => {
    const { recorded, events } = await ran(leak, { secrets: SECRETS });
    const shown = JSON.stringify(events, (_key, value: unknown) =>
      value instanceof Error ? value.message : value,
    );
    for (const text of [recorded, shown]) {
      expect(text).not.toContain("CANARY");
      expect(text).not.toContain(btoa(`user:${CANARY}`).slice(8, 24));
    }
  });

  test("the other tokens of a stream are all shown, in order", async () => {
    const { events } = await ran(
      (task) => {
        for (const char of `before ${task.secret("API_KEY")} after sk-C`) task.streamToken(char);
      },
      { secrets: SECRETS },
    );
    const tokens = events.flatMap((event) =>
      event.type === "task_delta" && event.delta.type === "token" ? [event.delta.text] : [],
    );
    expect(tokens.join("")).toBe("before [secret] after sk-C");
  });
});

test("the declared secrets of agents are those of their tasks and children too", () => {
  const task = defineTask({ name: "t", secrets: ["B", "A"], run: () => null });
  const child = defineAgent({ name: "child", secrets: ["C"], run: async () => null });
  const agent = defineAgent({
    name: "a",
    secrets: ["A"],
    tasks: [task],
    agents: [child],
    run: async () => null,
  });
  expect(declaredSecretsOf([agent], [{ secrets: ["D"] }])).toEqual(["A", "B", "C", "D"]);
});

test.each([
  ["with a space", ["MY KEY"]],
  ["that is no list", "KEY"],
  ["that is empty", [""]],
])("a declaration %s is refused", (_what, secrets) => {
  expect(() => defineTask({ name: "t", secrets: secrets as string[], run: () => null })).toThrow(
    expect.objectContaining({ code: "usage", expected: expect.stringContaining("environment variables") }),
  );
});
