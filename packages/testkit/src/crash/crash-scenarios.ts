// Scenarios for `crashEverywhere`: one per thing that can be interrupted. Adapters run them all on their
// storage.

import { setTimeout } from "node:timers";
import { defined, HOUR_MS, type JournalRecord } from "@holdfast/core";
import { defineAgent, defineTask } from "@holdfast/runtime";
import type { CrashScenario, CrashWorld } from "./crash-everywhere.ts";
import { budgetScenarios } from "./crash-scenarios-budget.ts";
import { familyScenarios } from "./crash-scenarios-family.ts";
import { effect, scenario } from "./crash-scenario.ts";

export const crashScenarios: readonly CrashScenario[] = [
  scenario("a sequence of tasks", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "sequence",
        tasks: [step],
        run: async (ctx) => {
          let sum = 0;
          for (let i = 1; i <= 5; i++) sum += (await ctx.scheduleTask(step, { value: i })) as number;
          return sum;
        },
      }),
    };
  }),

  scenario("test, edit, test: equal tasks are two tasks", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "equal-tasks",
        tasks: [step],
        run: async (ctx) => {
          const before = await ctx.scheduleTask(step, { value: "test" });
          await ctx.scheduleTask(step, { value: "edit" });
          return [before, await ctx.scheduleTask(step, { value: "test" })];
        },
      }),
    };
  }),

  scenario("a fan-out that joins", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "fan-out",
        tasks: [step],
        run: async (ctx) => {
          const parts = Array.from({ length: 6 }, (_, i) => ctx.scheduleTask(step, { value: i }));
          return (await Promise.all(parts)).length;
        },
      }),
    };
  }),

  scenario("a race against a timer, whose loser is withdrawn", () => ({
    agent: defineAgent({
      name: "race",
      run: async (ctx) => {
        const first = await ctx.race([ctx.run("quick", () => "quick"), ctx.sleep(60_000)]);
        const second = await ctx.select({ signal: ctx.waitForSignal("never"), timer: ctx.sleep(3) });
        return { first, second: second.key };
      },
    }),
  })),

  scenario("a task that never ends and has a deadline, while another one ends", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "deadline",
        tasks: [step],
        run: async (ctx) => {
          const stuck = ctx.run("stuck", () => new Promise(() => {}), { deadlineMs: 10 });
          const done = ctx.scheduleTask(step, { value: "done" }, { deadlineMs: HOUR_MS });
          const why = await stuck.catch((error: { cause: { code: string } }) => error.cause.code);
          return [await done, why];
        },
      }),
    };
  }),

  scenario("a signal that comes before the wait", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "early-signal",
        tasks: [step],
        run: async (ctx) => {
          await ctx.run("slow", () => new Promise((resolve) => setTimeout(resolve, 5)));
          const go = await ctx.waitForSignal<{ n: number }>("go");
          return ctx.scheduleTask(step, { value: go.n });
        },
      }),
      world: async ({ runtime, sessionId }) => {
        await runtime.signal(sessionId, "go", { n: 7 }, { dedupKey: "go-1" });
      },
    };
  }),

  scenario("signals that come after the wait, in order", () => ({
    agent: defineAgent({
      name: "late-signals",
      run: async (ctx) => {
        const got = [await ctx.waitForSignal("n"), await ctx.waitForSignal("n")];
        got.push(await ctx.signalReady("n").then(() => ctx.takeSignal("n")));
        return { got, left: ctx.hasSignal("n") };
      },
    }),
    world: async ({ runtime, sessionId, until }) => {
      await until((session) => session?.status === "waiting" || session?.endedAt !== undefined);
      for (const n of [1, 2, 3]) await runtime.signal(sessionId, "n", n, { dedupKey: `n-${n}` });
    },
  })),

  scenario("a question to a person", () => ({
    agent: defineAgent({
      name: "question",
      run: async (ctx) => {
        ctx.appendEntry({ role: "assistant", content: "the plan" });
        const answer = await ctx.requestInput("Go ahead?");
        ctx.appendEntry({ role: "user", content: answer });
        return answer.approved;
      },
    }),
    world: async ({ runtime, sessionId, until }) => {
      await until((session) => session?.status === "input_required" || session?.endedAt !== undefined);
      await runtime.answer(sessionId, { approved: true });
    },
  })),

  scenario("timers", () => ({
    agent: defineAgent({
      name: "timers",
      run: async (ctx) => {
        await ctx.sleep(3);
        const [a, b] = await Promise.all([ctx.sleep(4).then(() => "a"), ctx.run("work", () => "b")]);
        return [a, b];
      },
    }),
  })),

  scenario("retries that succeed, and one that gives up", (outside) => {
    const flaky = defineTask({
      name: "flaky",
      retry: { maxAttempts: 20, initialDelayMs: 1, maxDelayMs: 2 },
      run: (_: unknown, task) => {
        const failures = (outside.get("failures") as number | undefined) ?? 0;
        if (failures < 2) {
          outside.set("failures", failures + 1);
          throw new Error(`failure of attempt ${Math.min(task.attempt, 1)}`);
        }
        return "succeeded";
      },
    });
    const hopeless = defineTask({
      name: "hopeless",
      retry: { nonRetryable: ["RangeError"] },
      run: () => {
        throw new RangeError("out of range");
      },
    });
    return {
      agent: defineAgent({
        name: "retries",
        tasks: [flaky, hopeless],
        run: async (ctx) => {
          const first = await ctx.scheduleTask(flaky, {});
          const second = await ctx.scheduleTask(hopeless, {}).catch((error: Error) => error.name);
          return [first, second];
        },
      }),
    };
  }),

  scenario("a loop of checkpoints", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "checkpoints",
        tasks: [step],
        initial: () => ({ round: 0, seen: [] as number[] }),
        turn: async (ctx, state: { round: number; seen: number[] }) => {
          ctx.appendEntry({ role: "user", content: `round ${state.round}` });
          const value = (await ctx.scheduleTask(step, { value: state.round })) as number;
          ctx.appendEntry({ role: "assistant", content: { value } });
          const next = { round: state.round + 1, seen: [...state.seen, value] };
          return next.round === 4 ? { done: next.seen } : { state: next };
        },
      }),
    };
  }),

  scenario("signals across checkpoints", () => ({
    agent: defineAgent({
      name: "daemon",
      initial: () => [] as unknown[],
      turn: async (ctx, seen: unknown[]) => {
        const event = await ctx.waitForSignal("event");
        const all = [...seen, event];
        return all.length === 3 ? { done: all } : { state: all };
      },
    }),
    world: async ({ runtime, sessionId }) => {
      for (const n of [1, 2, 3]) await runtime.signal(sessionId, "event", { n }, { dedupKey: `event-${n}` });
    },
  })),

  scenario("large values", (outside) => {
    const step = effect(outside);
    const large = "x".repeat(80_000);
    return {
      agent: defineAgent({
        name: "blobs",
        tasks: [step],
        run: async (ctx) => {
          if (ctx.state === undefined) {
            const value = await ctx.scheduleTask(step, { value: large });
            ctx.appendEntry({ role: "tool", content: value });
            return ctx.checkpoint({ value });
          }
          const { value } = ctx.state as { value: string };
          return ((await ctx.scheduleTask(step, { value: value.length })) as number) + value.length;
        },
      }),
      input: { large },
    };
  }),

  scenario("a graceful cancel with clean-up", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "cancelled",
        tasks: [step],
        run: async (ctx) => {
          try {
            await ctx.waitForSignal("never");
            return "not reached";
          } catch {
            await ctx.scheduleTask(step, { value: "cleaned up" });
            return { partial: ctx.isCancellationRequested() };
          }
        },
      }),
      world: async ({ runtime, sessionId, until }) => {
        await until((session) => session?.status === "waiting" || session?.endedAt !== undefined);
        await runtime.cancel(sessionId, { graceMs: 60_000 });
      },
    };
  }),

  scenario("a task that fails the session", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "failing",
        tasks: [step],
        run: async (ctx) => {
          await ctx.scheduleTask(step, { value: 1 });
          const broken = ctx.run("broken", () => Promise.reject(new RangeError("it broke")), {
            retry: { nonRetryable: ["RangeError"] },
          });
          // How many attempts it took depends on the crashes; that it failed does not.
          return broken.catch((error: Error) => Promise.reject(error.cause as Error));
        },
      }),
    };
  }),

  scenario("nested helpers, branches and a generator", (outside) => {
    const step = effect(outside, "value");
    return {
      agent: defineAgent({
        name: "helpers",
        tasks: [step],
        run: async (ctx) => {
          const twice = async (value: number): Promise<number> => {
            const first = (await ctx.scheduleTask(step, { value })) as number;
            return first + ((await ctx.scheduleTask(step, { value: value * 10 })) as number);
          };
          async function* rounds(): AsyncGenerator<number> {
            for (let i = 0; i < 2; i++)
              yield (await ctx.scheduleTask(step, { value: `round ${i}` })) === undefined ? 0 : i;
          }
          const branches = await Promise.allSettled([twice(1), twice(2), ctx.sleep(2).then(() => twice(3))]);
          let total = 0;
          for await (const round of rounds()) total += round;
          return { total, branches: branches.map((branch) => branch.status) };
        },
      }),
    };
  }),

  scenario("a fork in the middle of a fan-out, whose open tasks are done again", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "forked-midway",
        tasks: [step],
        run: async (ctx) => {
          ctx.appendEntry({ role: "user", content: "begin" });
          const parts = await Promise.all([1, 2].map((value) => ctx.scheduleTask(step, { value })));
          const word = await ctx.waitForSignal("word");
          return [parts, word, await ctx.scheduleTask(step, { value: word })];
        },
      }),
      // Both tasks are open where the first thing became of one of them, whatever the faults made that.
      isDirect: true,
      world: forkedWorld(({ type }) => ["task_completed", "attempt_lost", "outcome_kept"].includes(type)),
    };
  }),

  scenario("a fork at a checkpoint, with another input", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "forked-at-checkpoint",
        tasks: [step],
        run: async (ctx, input) => {
          if (ctx.state === undefined) {
            const value = await ctx.scheduleTask(step, { value: input });
            ctx.appendEntry({ role: "user", content: input });
            return ctx.checkpoint({ value });
          }
          ctx.appendEntry({ role: "user", content: input });
          const word = await ctx.waitForSignal("word");
          return [ctx.state, word, await ctx.scheduleTask(step, { value: input })];
        },
      }),
      input: "old",
      isDirect: true,
      world: forkedWorld(({ type }) => type === "checkpoint", "new"),
    };
  }),

  scenario("a session of which little survives until it turns that up", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "rising",
        tasks: [step],
        run: async (ctx) => {
          ctx.appendEntry({ role: "user", content: "begin" });
          const first = await ctx.scheduleTask(step, { value: 1 });
          await ctx.sleep(2);
          ctx.enablePersistence();
          ctx.appendEntry({ role: "user", content: "from here on" });
          const second = await ctx.scheduleTask(step, { value: 2 });
          return [first, second, await ctx.waitForSignal("word")];
        },
      }),
      options: { persistence: "minimal" },
      world: async ({ runtime, sessionId }) => {
        await runtime.signal(sessionId, "word", "go", { dedupKey: "word" });
      },
    };
  }),

  scenario("tasks nobody observes, and a task that is cancelled", (outside) => {
    const step = effect(outside);
    return {
      agent: defineAgent({
        name: "unobserved",
        tasks: [step],
        run: async (ctx) => {
          ctx.scheduleTask(step, { value: "unobserved" });
          const slow = ctx.run(
            "slow",
            (task) =>
              new Promise((resolve) =>
                (task as { signal: AbortSignal }).signal.addEventListener("abort", resolve),
              ),
          );
          await ctx.scheduleTask(step, { value: "observed" });
          slow.cancel();
          return slow.catch((error: Error) => error.name);
        },
      }),
    };
  }),

  ...familyScenarios,
  ...budgetScenarios,
];

/**
 * Forks the session there once it waits, and answers the fork. It then answers the session with the fork's
 * result, so that the session's output covers both.
 */
function forkedWorld(
  isPoint: (record: JournalRecord) => boolean,
  input?: unknown,
): (world: CrashWorld) => Promise<void> {
  return async ({ runtime, sessionId, until, storage }) => {
    const forkId = `${sessionId}.fork`;
    await until((session) => session?.status === "waiting" || session?.endedAt !== undefined);
    const forked = await storage.reader.session(forkId);
    if (forked === undefined) {
      const journal = await storage.reader.journal(sessionId, 0, 1_000);
      const at = journal.find(isPoint)!.seq;
      await runtime.fork(sessionId, { at, sessionId: forkId, ...defined({ input }) });
    } else if (forked.endedAt === undefined) {
      await runtime.resume(forkId);
    }
    await runtime.signal(forkId, "word", "of the fork", { dedupKey: "word" });
    await runtime.handle(forkId).settled();
    const { output } = (await storage.reader.session(forkId))!;
    const entries = await storage.reader.entries(forkId, 0, 100);
    const conversation = { output, entries: entries.map(({ content }) => content) };
    await runtime.signal(sessionId, "word", conversation, { dedupKey: "word" });
  };
}
