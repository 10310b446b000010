// Scenarios of decisions that people take: exhausted budgets and their raises, pauses, unanswered questions.
// Others are about the persistence of a session.

import { PauseError } from "@holdfast/core";
import { defineAgent, defineTask, local } from "@holdfast/runtime";
import type { CrashScenario, CrashWorld } from "./crash-everywhere.ts";
import { effect, scenario, type Outside } from "./crash-scenario.ts";
import { unlessEnded } from "../test-runtime.ts";

/** May use 100 tokens, and does. */
function call(outside: Outside) {
  return defineTask({
    name: "call",
    cost: () => ({ maxTokens: 100 }),
    run: (n: number, task) => {
      outside.set(task.idempotencyKey, n);
      task.reportUsage({ model: "m", inputTokens: 90, outputTokens: 10 });
      return n;
    },
  });
}

/** Once one of these has run out of it. Lost attempts count as their worst case: a raise by more than any crash can cost. */
async function raise({ runtime, sessionId, until }: CrashWorld, spenders = [sessionId]): Promise<void> {
  const isOut = (session: { readonly status: string } | undefined): boolean =>
    session?.status === "paused" || session?.status === "completed";
  await Promise.race(spenders.map((spender) => until(isOut, spender)));
  await unlessEnded(runtime.setBudget(sessionId, { maxTokens: 10_000 })); // Raised in an earlier life, it may have.
}

export const budgetScenarios: readonly CrashScenario[] = [
  scenario("a budget that runs out and is raised", (outside) => {
    const task = call(outside);
    return {
      options: { budget: { maxTokens: 250 } },
      parks: true,
      agent: defineAgent({
        name: "spends",
        tasks: [task],
        run: async (ctx) => {
          const done: number[] = [];
          for (let n = 0; n < 4; n++) done.push(await ctx.scheduleTask(task, n));
          return done;
        },
      }),
      world: (world) => raise(world),
    };
  }),

  scenario("a parent's budget that runs out in its children", (outside) => {
    const task = call(outside);
    const child = defineAgent<number, number>({
      name: "spends",
      tasks: [task],
      run: async (ctx, n) => (await ctx.scheduleTask(task, n)) + (await ctx.scheduleTask(task, n * 10)),
    });
    return {
      options: { budget: { maxTokens: 250 } },
      agent: defineAgent({
        name: "pays",
        agents: [child],
        run: async (ctx) => {
          const first = await ctx.waitForChild(ctx.spawnAgent(local(child), 1));
          return [first, await ctx.waitForChild(ctx.spawnAgent(local(child), 2))];
        },
      }),
      world: (world) => raise(world, [`${world.sessionId}-0`, `${world.sessionId}-2`]),
    };
  }),

  scenario("a child whose own budget ends it", (outside) => {
    const task = call(outside);
    const child = defineAgent({
      name: "spends",
      tasks: [task],
      run: async (ctx) => ctx.scheduleTask(task, 1),
    });
    return {
      agent: defineAgent({
        name: "gives-too-little",
        agents: [child],
        run: async (ctx) => {
          const budget = { maxTokens: 99, onExhausted: "cancel" } as const;
          return ctx
            .waitForChild(ctx.spawnAgent(local(child), undefined, { budget }))
            .catch((error: Error) => error.message);
        },
      }),
    };
  }),

  scenario("a pause, and something that arrives meanwhile", (outside) => {
    const step = effect(outside);
    return {
      parks: true,
      agent: defineAgent({
        name: "paused",
        tasks: [step],
        run: async (ctx) => {
          await ctx.scheduleTask(step, { value: 1 });
          const go = await ctx.waitForSignal("go");
          return ctx.scheduleTask(step, { value: go });
        },
      }),
      world: async ({ runtime, sessionId, until }) => {
        await until((session) => session?.status !== "working" && session !== undefined);
        await runtime.pause(sessionId);
        await runtime.signal(sessionId, "go", 2, { dedupKey: "go" });
        await runtime.unpause(sessionId);
      },
    };
  }),

  scenario("a usage limit that pauses it twice, beside work that is done", (outside) => {
    const step = effect(outside);
    const provider = defineTask({
      name: "provider",
      run: (_: undefined, { attempt }) => {
        if (attempt > 2) return "answer";
        throw new PauseError("quota_exceeded", "used up", { pause: { reason: "quota", pool: "plan" } });
      },
    });
    return {
      parks: true,
      agent: defineAgent({
        name: "limited",
        tasks: [step, provider],
        run: async (ctx) => {
          await ctx.scheduleTask(step, { value: 1 });
          const both = [ctx.scheduleTask(provider, undefined), ctx.scheduleTask(step, { value: 2 })];
          return [await Promise.all(both), await ctx.scheduleTask(step, { value: 3 })];
        },
      }),
      world: async ({ runtime, sessionId, until }) => {
        for (let n = 0; n < 2; n++) {
          await until((session) => session?.endedAt !== undefined || session?.status === "paused");
          await unlessEnded(runtime.unpause(sessionId));
        }
      },
    };
  }),

  scenario("a question nobody answers", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "asks",
        tasks: [step],
        run: async (ctx) => {
          try {
            return await ctx.requestInput("Sure?", { ttlMs: 5 });
          } catch {
            await ctx.scheduleTask(step, { value: "cleaned up" });
            return { partial: true };
          }
        },
      }),
    };
  }),

  scenario("typed state over checkpoints", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent<
        unknown,
        unknown,
        { log: readonly number[]; marks: { readonly [round: string]: number }; sum: number; last: string }
      >({
        name: "typed",
        tasks: [step],
        state: {
          version: 1,
          initial: () => ({ log: [], marks: {}, sum: 0, last: "" }),
          reducers: {
            log: "append",
            marks: "merge",
            sum: (sum, more) => sum + (more as number),
          },
        },
        turn: async (ctx, state) => {
          const round = state.log.length;
          if (round === 5) return { done: state };
          const value = (await ctx.scheduleTask(step, { value: round })) as number;
          ctx.update({ log: [value], marks: { [`round-${round % 2}`]: value } });
          ctx.update({ sum: value });
          return { update: { last: `round ${round}` } };
        },
      }),
    };
  }),

  scenario("little that is stored, until more is", (outside) => {
    const step = effect(outside);
    return {
      options: { persistence: "minimal" },
      agent: defineAgent({
        name: "cheap-at-first",
        tasks: [step],
        run: async (ctx) => {
          ctx.appendEntry({ role: "user", content: "before" });
          const first = await ctx.scheduleTask(step, { value: 1 });
          await ctx.scheduleTask(step, { value: 2 });
          ctx.enablePersistence();
          const second = await ctx.scheduleTask(step, { value: 3 });
          ctx.appendEntry({ role: "assistant", content: "after" });
          return [first, second, await ctx.waitForSignal("go")];
        },
      }),
      world: async ({ runtime, sessionId, until }) => {
        await until((session) => session?.status === "waiting" || session?.endedAt !== undefined);
        await runtime.signal(sessionId, "go", "on", { dedupKey: "go" });
      },
    };
  }),
];
