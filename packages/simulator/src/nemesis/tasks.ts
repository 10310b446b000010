// Tasks that runners of the nemesis do for sessions of others.

import { setTimeout as sleep } from "node:timers/promises";
import { defineTask } from "@holdfast/runtime";
import { report } from "./agents.ts";

export const work = defineTask<number, number>({
  name: "work",
  run: async (takesMs, task) => {
    report(task, "begin", "work");
    await sleep(takesMs, undefined, { signal: task.signal });
    report(task, "end", "work");
    return takesMs;
  },
});
