// local-limits: how soon the processes of a cancelled session are gone, and how far a budget is overspent
// (figures 14 and 17).
//
// Both are measured on a local stack as users start it. The cancelled sessions have an executor that ignores
// the process signals that a program can ignore. It leaves a process in a group of its own. The runner is
// killed while the budgets are spent.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Measured } from "../line.ts";
import { median, nowMs, percentile, until } from "../measure.ts";
import { BenchStack, environments } from "../stack.ts";
import { withFolder } from "../storages.ts";
import type { Workload } from "../workload.ts";

const WAIT_MS = 120_000;
/** Sessions that are cancelled at once, fewer than a runner holds at a time (32). */
const CANCELLED_AT_ONCE = 20;
/** The default of a graceful cancel. */
const GRACE_MS = 10_000;
/** The time that a cancel may take beyond its grace. */
const CANCEL_GOAL_MS = 2_000;

/** Two shells, each with a `sleep`. */
const EXECUTOR_PROCESSES = 4;
const EXECUTOR_NAME = "stubborn.sh";
const EXECUTOR = `#!/bin/sh
test "$1" = --schema && exit 1
read -r input
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' > /dev/null 2>&1 &
while :; do sleep 1; done
`;

/** Calls of one session that run at the same time. */
const IN_FLIGHT = 8;
const CALL_TOKENS = 100;
/** Between two multiples of a call: one more call exceeds it. */
const MAX_TOKENS = 40_050;
const SPENDERS = 8;
const KILLS = 2;
const KILL_AFTER_MS = 700;

const AGENTS = `import { defineAgent, defineTask } from "holdfast";
const task = (name, more) => defineTask({ name, ...more, run: async (_, call) => {
  await new Promise((done) => setTimeout(done, 20));
  call.reportUsage({ model: "m", inputTokens: ${CALL_TOKENS}, outputTokens: 0 });
} });
const spender = (name, call) => defineAgent({ name, tasks: [call], run: async (ctx) => {
  for (;;) await Promise.all(Array.from({ length: ${IN_FLIGHT} }, () => ctx.scheduleTask(call, null)));
} });
export const capped = spender("capped", task("capped-call", { cost: () => ({ maxTokens: ${CALL_TOKENS} }) }));
export const uncapped = spender("uncapped", task("uncapped-call", {}));
`;

interface SpentSession {
  readonly status: string;
  readonly account: { readonly spent: { readonly tokens: number } };
}

export const localLimits: Workload = {
  id: "local-limits",
  title: "the local stack: processes of cancelled sessions, and spent budgets",
  refuses: (storage) => (storage === "sqlite" ? undefined : "the local stack has its own database"),
  run: async function* ({ folder, repeats, isQuick }) {
    yield* await withFolder(folder, async (place) => {
      const stack = await BenchStack.make(place, AGENTS);
      const executor = join(stack.home, EXECUTOR_NAME);
      writeFileSync(executor, EXECUTOR, { mode: 0o700 });
      try {
        await stack.start("--executor-path", executor);
        const budgets = await measureBudgets(stack);
        return [...budgets, ...(await measureCancels(stack, isQuick ? 1 : repeats))];
      } finally {
        await stack.stop();
      }
    });
  },
};

/** Figure 17. */
async function measureBudgets(stack: BenchStack): Promise<Measured[]> {
  const ids = ["capped", "uncapped"].map((agent) =>
    Array.from({ length: SPENDERS }, (_, n) => `${agent}-${n}`),
  );
  const budget = { maxTokens: MAX_TOKENS };
  for (const sessionId of ids.flat())
    await stack.sessions("", { agent: sessionId.split("-")[0], input: null, sessionId, budget });
  let killed: number | undefined;
  for (let i = 0; i < KILLS; i++) {
    await delay(KILL_AFTER_MS);
    const isAnother = (): boolean => ![undefined, killed].includes(stack.pidOf("runner"));
    await until("another runner works", isAnother, WAIT_MS);
    process.kill((killed = stack.pidOf("runner")!), "SIGKILL");
  }
  const [capped, uncapped] = await Promise.all(
    ids.map((some) => Promise.all(some.map((id) => overspentCalls(stack, id)))),
  );
  return [
    overspent("calls beyond the budget, with a cap for each call (most)", capped!, 0),
    overspent("calls beyond the budget, without caps (most)", uncapped!, IN_FLIGHT),
  ];
}

