// Tasks that a process let go of, over the claims that follow.

import { expect, test } from "vitest";
import { UnbegunTasks } from "./unbegun-tasks.ts";

const TASKS = new Map([[7, 2]]);

test.each([
  ["a claim after the session was let go of", [[6, 5]], [], 6, TASKS],
  ["a claim that came before it was let go of", [], [[6, 5]], 6, TASKS],
  [
    "several that came before",
    [],
    [
      [6, 5],
      [7, 6],
    ],
    7,
    TASKS,
  ],
  ["claims on both sides", [[7, 6]], [[6, 5]], 7, TASKS],
  ["a claim of another process in between", [], [[7, 6]], 7, new Map()],
  ["the same, after the session was let go of", [[7, 6]], [], 7, new Map()],
  ["a claim that names none", [], [[6, undefined]], 6, new Map()],
] as const)("%s", (_what, after, before, token, known) => {
  const unbegun = new UnbegunTasks();
  unbegun.claimed("s", 5, 4);
  expect(unbegun.take("s", 5).size).toBe(0);
  for (const [claim, last] of before) unbegun.claimed("s", claim, last);
  unbegun.note("s", 5, TASKS);
  for (const [claim, last] of after) unbegun.claimed("s", claim, last);
  expect(unbegun.take("s", token)).toEqual(known);
  expect(unbegun.take("s", token).size).toBe(0);
});
