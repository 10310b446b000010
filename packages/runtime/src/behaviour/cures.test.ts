// Cures of errors in an agent's code: each is met, and the code is corrected as its advice says. The same
// session then goes on, or another one completes. `scripts/cures.test.ts` finds the rows by their first
// argument.

import { HoldfastError, LIMITS, type AgentContext } from "@holdfast/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const cure = (code: string, how: string, heal: (code: string) => Promise<void>): void =>
  test(`${code}: ${how}`, () => heal(code));

type Ctx = AgentContext<never>;

async function within<T>(
  storage: MemoryStorage,
  agents: readonly Agent[],
  work: (runtime: Runtime) => Promise<T>,
) {
  const runtime = createRuntime({ storage, agents });
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
  }
}

/** The error with this code among an error and its causes. */
function causeOf(error: unknown, code: string): HoldfastError {
  for (let at = error; at !== undefined; at = (at as Error).cause)
    if ((at as HoldfastError).code === code) return at as HoldfastError;
  throw new Error(`no ${code} in ${String(error)}`, { cause: error });
}

/** Starts a session of the wrong code. @returns its error, and the session where it is paused. */
async function meets(code: string, agent: Agent, advice: RegExp, others: readonly Agent[] = []) {
  const storage = new MemoryStorage();
  const { sessionId, error } = await within(storage, [agent, ...others], async (runtime) => {
    const handle = await runtime.start(agent);
    const failed: unknown = await handle.result().catch((thrown: unknown) => thrown);
    return { sessionId: handle.sessionId, error: causeOf(failed, code) };
  });
  expect(`${error.message} ${error.expected ?? ""} ${error.fix ?? ""}`).toMatch(advice);
  return { storage, sessionId };
}

/** The session goes on with the corrected code. */
async function resumesWith(
  { storage, sessionId }: Awaited<ReturnType<typeof meets>>,
  agent: Agent,
): Promise<void> {
  const output = await within(storage, [agent], async (runtime) =>
    (await runtime.resume(sessionId)).result(),
  );
  expect(output).toBe("done");
}

/** A session of the corrected code completes. */
async function completes(agent: Agent, others: readonly Agent[] = []): Promise<void> {
  const output = await within(new MemoryStorage(), [agent, ...others], async (runtime) =>
    (await runtime.start(agent)).result(),
  );
  expect(output).toBe("done");
}

const agentOf = (run: (ctx: Ctx) => Promise<unknown>, more: object = {}): Agent =>
  defineAgent({ name: "agent", run: run as never, ...more });

cure(
  "non_durable_await",
  "move the work into a task, and fork what was stored before the fault",
  async (code) => {
    const { met, right } = await stray(code);
    await forksFrom(met, right);
  },
);

cure(
  "nondeterminism",
  "fork the session, which begins at its last checkpoint with the new code",
  async (code) => {
    const { met, right } = await stray("non_durable_await");
    const error: unknown = await resumesWith(met, right).catch((thrown: unknown) => thrown);
    expect(causeOf(error, code).fix).toContain(`holdfast fork ${met.sessionId} --at 0`);
    await forksFrom(met, right);
  },
);

/** An agent that awaits what is not durable, and its corrected code, which asks for more where the journal has nothing. */
async function stray(code: string) {
  const work = (): Promise<string> => new Promise((resolve) => setTimeout(resolve, 20, "done"));
  const wrong = agentOf(async (ctx) => {
    await work();
    return ctx.run("late", () => "done");
  });
  const met = await meets(code, wrong, /into a task: ctx\.run\(name, fn\)/);
  return { met, right: agentOf(async (ctx) => ctx.run("work", work)) };
}

async function forksFrom(
  { storage, sessionId }: Awaited<ReturnType<typeof meets>>,
  agent: Agent,
): Promise<void> {
  const output = await within(storage, [agent], async (runtime) => {
    const { sessionId: forked } = await runtime.fork(sessionId, { at: 0 });
    return (await runtime.resume(forked)).result();
  });
  expect(output).toBe("done");
}

cure("unknown_task_kind", "give the agent the task", async (code) => {
  const build = defineTask({ name: "build", run: () => "done" });
  const run = async (ctx: Ctx): Promise<unknown> => ctx.scheduleTask(build, null);
  const met = await meets(code, agentOf(run), /tasks/);
  await resumesWith(met, agentOf(run, { tasks: [build] }));
});