/** Waits until a session is paused. @returns how many calls too many it has paid for. */
async function overspentCalls(stack: BenchStack, sessionId: string): Promise<number> {
  for (const giveUpAt = nowMs() + WAIT_MS; nowMs() < giveUpAt; await delay(100)) {
    const { status, account } = await stack.sessions<SpentSession>(`/${sessionId}`);
    if (status === "paused") return Math.max(0, Math.ceil((account.spent.tokens - MAX_TOKENS) / CALL_TOKENS));
  }
  throw new Error(`session ${sessionId} does not come to the end of its budget`);
}

function overspent(variant: string, all: readonly number[], goal: number): Measured {
  const value = Math.max(...all);
  return {
    variant,
    unit: "calls",
    value,
    goal: `<= ${goal} calls`,
    isGoalMet: value <= goal,
    more: { sessions: all.length },
  };
}

/** Figure 14. */
async function measureCancels(stack: BenchStack, repeats: number): Promise<Measured[]> {
  const [hard, graceful]: [number[], number[]] = [[], []];
  for (let i = 0; i < repeats; i++) {
    hard.push(...(await cancelAll(stack, `hard-${i}`, { mode: "hard" })));
    graceful.push(...(await cancelAll(stack, `graceful-${i}`, {})));
  }
  return [
    cancelled("hard cancel, until no process is left (p99)", hard, CANCEL_GOAL_MS),
    cancelled("graceful cancel, until no process is left (p99)", graceful, GRACE_MS + CANCEL_GOAL_MS),
  ];
}

/**
 * Starts sessions of the executor, and cancels all of them at once.
 *
 * @returns for each the time from the first request until none of its processes is left.
 */
async function cancelAll(stack: BenchStack, name: string, how: object): Promise<readonly number[]> {
  const ids = Array.from({ length: CANCELLED_AT_ONCE }, (_, n) => `${name}-${n}`);
  for (const sessionId of ids)
    await stack.sessions("", { agent: EXECUTOR_NAME, input: { prompt: "work" }, sessionId });
  const work = (): boolean => {
    const processes = processesOfSessions();
    return ids.every((id) => (processes.get(id) ?? 0) >= EXECUTOR_PROCESSES);
  };
  await until("the executors work", work, WAIT_MS);
  const goneAfter = new Map<string, number>();
  const startedAt = nowMs();
  await Promise.all(ids.map((id) => stack.sessions(`/${id}/cancel`, how)));
  const areGone = (): boolean => {
    const processes = processesOfSessions();
    for (const id of ids)
      if (!processes.has(id) && !goneAfter.has(id)) goneAfter.set(id, nowMs() - startedAt);
    return goneAfter.size === ids.length;
  };
  await until("their processes are gone", areGone, WAIT_MS);
  return [...goneAfter.values()];
}

/** How many processes each session of an executor has, by the variable that the executor was given. */
function processesOfSessions(): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [, environment] of environments()) {
    const id = /\0AGENT_SESSION_ID=([^\0]*)/.exec(environment)?.[1];
    if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1);
  }
  return found;
}

function cancelled(variant: string, all: readonly number[], goalMs: number): Measured {
  const value = percentile(all, 0.99);
  return {
    variant,
    unit: "ms",
    value,
    goal: `<= ${goalMs} ms`,
    isGoalMet: value <= goalMs,
    more: { median: median(all), most: Math.max(...all), cancels: all.length },
  };
}
