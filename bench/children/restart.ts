// Runs one session until `steps` of its steps are committed and the next one runs; that one hangs, to be
// killed. A stand-by only waits until the session is due.

import { createRuntime, defineAgent, type AgentContext } from "@holdfast/runtime";
import { openPlace } from "../storages.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { place, steps, checkpointEvery, isStandby } = optionsOf<{
  place: string;
  steps: number;
  checkpointEvery: number;
  isStandby?: boolean;
}>();
const SESSION_ID = "ses_restart";

function step(i: number): number | Promise<number> {
  if (i < steps) return i;
  notifyParent("running");
  return new Promise(() => {});
}

async function runSteps(ctx: AgentContext<unknown, number>, from: number, count: number): Promise<number> {
  for (let i = from; i < from + count; i++) await ctx.run("step", () => step(i));
  return from + count;
}

const agent =
  checkpointEvery === 0
    ? defineAgent<unknown, number, number>({ name: "restarted", run: (ctx) => runSteps(ctx, 0, Infinity) })
    : defineAgent<unknown, never, number>({
        name: "restarted",
        initial: () => 0,
        turn: async (ctx, done) => ({ state: await runSteps(ctx, done, checkpointEvery) }),
      });

// Killed at the parent's pleasure; without a parent there is nobody to go on for.
process.once("disconnect", () => process.exit());
const runtime = createRuntime({ storage: await openPlace(place), agents: [agent] });
if (isStandby === true) {
  await runtime.recover();
  notifyParent("standing-by");
} else {
  const session = await runtime.start(agent, undefined, { sessionId: SESSION_ID });
  if (!session.created) await runtime.resume(SESSION_ID);
}
