// `testAgent` follows a list of steps, for tests of everything around agents. It needs no model and no
// network, and is deterministic.
//
// The steps are an option of the agent. A session's input `{ steps }` overrides them.

import { defineAgent, type Agent, type AgentContext } from "@holdfast/runtime";

/** One step of a test agent. */
export type TestStep =
  /** Wait for a signal of this name. */
  | { readonly wait: string }
  /** Ask a person for an approval. */
  | { readonly ask: string }
  | { readonly sleepMs: number }
  /** Have a task of this kind done. */
  | { readonly task: string; readonly input?: unknown }
  /** Append an entry to the conversation. */
  | { readonly say: unknown }
  | { readonly progress: unknown }
  | { readonly fail: string };

/**
 * An agent that carries out a list of steps, for tests of the code around agents. Its output is the list of
 * what each step returned: a signal's payload, an answer, a task's output.
 */
export function testAgent({
  name,
  steps = [],
}: {
  readonly name: string;
  readonly steps?: readonly TestStep[];
}): Agent {
  return defineAgent({
    name,
    run: async (ctx, input) => {
      const given: unknown[] = [];
      for (const step of stepsOf(input) ?? steps) {
        const result = await take(step, ctx);
        if (result !== undefined) given.push(result.value);
      }
      return given;
    },
  });
}

function stepsOf(input: unknown): readonly TestStep[] | undefined {
  const { steps } = (input ?? {}) as { readonly steps?: unknown };
  return Array.isArray(steps) ? (steps as TestStep[]) : undefined;
}

async function take(step: TestStep, ctx: AgentContext): Promise<{ readonly value: unknown } | undefined> {
  if ("wait" in step) return { value: (await ctx.waitForSignal(step.wait)) ?? null };
  if ("ask" in step) return { value: await ctx.requestInput(step.ask) };
  if ("task" in step) return { value: (await ctx.scheduleTask(step.task, step.input)) ?? null };
  if ("sleepMs" in step) await ctx.sleep(step.sleepMs);
  else if ("say" in step) ctx.appendEntry({ role: "assistant", content: step.say });
  else if ("progress" in step) ctx.reportProgress(step.progress);
  else throw new Error(step.fail);
  return undefined;
}
