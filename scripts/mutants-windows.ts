// Planted mutants of budgets per window (`mutants.ts`).

import type { Mutant } from "./mutant-run.ts";

const WINDOWS = "packages/core/src/budget/windows.test.ts";
const MEMORY = "packages/runtime/src/memory/memory-storage.test.ts";
const BEHAVIOUR = "packages/runtime/src/behaviour/budget-windows.test.ts";

const QUOTA = "packages/runtime/src/behaviour/quota.test.ts";

const SHARED = "packages/programs/src/session/limits/shared-budget.test.ts";

export const WINDOW_MUTANTS: readonly Mutant[] = [
  {
    name: "B2: coding agents of a tree see what the others have spent",
    marker: "fence-of-one",
    becomes: "",
    tests: [SHARED],
    test: "three agents of a tree spend one budget, and at most what was under way at its end",
    hangs: true,
  },
  {
    name: "B2: the usage of a report is charged once",
    marker: "charged-twice",
    becomes: "",
    tests: [SHARED],
    test: "usage is charged once, also where its process is gone in between",
  },
  {
    name: "ST53: a usage limit that is reset resumes its session",
    marker: "quota-never-reset",
    part: "exhausted?.until ?? quota?.resumesAt",
    becomes: "exhausted?.until",
    tests: [QUOTA],
    test: "it continues then, also in another process",
  },
  {
    name: "attempts-7: a session does not wait for a usage limit without end",
    marker: "quota-waits-unlimited",
    part: " && waited < QUOTA_WAITS_MAX",
    becomes: " && waited >= 0",
    tests: [QUOTA],
    test: "it waits for a person after its limit was not reset so many times in a row",
  },
  {
    name: "attempts-7: a task whose effect happens once pauses nothing",
    marker: "pause-of-once",
    part: "!mayRetryLost(task, attempt - task.paused)",
    becomes: "false",
    tests: [QUOTA],
    test: "a task whose effect happens once fails instead, because it may have no other attempt",
  },
  {
    name: "B3: an amount rolls out of its window",
    marker: "rolled-out-counted",
    part: "at + WINDOW_MS[per] <= now",
    becomes: "at > now",
    tests: [WINDOWS],
    test: "its ledger counts all of its length, and little of what is older",
  },
  {
    name: "B3: every window is charged",
    marker: "window-of-first-only",
    part: "limits.windows",
    becomes: "limits.windows.slice(0, 1)",
    tests: [WINDOWS],
    test: "every window and the lifetime are charged, and the first that is full refuses",
  },
  {
    name: "B3: the remaining amount of a window does not become a limit per lifetime",
    marker: "window-left-for-life",
    part: "payers.map(withoutWindows)",
    becomes: "payers",
    tests: [WINDOWS],
    test: "a session without its payers keeps the nearest window of each kind, and gets no limit for life from it",
  },
  {
    name: "B3: a child does not end the run of its payer",
    marker: "run-of-child-ends",
    part: "isOwn(rows, owner, session)",
    becomes: "true",
    tests: [MEMORY],
    test: "ST53: neither a new claim nor a run of a child ends the run of a payer",
  },
  {
    name: "B3: a session is resumed when its window has rolled on",
    marker: "rolled-window-ignored",
    part: "resumesAt(session) ?? Infinity",
    becomes: "Infinity",
    tests: [MEMORY],
    test: "ST53: a paused session resumes when its window has rolled on, and not before",
  },
  {
    name: "B3: a session that is paused for a day is not settled",
    marker: "rolling-pause-settled",
    part: "resumesAt(session) === undefined",
    becomes: "true",
    tests: [BEHAVIOUR],
    test: "a result that is asked for while the session is paused comes on the next day",
  },
];
