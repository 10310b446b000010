// The agents that do programs, and the tasks of all programs, in one life of a process.

import { defined } from "@holdfast/core";
import {
  defineAgent,
  defineTask,
  local,
  NonRetryableError,
  type Agent,
  type AgentContext,
  type TaskContext,
  type TaskDefinition,
} from "@holdfast/runtime";
import type { AttemptPlan, Behaviour } from "./effects.ts";
import { kindOf } from "./nodes.ts";
import { POLICIES, type Policy } from "./nodes-tasks.ts";
import { agentOf, NEVER, type Program, type Stage, type Value } from "./program.ts";

/** The functions that a life provides to its agents. */
export interface ProgramWorld {
  begin(task: TaskContext, node: string, behaviour: Behaviour): AttemptPlan;
  sleep(ms: number): Promise<void>;
  /** An attempt has ended, after the time that it took. */
  ended(task: TaskContext, node: string, end: "done" | "failed"): void;
}

interface TurnState {
  readonly turn: number;
  readonly results: readonly Value[];
  /** In typed state: an entry for each completed turn. */
  readonly marks?: { readonly [turn: string]: number };
}

/** The output of cancelled sessions, wherever the cancel comes. */
export const PARTIAL = "cancelled on the way";
/** A question that nobody answers. */
export const UNANSWERED = "nobody answers this";
const CLEANED = "cleanup";
const UNANSWERED_MS = 500;

/** The agents that do programs, in one life of a process: one with plain state, one with typed state. */
export function programAgents(world: ProgramWorld, tasks: readonly TaskDefinition[]): readonly Agent[] {
  const doWork = (node: string, behaviour: Behaviour) => (anyTask: unknown) =>
    work(anyTask as TaskContext, node, behaviour, world);
  const handlers = { answer: tasks.find(({ name }) => name === ("patient" satisfies Policy))! };
  const run = async (ctx: AgentContext<Program, TurnState>): Promise<unknown> => {
    const program = ctx.input;
    try {
      return await doTurn(ctx, program, makeStage(ctx, doWork));
    } catch (error) {
      if (!ctx.isCancellationRequested()) throw error;
      if (program.cleansUp) await cleanUp(ctx);
      return PARTIAL;
    }
  };
  return [
    defineAgent<Program, unknown, TurnState>({ name: "plain", handlers, run }) as Agent,
    defineAgent<Program, unknown, TurnState>({
      name: "typed",
      handlers,
      state: {
        version: 1,
        initial: () => ({ turn: 0, results: [], marks: {} }),
        reducers: { results: "append", marks: "merge" },
      },
      run,
    }) as Agent,
  ];
}

async function doTurn(
  ctx: AgentContext<Program, TurnState>,
  { turns, prelude, isTyped, end }: Program,
  { inTurn }: Stage,
): Promise<unknown> {
  const { turn, results, marks = {} } = ctx.state ?? { turn: 0, results: [] };
  if (prelude !== undefined && turn === 0) {
    await inTurn(prelude);
    ctx.enablePersistence();
  }
  const done = await inTurn(turns[turn] ?? []);
  if (turn + 1 < turns.length) {
    if (!isTyped)
      return ctx.checkpoint({ turn: turn + 1, results: [...results, done] }, { openTasks: "wait" });
    ctx.update({ turn: turn + 1, results: [done], marks: { [turn]: turn } });
    return ctx.checkpoint(undefined, { openTasks: "wait" });
  }
  if (isTyped && Object.values(marks).length !== turn) return { marks };
  const output = [...results, done];
  switch (end.type) {
    case "output":
      return output;
    case "never":
      return ctx.waitForSignal(NEVER);
    case "unanswered":
      return ctx.requestInput(UNANSWERED, { ttlMs: UNANSWERED_MS });
    case "fails": {
      const attempt = ((ctx.resumedFrom as number | undefined) ?? 0) + 1;
      ctx.reportProgress(attempt);
      if (attempt <= end.times) throw new Error(`session ${attempt} of this program fails`);
      return output;
    }
    case "hand_over": {
      const { program, completion } = end;
      const { budget, prelude: little } = program;
      return ctx.handoffToAgent(local(agentOf(program)), program, {
        completion,
        ...defined({ budget }),
        ...(little === undefined ? {} : { persistence: "minimal" }),
      });
    }
  }
}

function cleanUp(ctx: AgentContext<Program, TurnState>): Promise<void> {
  return ctx.cleanup(async (sheltered) => {
    await sheltered.scheduleTask("patient" satisfies Policy, {
      node: CLEANED,
      behaviour: { isPatient: true },
    });
    await sheltered.sleep(20);
  });
}

interface WorkInput {
  readonly node: string;
  readonly behaviour: Behaviour;
  /** The most it may use, and what it does use. */
  readonly tokens?: number;
  readonly used?: number;
}

const MICRO_USD_PER_TOKEN = 10;

/** The tasks of all programs, in one life. */
export function programTasks(world: ProgramWorld): readonly TaskDefinition[] {
  return (Object.keys(POLICIES) as Policy[]).map((policy) => {
    const retry = POLICIES[policy];
    return defineTask<unknown, unknown>({
      name: policy,
      ...defined({ retry }),
      // One attempt alone does not say so: an orderly stop hands an attempt over without counting it.
      ...(policy === "once" ? { effect: "once" as const } : {}),
      ...(policy === "call" ? { cost: (input) => costOf(input as WorkInput) } : {}),
      run: async (input, task) => {
        const { node, behaviour, used } = input as WorkInput;
        const output = await work(task, node, behaviour, world);
        if (used !== undefined)
          task.reportUsage({
            model: "simulated",
            inputTokens: used,
            outputTokens: 0,
            costMicroUsd: used * MICRO_USD_PER_TOKEN,
          });
        return output;
      },
    });
  });
}

function costOf({ tokens = 0 }: WorkInput): { maxTokens: number; maxCostMicroUsd: number } {
  return { maxTokens: tokens, maxCostMicroUsd: tokens * MICRO_USD_PER_TOKEN };
}

function makeStage(turnCtx: AgentContext<Program, TurnState>, doWork: Stage["work"]): Stage {
  const ctx = turnCtx as unknown as AgentContext;
  const stage: Stage = {
    ctx,
    work: doWork,
    perform: (node) => kindOf(node).perform(node, stage),
    async inTurn(nodes) {
      const results: Value[] = [];
      for (const node of nodes) results.push(await stage.perform(node));
      return results;
    },
  };
  return stage;
}

async function work(
  task: TaskContext,
  node: string,
  behaviour: Behaviour,
  world: ProgramWorld,
): Promise<Value> {
  const { ms, end } = world.begin(task, node, behaviour);
  if (ms > 0) await world.sleep(ms);
  switch (end) {
    case "done":
      world.ended(task, node, "done");
      return node;
    case "fails":
      world.ended(task, node, "failed");
      throw new Error(`attempt ${task.attempt} of ${node} fails`);
    case "hopeless":
      throw new NonRetryableError(`${node} is hopeless`);
    case "hangs":
      return new Promise<never>(() => {});
  }
}
