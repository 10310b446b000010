// Scenarios of sessions that ask for each other: children, what is told both ways, hand-overs, cancels of a
// tree.

import { defineAgent, defineTask, local, type Agent } from "@holdfast/runtime";
import type { CrashScenario } from "./crash-everywhere.ts";
import { effect, scenario, type Outside } from "./crash-scenario.ts";

/** Does one task and gives back what came of it. */
function worker(outside: Outside): Agent<number, number> {
  const step = effect(outside);
  return defineAgent<number, number>({
    name: "worker",
    tasks: [step],
    run: async (ctx, n) => ((await ctx.scheduleTask(step, { value: n })) as number) * 10,
  });
}

/** Waits without end, and returns its partial result when it is cancelled. */
function waiter(outside: Outside): Agent {
  const step = effect(outside);
  return defineAgent({
    name: "waiter",
    tasks: [step],
    run: async (ctx) => {
      try {
        await ctx.waitForSignal("never");
        return "not reached";
      } catch {
        await ctx.scheduleTask(step, { value: "cleaned up" });
        return { partial: ctx.sessionId };
      }
    },
  });
}

export const familyScenarios: readonly CrashScenario[] = [
  scenario("children that are waited for", (outside) => {
    const child = worker(outside);
    return {
      agent: defineAgent({
        name: "waits-for-children",
        agents: [child],
        run: async (ctx) => {
          const children = [1, 2].map((n) => ctx.spawnAgent(local(child), n));
          return ctx.all(children.map((one) => ctx.waitForChild(one)));
        },
      }),
    };
  }),

  scenario("events of a child, and signals both ways", () => {
    const child = defineAgent({
      name: "talker",
      run: async (ctx) => {
        ctx.signalParent("hello", { n: 1 });
        ctx.reportProgress(0.5);
        const word = await ctx.waitForSignal<string>("word");
        ctx.signalParent("heard", word);
        return [word, await ctx.waitForSignal<string>("word")];
      },
    });
    return {
      agent: defineAgent({
        name: "listener",
        agents: [child],
        run: async (ctx) => {
          const one = ctx.spawnAgent(local(child));
          const events: unknown[] = [await ctx.waitForChildEvent(one), await ctx.waitForChildEvent(one)];
          ctx.signalChild(one, "word", "go");
          ctx.signalChild(one, "word", "on");
          events.push(await ctx.waitForChildEvent(one), await ctx.waitForChildEvent(one));
          return { events, output: await ctx.waitForChild(one) };
        },
      }),
    };
  }),

  scenario("a request to the parent, handled as a task of the parent's", (outside) => {
    const lookUp = defineTask({
      name: "look-up",
      run: (key: string, task) => {
        outside.set(task.idempotencyKey, key);
        return `value of ${key}`;
      },
    });
    const child = defineAgent({
      name: "asker",
      run: async (ctx) => {
        const first = await ctx.requestFromParent("lookUp", "a");
        const missing = await ctx.requestFromParent("nothing").catch((error: Error) => error.name);
        return [first, missing, await ctx.requestFromParent("lookUp", "b")];
      },
    });
    return {
      agent: defineAgent({
        name: "handles",
        agents: [child],
        handlers: { lookUp },
        run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))),
      }),
    };
  }),

  scenario("a tree of three generations", (outside) => {
    const leaf = worker(outside);
    const middle = defineAgent<number>({
      name: "middle",
      agents: [leaf],
      run: async (ctx, n) => {
        const children = [n, n + 1].map((m) => ctx.spawnAgent(local(leaf), m));
        return ctx.all(children.map((one) => ctx.waitForChild(one)));
      },
    });
    return {
      agent: defineAgent({
        name: "top",
        agents: [middle],
        run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(middle), 1)),
      }),
    };
  }),

  ...(["graceful", "hard"] as const).map((mode) =>
    scenario(`a ${mode} cancel of a tree`, (outside) => {
      const leaf = waiter(outside);
      const middle = defineAgent({
        name: "middle",
        agents: [leaf],
        run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(leaf))),
      });
      return {
        agent: defineAgent({
          name: "cancelled-tree",
          agents: [middle],
          run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(middle))),
        }),
        world: async ({ runtime, sessionId, until }) => {
          await until(
            (session) => session?.status === "waiting" || session?.endedAt !== undefined,
            `${sessionId}-0-0`,
          );
          await runtime.cancel(sessionId, { hard: mode === "hard", graceMs: 60_000, reason: "enough" });
        },
      };
    }),
  ),

  scenario("a child that its parent cancels", (outside) => {
    const child = waiter(outside);
    return {
      agent: defineAgent({
        name: "cancels",
        agents: [child],
        run: async (ctx) => {
          const one = ctx.spawnAgent(local(child));
          await ctx.run("meanwhile", () => 0);
          ctx.cancelChild(one, { hard: true, reason: "no longer wanted" });
          return ctx.waitForChild(one).catch((error: Error) => error.message);
        },
      }),
    };
  }),

  scenario("children that are left, and waited for at the end", (outside) => {
    const child = worker(outside);
    return {
      agent: defineAgent({
        name: "leaves",
        agents: [child],
        run: async (ctx) => {
          ctx.spawnAgent(local(child), 1, { onParentEnd: "leave" });
          ctx.spawnAgent(local(child), 2, { onParentEnd: "wait" });
          return ctx.run("work", () => "done");
        },
      }),
    };
  }),

  ...(["wait_for_child", "immediate"] as const).map((completion) =>
    scenario(`a hand-over: ${completion}`, (outside) => {
      const successor = worker(outside);
      const middle = defineAgent({
        name: "gives",
        agents: [successor],
        run: async (ctx) => {
          const n = await ctx.run("work", () => 7);
          return ctx.handoffToAgent(local(successor), n, { completion });
        },
      });
      return {
        agent: defineAgent({
          name: "hears-the-heir",
          agents: [middle],
          run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(middle))),
        }),
      };
    }),
  ),

  scenario("a hand-over that nobody waits for", (outside) => {
    const successor = worker(outside);
    return {
      agent: defineAgent({
        name: "gives-and-ends",
        agents: [successor],
        run: async (ctx) => ctx.handoffToAgent(local(successor), 7, { completion: "immediate" }),
      }),
    };
  }),

  scenario("a child that fails, and is asked for again", (outside) => {
    const step = effect(outside);
    const child = defineAgent({
      name: "shaky",
      tasks: [step],
      run: async (ctx) => {
        const attempt = ((ctx.resumedFrom as number | undefined) ?? 0) + 1;
        ctx.reportProgress(attempt);
        await ctx.scheduleTask(step, { value: attempt });
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return attempt;
      },
    });
    return {
      agent: defineAgent({
        name: "asks-again",
        agents: [child],
        run: async (ctx) =>
          ctx.waitForChild(ctx.spawnAgent(local(child), undefined, { respawn: { maxAttempts: 3 } })),
      }),
    };
  }),

  scenario("an ephemeral child, asked for again when it is gone with its process", (outside) => {
    const step = effect(outside, "value");
    const leaf = defineAgent<number>({
      name: "leaf",
      tasks: [step],
      run: async (ctx, n) => ctx.scheduleTask(step, { value: `leaf ${n}` }),
    });
    const child = defineAgent({
      name: "gone",
      agents: [leaf],
      run: async (ctx) => {
        const first = await ctx.scheduleTask(step, { value: "first" });
        ctx.signalParent("half", first);
        const below = await ctx.waitForChild(ctx.spawnAgent(local(leaf), 1));
        return [first, below, await ctx.scheduleTask(step, { value: "last" })];
      },
    });
    return {
      agent: defineAgent({
        name: "asks-the-gone-again",
        tasks: [step],
        agents: [child],
        run: async (ctx) => {
          const options = { persistence: "ephemeral", respawn: { maxAttempts: 3 } } as const;
          return ctx.waitForChild(ctx.spawnAgent(local(child), undefined, options));
        },
      }),
      loses: true,
    };
  }),

  scenario("a minimal session that hears its child, waits, and hears it again", (outside) => {
    const step = effect(outside);
    const child = defineAgent({
      name: "ready-twice",
      tasks: [step],
      run: async (ctx) => {
        ctx.signalParent("ready", 1);
        await ctx.waitForSignal("go");
        ctx.signalParent("ready", await ctx.scheduleTask(step, { value: 2 }));
        await ctx.waitForSignal("go");
        return "done";
      },
    });
    return {
      options: { persistence: "minimal" },
      agent: defineAgent({
        name: "hears-twice",
        tasks: [step],
        agents: [child],
        run: async (ctx) => {
          const first = await ctx.scheduleTask(step, { value: 1 });
          const one = ctx.spawnAgent(local(child));
          const received: unknown[] = [first, await ctx.waitForChildEvent(one)];
          received.push(await ctx.waitForSignal("word"));
          ctx.signalChild(one, "go");
          received.push(await ctx.waitForChildEvent(one));
          ctx.signalChild(one, "go");
          return [...received, await ctx.waitForChild(one)];
        },
      }),
      world: async ({ runtime, sessionId }) => {
        await runtime.signal(sessionId, "word", "on", { dedupKey: "word" });
      },
    };
  }),

  scenario("an ephemeral child that enables its persistence", (outside) => {
    const step = effect(outside, "value");
    const child = defineAgent({
      name: "rises",
      tasks: [step],
      run: async (ctx) => {
        const first = await ctx.scheduleTask(step, { value: "first" });
        ctx.enablePersistence();
        return [first, await ctx.scheduleTask(step, { value: "last" })];
      },
    });
    return {
      agent: defineAgent({
        name: "has-a-rising-child",
        agents: [child],
        run: async (ctx) => {
          const options = { persistence: "ephemeral", respawn: { maxAttempts: 3 } } as const;
          return ctx.waitForChild(ctx.spawnAgent(local(child), undefined, options));
        },
      }),
      loses: true,
    };
  }),

  scenario("a child whose end was heard before a checkpoint", (outside) => {
    const child = worker(outside);
    return {
      agent: defineAgent({
        name: "hears-it-again",
        agents: [child],
        run: async (ctx) => {
          const known = ctx.state as { child: string } | undefined;
          if (known === undefined) {
            const one = ctx.spawnAgent(local(child), 4);
            await ctx.waitForChild(one);
            return ctx.checkpoint({ child: one.sessionId });
          }
          return [
            await ctx.waitForChild(ctx.child(known.child)),
            await ctx.waitForChildEvent(ctx.child(known.child)),
          ];
        },
      }),
    };
  }),

  scenario("a request to a parent that ends meanwhile", () => {
    const lookUp = defineTask({ name: "look-up", run: () => new Promise<never>(() => {}) });
    const child = defineAgent({
      name: "asks-in-vain",
      run: async (ctx) => ctx.requestFromParent("lookUp").catch((error: { code: string }) => error.code),
    });
    return {
      agent: defineAgent({
        name: "ends-meanwhile",
        agents: [child],
        handlers: { lookUp },
        run: async (ctx) => {
          ctx.spawnAgent(local(child), undefined, { onParentEnd: "leave" });
          await ctx.run("work", () => 0);
          throw new Error("it ends");
        },
      }),
    };
  }),

  scenario("a child whose time is up", () => {
    const child = defineAgent({ name: "late", run: async (ctx) => ctx.waitForSignal("never") });
    return {
      agent: defineAgent({
        name: "has-no-time",
        agents: [child],
        run: async (ctx) => {
          const one = ctx.spawnAgent(local(child), undefined, { timeoutMs: 5 });
          return ctx.waitForChild(one).catch((error: { ending?: string }) => error.ending);
        },
      }),
    };
  }),
];
