// Planted mutants of loops that run for as long as their process, and of the orderly stop of a process
// (`mutants.ts`).

import type { Mutant } from "./mutant-run.ts";

const STOP = "packages/runtime/src/behaviour/orderly-stop.test.ts";

export const LOOP_MUTANTS: readonly Mutant[] = [
  {
    name: "repeat-1: a look that fails is followed by another",
    marker: "loop-ended-by-error",
    becomes: "throw error;",
    tests: ["packages/core/src/time/repeat.test.ts"],
    test: "repeat-1: a look that rejects is followed by another",
  },
  {
    name: "D1: a session whose storage failed in a way that nobody foresaw is tried again",
    marker: "unforeseen-error-not-retried",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/failing-calls.test.ts"],
    test: "an error that is not ours",
  },
  {
    name: "due-sessions-6: a failed look is followed by another",
    marker: "failed-look-ends-adoption",
    becomes: "",
    tests: ["packages/runtime/src/sessions/due-sessions.test.ts"],
    test: "due-sessions-6: a recover() that fails with storage_full is followed by a look that adopts what is due",
  },
  {
    name: "O16: a task whose request was stored without an answer has lost no attempt",
    marker: "unbegun-not-noted",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a once task whose request was stored without an answer in a long outage has lost no attempt",
  },
  {
    name: "O16: a task that another process may have begun counts as lost",
    marker: "unbegun-under-any-claim",
    part: "noted.token === before",
    becomes: "noted.token > 0",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a task that another process has held since counts as lost, as it may have begun there",
  },
  {
    name: "O16: an attempt that waited for a slot has not begun",
    marker: "waiting-attempt-begun",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a task that waited for a slot when its session was abandoned has lost no attempt",
  },
  {
    name: "O16: a retry that was not due has not begun",
    marker: "waiting-retry-begun",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a retry that was due in a long outage has lost no attempt",
  },
  {
    name: "O16: an attempt that ended before its handler was called has not begun",
    marker: "failed-before-begun",
    part: "running.handle?.hasBegun === false ? attempt : attempt + 1",
    becomes: "attempt + 1",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: an attempt that timed out before its handler was called has lost nothing",
  },
  {
    name: "C4: a commit whose answer was lost with the owner of the storage is sent again",
    marker: "lost-answer-given-up",
    part: 'error.code !== "storage_unavailable" || delay === undefined',
    becomes: "delay === undefined || flight.failures > 0",
    tests: ["packages/runtime/src/loop/group-committer.test.ts"],
    test: "a group with an unknown result is sent again unchanged, and later groups wait for it",
  },
  {
    name: "C3: an attempt that runs at an orderly stop is recorded as handed over",
    marker: "hand-over-not-recorded",
    becomes: "",
    tests: [STOP],
    test: "nine rollouts within a step cost no attempt",
  },
  {
    name: "C3: a process that stops lets its attempts end within the grace",
    marker: "stop-abandons",
    becomes: "return this.abandon();",
    tests: [STOP],
    test: "a step that ends within the grace is not repeated, and its agent goes on in the next process",
  },
  {
    name: "C3: a session pauses at the tenth hand-over of a task",
    marker: "hand-overs-unlimited",
    part: "=== 0",
    becomes: "< 0",
    tests: [STOP],
    test: "a session pauses when the same step was cut off ten times, and its reason names the grace",
  },
  {
    name: "C3: a command that an orderly stop cuts off is not run again",
    marker: "stopped-command-again",
    part: '"once"',
    becomes: '"keyed"',
    tests: ["packages/agents/src/tasks/stopped-command.test.ts"],
    test: "a command that was cut off by a stop, and may be done once",
  },
  {
    name: "C3: an effect that happens once is uncertain after a hand-over",
    marker: "once-handed-over",
    part: "unknownEnd(task, STOPPED)",
    becomes: "STOPPED",
    tests: [STOP],
    test: "an effect that happens once and outlasts the grace is uncertain",
    hangs: true,
  },
  {
    name: "K11: a minimal session that is let go of stores no outcomes without their tasks",
    marker: "outcomes-of-minimal-kept",
    part: 'change.session?.persistence === "full"',
    becomes: "false",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "K11: a minimal session that becomes persistent in a long outage stores no outcomes without their tasks",
  },
];
