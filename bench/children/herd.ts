// Many runners in one process. Each is given one session, and stays in the middle of it until it is told to
// go on.

import { startRunner } from "@holdfast/runner";
import { defineAgent } from "@holdfast/runtime";
import { eachOf } from "../measure.ts";
import type { HerdOptions } from "../workloads/herd.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { url, registrations, folder, first } = optionsOf<HerdOptions>();
const released = Promise.withResolvers<void>();
let received = 0;

const held = defineAgent({
  name: "held",
  run: async (ctx) => {
    for (const step of ["before", "during", "after"]) {
      await ctx.run(step, async () => {
        notifyParent("step", { sessionId: ctx.sessionId, step });
        if (step === "during") await released.promise;
      });
    }
    await ctx.waitForSignal("end");
    notifyParent("resumed", { sessionId: ctx.sessionId });
  },
});

// A registration token is good for one call: none may take so long that it is given up.
await eachOf(registrations.length, 4, async (i) => {
  await startRunner({
    url,
    token: registrations[i]!,
    stateFolder: folder,
    workspace: folder,
    name: `runner-${first + i}`,
    labels: { number: String(first + i) },
    maxRuns: 2, // With one that is full it would let go of what only waits.
    agents: [held],
    log: (event) => {
      if (event.type === "received") received++;
    },
  });
});
process.on("message", (message: { readonly release?: boolean }) => {
  if (message.release === true) released.resolve();
  else notifyParent("report", { received });
});
process.once("disconnect", () => process.exit());
notifyParent("ready");