cure("not_json", "return what JSON can keep", async (code) => {
  const met = await meets(
    code,
    agentOf(async (ctx) => ctx.run("step", () => 1n)),
    /JSON/,
  );
  expect(met.sessionId).toMatch(/^ses_/);
  await completes(agentOf(async (ctx) => ctx.run("step", () => "done")));
});

cure("invalid_output", "return what the schema describes", async (code) => {
  const output = z.literal("done");
  await meets(
    code,
    agentOf(async () => "doing", { output }),
    /a value of the shape the schema describes/,
  );
  await completes(agentOf(async () => "done", { output }));
});

cure("invalid_state", "keep what the schema of the state describes", async (code) => {
  const agent = (n: unknown): Agent =>
    agentOf(
      async (ctx) => {
        if ((ctx.state as { readonly n: unknown }).n === 1) return "done";
        return ctx.checkpoint({ n });
      },
      { state: { version: 1, initial: () => ({ n: 0 }), schema: z.object({ n: z.number() }) } },
    );
  await meets(code, agent("one"), /a value of the shape the schema describes/);
  await completes(agent(1));
});

cure("invalid_signal", "send what the schema of the wait describes", async (code) => {
  const storage = new MemoryStorage();
  const schema = z.object({ amount: z.number() });
  const said: HoldfastError[] = [];
  const agent = agentOf(async (ctx) => {
    for (;;) {
      try {
        return (await ctx.waitForSignal("pay", { schema })).amount;
      } catch (error) {
        said.push(causeOf(error, code));
      }
    }
  });
  const output = await within(storage, [agent], async (runtime) => {
    const handle = await runtime.start(agent);
    await runtime.signal(handle.sessionId, "pay", { amount: "5" });
    await runtime.signal(handle.sessionId, "pay", { amount: 5 });
    return handle.result();
  });
  expect(said[0]?.fix).toBe("send a value of the shape the schema describes");
  expect(output).toBe(5);
});

cure("task_failed", "correct the step", async (code) => {
  const step = (run: () => unknown): Agent =>
    agentOf(async (ctx) => ctx.run("step", run, { retry: { maxAttempts: 1 } }));
  await meets(
    code,
    step(() => {
      throw new Error("boom");
    }),
    /boom/,
  );
  await completes(step(() => "done"));
});

cure("task_timeout", "give the step more time", async (code) => {
  const step = (timeoutMs: number): Agent =>
    agentOf(async (ctx) =>
      ctx.run("step", () => new Promise((resolve) => setTimeout(resolve, 50, "done")), {
        timeoutMs,
        retry: { maxAttempts: 1 },
      }),
    );
  await meets(code, step(5), /5/);
  await completes(step(60_000));
});

cure("wait_timed_out", "go on without what did not come", async (code) => {
  const wait = (ctx: Ctx): Promise<unknown> => ctx.waitForSignal("never", { timeoutMs: 5 });
  await meets(code, agentOf(wait), /never/);
  await completes(agentOf(async (ctx) => wait(ctx).catch(() => "done")));
});

cure("child_failed", "correct the child's code", async (code) => {
  const child = (run: () => Promise<unknown>): Agent => defineAgent({ name: "child", run });
  const parent = agentOf(async (ctx) => ctx.waitForChild(ctx.spawnAgent(local("child"), null)));
  const wrong = child(async () => {
    throw new Error("boom");
  });
  await meets(code, parent, /boom/, [wrong]);
  await completes(parent, [child(async () => "done")]);
});

cure("session_paused", "resume the session that a person has paused", async (code) => {
  const storage = new MemoryStorage();
  const agent = agentOf(async (ctx) => {
    await ctx.waitForSignal("go");
    return "done";
  });
  const output = await within(storage, [agent], async (runtime) => {
    const handle = await runtime.start(agent);
    await runtime.pause(handle.sessionId);
    const error: unknown = await handle.result().catch((thrown: unknown) => thrown);
    expect(causeOf(error, code).fix).toMatch(/unpause|resume/);
    await runtime.unpause(handle.sessionId);
    await runtime.signal(handle.sessionId, "go");
    return handle.result();
  });
  expect(output).toBe("done");
});

cure("limit_exceeded", "return the path of a large content", async (code) => {
  const large = "x".repeat(LIMITS.payloadChars + 1);
  const step = (content: string): Agent =>
    agentOf(async (ctx) => ctx.run("step", () => content, { retry: { maxAttempts: 1 } }));
  await meets(code, step(large), /in a file and return its path/);
  await completes(step("done"));
});
