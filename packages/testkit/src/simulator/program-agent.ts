// The agent that does a program, and the tasks of all programs, in one life of a process.

import {
  defineAgent,
  defineTask,
  NonRetryableError,
  type Agent,
  type AgentContext,
  type TaskContext,
} from "@holdfast/runtime";
import type { AttemptPlan, Behaviour } from "./effects.ts";
import { kindOf } from "./nodes.ts";
import { POLICIES, type Policy } from "./nodes-tasks.ts";
import { NEVER, type Program, type Stage, type Value } from "./program.ts";

/** What a life gives the agents that run in it. */
export interface ProgramWorld {
  begin(task: TaskContext, node: string, behaviour: Behaviour): AttemptPlan;
  sleep(ms: number): Promise<void>;
  /** An attempt did what it is there for, or failed, after all it took. */
  ended(task: TaskContext, node: string, end: "done" | "failed"): void;
}

interface TurnState {
  readonly turn: number;
  readonly results: readonly Value[];
}

/** What cancelled sessions give: a cancel may come anywhere. */
export const PARTIAL = "cancelled on the way";
const CLEANED = "cleanup";

/** The agent that does a program, in one life of a process. */
export function programAgent(name: string, program: Program, world: ProgramWorld): Agent {
  const doWork = (node: string, behaviour: Behaviour) => (anyTask: unknown) =>
    work(anyTask as TaskContext, node, behaviour, world);
  return defineAgent<unknown, Value, TurnState>({
    name,
    run: async (ctx) => {
      const { turn, results } = ctx.state ?? { turn: 0, results: [] };
      const stage = makeStage(ctx, doWork);
      try {
        const done = [...results, await stage.inTurn(program.turns[turn] ?? [])];
        if (turn + 1 < program.turns.length)
          return await ctx.checkpoint({ turn: turn + 1, results: done }, { openTasks: "wait" });
        if (program.waitsForEver) await ctx.waitForSignal(NEVER);
        return done;
      } catch (error) {
        if (!ctx.isCancellationRequested()) throw error;
        if (program.cleansUp) {
          await ctx.cleanup(async (sheltered) => {
            await sheltered.scheduleTask("patient" satisfies Policy, {
              node: CLEANED,
              behaviour: { isPatient: true },
            });
            await sheltered.sleep(20);
          });
        }
        return PARTIAL;
      }
    },
  });
}

/** The tasks of all programs, in one life. */
export function programTasks(world: ProgramWorld) {
  return (Object.keys(POLICIES) as Policy[]).map((policy) => {
    const retry = POLICIES[policy];
    return defineTask<unknown, unknown>({
      name: policy,
      ...(retry === undefined ? {} : { retry }),
      run: (input, task) => {
        const { node, behaviour } = input as { readonly node: string; readonly behaviour: Behaviour };
        return work(task, node, behaviour, world);
      },
    });
  });
}

function makeStage(ctx: AgentContext, doWork: Stage["work"]): Stage {
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
