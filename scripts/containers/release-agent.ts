// `RELEASE_AGENT`: the agent of the sessions in containers. `until` waits for something to become true.

import { setTimeout as delay } from "node:timers/promises";

/**
 * Each step leaves a line in the home of its user, and `slow` also a line when it begins. `slow` may run again, and
 * does nothing to the outside.
 */
export const RELEASE_AGENT = `import { appendFileSync } from "node:fs";
import { homedir } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { defineAgent } from "holdfast";
const write = (file, text) => appendFileSync(homedir() + "/" + file, text + "\\n");
export default defineAgent({
  name: "release",
  async run(ctx, { asks, slowMs }) {
    const done = (what) => ctx.run(what, () => write("effects", ctx.sessionId + " " + what), { effect: "once" });
    await done("before");
    const slow = async () => {
      write("begun", ctx.sessionId);
      await pause(slowMs);
    };
    await ctx.run("slow", slow, { effect: "read" });
    if (asks) await ctx.requestInput({ prompt: "Publish?" });
    await done("after");
    return "published";
  },
});
`;

const PATIENCE_MS = 10 * 60_000;

/** @throws Error what was not reached, with the last failure. */
export async function until(what: string, check: () => unknown): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; ;) {
    try {
      await check();
      return;
    } catch (cause) {
      if (performance.now() > deadline)
        throw new Error(`not within ${PATIENCE_MS / 60_000} minutes: ${what}`, { cause });
      await delay(1_000);
    }
  }
}
