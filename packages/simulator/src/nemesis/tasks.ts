// Tasks that runners of the nemesis do for sessions of others.

import { setTimeout as sleep } from "node:timers/promises";
import { defineTask } from "@holdfast/runtime";
import { tell } from "./agents.ts";

export const work = defineTask<number, number>({
  name: "work",
  run: async (takesMs, task) => {
    tell(task, "begin", "work");
    await sleep(takesMs, undefined, { signal: task.signal });
    tell(task, "end", "work");
    return takesMs;
  },
});
