import { TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";
import { alarm, Timers } from "./timers.ts";

test("an alarm for NaN is refused, and delays no other", async () => {
  const clock = new TestClock();
  const timers = new Timers(clock);
  const rung: string[] = [];
  timers.set(
    alarm(() => rung.push("other")),
    clock.now() + 10,
  );
  const wrong = alarm(() => rung.push("wrong"));
  expect(() => timers.set(wrong, Number.NaN)).toThrow("set for no time");
  await clock.advance(10);
  expect(rung).toEqual(["other"]);
});

test.each([false, true])(
  "the time of an agent does not go back over its checkpoints when the clock is set back (a new process: %s)",
  async (isNew) => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const agent = defineAgent<unknown, number[], number[]>({
      name: "looks",
      run: async (ctx) => {
        const seen = [...(ctx.state ?? []), ctx.now()];
        await ctx.waitForSignal("go");
        if (seen.length === 3) return seen;
        return ctx.checkpoint(seen);
      },
    });
    const open = () => createRuntime({ storage, clock, agents: [agent], owner: "one", development: false });
    let runtime = open();
    const { sessionId } = await runtime.start(agent);
    for (let turn = 0; turn < 3; turn++) {
      await until(async () => (await runtime.handle(sessionId).session()).turn === turn, `turn ${turn}`);
      await turns(5);
      clock.jump(-3_600_000);
      if (isNew) {
        await runtime.close();
        runtime = open();
        await runtime.resume(sessionId);
      }
      await runtime.signal(sessionId, "go");
    }
    const seen = (await runtime.handle(sessionId).result()) as number[];
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    await runtime.close();
  },
);
