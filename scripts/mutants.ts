// Planted mutants: each takes one guard out, and a test named beside it must fail because of that. A test
// that only runs out of time has not noticed: on a busy machine it would without the mutant.
//
// `npm run mutants` runs all of them. `npm test` runs some, through `scripts/mutants.test.ts`.
//
//   -- TEXT ...                those with one of these in their names or markers, such as D3
//
// Sources are never touched: the change is made as the file is loaded, by vitest (see `vitest.config.ts`) or
// by Node (see `mutant-hook.ts`). A comment `// mutant: MARKER` in the source stands above the code that a
// mutant changes (see `mutant-source.ts`).

import { readArguments, refuse } from "./arguments.ts";
import { COORDINATOR_MUTANTS } from "./mutants-coordinator.ts";
import { ENVIRONMENT_MUTANTS } from "./mutants-environments.ts";
import { FAMILY_MUTANTS } from "./mutants-families.ts";
import { FLEET_MUTANTS } from "./mutants-fleet.ts";
import { KERNEL_MUTANTS } from "./mutants-kernel.ts";
import { LOCAL_MUTANTS } from "./mutants-local.ts";
import { LOOP_MUTANTS } from "./mutants-loops.ts";
import { RUNNER_MUTANTS } from "./mutants-runner.ts";
import { WINDOW_MUTANTS } from "./mutants-windows.ts";
import { runMutant, type Mutant } from "./mutant-run.ts";

const CRASHES = "packages/testkit/src/crash/crash-everywhere.test.ts";
const MEMORY = "packages/runtime/src/memory/memory-storage.test.ts";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "K3: nothing starts before its batch is committed",
    marker: "task-before-commit",
    becomes:
      "this.#driven.isRowStale = false; for (const record of segment.newTasks) this.#attempts.start(record);",
    tests: [CRASHES, "packages/runtime/src/"],
    test: "a sequence of tasks",
  },
  {
    name: "H7: a kept outcome is delivered, not done again",
    marker: "kept-outcome-repeated",
    part: "task.kept !== undefined",
    becomes: "false",
    tests: [CRASHES, "packages/runtime/src/"],
    test: "a lost attempt is not repeated once the outcome of the next attempt is stored (H7)",
  },
  {
    name: "H8: a lost attempt is followed by another",
    marker: "no-attempt-after-loss",
    becomes: "[]",
    tests: [CRASHES],
    test: "a sequence of tasks",
    hangs: true,
  },
  {
    name: "S2: what arrived while a commit was in flight is looked for",
    marker: "poke-ignored",
    part: "this.isOver",
    becomes: "!this.isOver",
    tests: [CRASHES],
    test: "signals that come after the wait",
  },
  {
    name: "S2: a session that could not be claimed for a moment is tried again",
    marker: "claim-not-retried",
    part: "!isAway || this.#closed",
    becomes: "error.code.length > 0",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "a session whose pause was taken back resumes although its row cannot be read 3 times",
  },
  {
    name: "S2: a session that may have been created is gone on with",
    marker: "created-not-resumed",
    part: "this",
    becomes: "if (token !== undefined) this",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "a session whose creation was answered by an error continues if it was stored",
    hangs: true,
  },
  {
    name: "D6: a session with an unknown behaviour flag or journal format is not claimed",
    marker: "newer-session-claimed",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/newer-sessions.test.ts"],
    test: "the session is left to a newer process when it is found due",
  },
  {
    name: "D1: a session that met a full disk is gone on with once there is room",
    marker: "full-disk-not-retried",
    part: '"storage_full",',
    becomes: "",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "a session without room in storage notifies its waiters, repeats no work, and resumes once there is room",
  },
  {
    name: "D1a: a commit to a removed database is not acknowledged",
    marker: "removed-file-unnoticed",
    becomes: "",
    tests: ["packages/storage/src/sqlite/behaviour/removed.test.ts"],
    test: "it acknowledges nothing more once it is removed, and its owner still answers reads",
  },
  {
    name: "D3: a clock that was set forward is noticed",
    marker: "long-timer-sleep",
    part: "LOOK_AGAIN_MS",
    becomes: "LOOK_AGAIN_MS ** 9",
    tests: ["packages/runtime/src/runtime.test.ts"],
    test: "a clock that was set forward wakes due sessions within ten seconds",
    hangs: true,
  },
  {
    name: "H8: a lost attempt is not one of the three that may fail",
    marker: "losses-as-failures",
    part: "- lost",
    becomes: "- lost * 0",
    tests: ["packages/runtime/src/tasks/attempts.test.ts"],
    test: "a lost attempt does not count toward the default limit of three failed attempts",
  },
  {
    name: "O1, ST2: an older token is fenced",
    marker: "stale-token-accepted",
    part: "batch.token !== claim.token ||",
    becomes: "",
    tests: [MEMORY],
    test: "ST2: a token higher than any that was given out is fenced too",
  },
  {
    name: "O7: leases are renewed",
    marker: "leases-not-renewed",
    part: "this.#renew(now)",
    becomes: "this.#nextAt = Infinity",
    tests: ["packages/runtime/src/claims/lease-keeper.test.ts"],
    test: "a keeper lets go of all sessions once, three seconds before a lease without renewal ends",
  },
  {
    name: "O16: an abandoned claim stores no start of a task",
    marker: "abandoned-batch-kept",
    becomes: "return change;",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a once task that was asked for in a long outage has lost no attempt",
  },
  {
    name: "O16: a creation that was abandoned stores no start of a task",
    marker: "abandoned-creation-kept",
    becomes: "return change;",
    tests: ["packages/runtime/src/behaviour/long-outage.test.ts"],
    test: "O16: a session that was started in a long outage has lost no attempt",
  },
  {
    name: "O4: what cannot be renewed is let go of",
    marker: "lapsed-leases-kept",
    becomes: "",
    tests: ["packages/runtime/src/claims/lease-keeper.test.ts"],
    test: "O5: a keeper announces when it will let go, after each renewal and when no claim is left",
  },
  {
    name: "O4: what may have passed on is not renewed",
    marker: "lapsed-lease-renewed",
    becomes: "",
    tests: ["packages/runtime/src/claims/lease-keeper.test.ts"],
    test: "a keeper renews nothing when it is too late",
  },
  {
    name: "O7: a renewal that got lost is not waited for",
    marker: "lost-renewal-awaited",
    part: "askedAt + this.renewMs",
    becomes: "Infinity",
    tests: ["packages/runtime/src/claims/lease-keeper.test.ts"],
    test: "a keeper does not wait for a lost renewal, and the next one keeps the claims",
  },
  {
    name: "O3: only what its owner names is renewed",
    marker: "unnamed-leases-renewed",
    part: "|| wanted?.has(sessionId) === false",
    becomes: "",
    tests: ["packages/runtime/src/memory/memory-storage.test.ts"],
    test: "ST37: a renewal that names sessions renews only these",
  },
  {
    name: "S2: an overtaken answer puts off no look",
    marker: "late-answer-trusted",
    part: ">= this.#newest",
    becomes: "> 0",
    tests: ["packages/runtime/src/sessions/due-sessions.test.ts"],
    test: "due-sessions-5: an answer that a later one overtook does not delay due sessions",
  },
  {
    name: "H3: a poll that is asked again gets the same answer",
    marker: "repeated-poll-answered-anew",
    becomes: "",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "poller-1: a repeated poll gets the same answer and nothing more",
  },
  {
    name: "H3: an answer is not repeated with claims that were given back",
    marker: "lost-claims-repeated",
    part: ".filter((claim) => !lost.includes(claim))",
    becomes: "",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "poller-1: a repeated poll does not get claims that were released since",
  },
  {
    name: "O1: a claim that was used elsewhere is not given back",
    marker: "used-claim-released",
    part: "({ asGiven }) => ({ ifUnchanged: asGiven })",
    becomes: "() => ({})",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "claiming-1: a claim under which a batch without records was committed is not given back",
  },
  {
    name: "S2: losing every notice loses no session",
    marker: "no-scan",
    becomes: "const isOld = false;",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "poller-5: a replaced poll that arrives after its successor releases no claim",
  },
  {
    name: "D2: a damaged row is named, never believed",
    marker: "damaged-row-believed",
    part: "stored === computed",
    becomes: "stored === computed || path.length > 0",
    tests: [
      "packages/storage/src/sqlite/open.test.ts",
      "packages/storage/src/sqlite/behaviour/crash.test.ts",
    ],
    test: "D2: a single flipped bit of a payload is found, naming file, table and row",
  },
  {
    name: "H1: acknowledged means synced",
    marker: "commit-not-synced",
    part: "FULL",
    becomes: "OFF",
    tests: ["packages/storage/src/sqlite/behaviour/sync.test.ts", "packages/storage/src/sqlite/open.test.ts"],
    test: "SYNC: between a commit's last write to the log and its acknowledgement the log is synced",
  },
  {
    name: "D2: an entry's own row is checked",
    marker: "entry-row-unchecked",
    becomes: "",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
    test: "a flipped bit of its checksum",
  },
  {
    name: "D2: a database of a newer version is refused",
    marker: "newer-database-opened",
    part: "SCHEMA_VERSION",
    becomes: "SCHEMA_VERSION * 1_000",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
    test: "D2: a database of a newer version is refused, naming both versions, and left as it was",
  },
  {
    name: "H2: a transaction that failed leaves nothing",
    marker: "failed-transaction-kept",
    part: "ROLLBACK",
    becomes: "COMMIT",
    tests: ["packages/storage/src/sqlite/behaviour/group.test.ts"],
    test: "ST6: tokens grow over a restart also when the transaction that took a block of them failed",
  },
  {
    name: "H3: a batch sent again gives the first answer",
    marker: "batch-applied-twice",
    becomes: "",
    tests: [MEMORY],
    test: "ST3: a batch and the release behind it may be sent again together",
  },
  {
    name: "H4: entries are numbered without a gap",
    marker: "entry-gap-accepted",
    part: "!==",
    becomes: "<",
    tests: [MEMORY],
    test: "ST19: an entry that skips a number makes its batch invalid",
  },
  {
    name: "H8: an author's limit counts lost attempts",
    marker: "attempts-unlimited",
    becomes: "return true;",
    tests: ["packages/core/src/session/retry.test.ts", CRASHES],
    test: "a lost attempt counts against a policy that its author wrote, so maxAttempts: 1 is at most once",
  },
  {
    name: "an effect that happens once is never repeated after a loss",
    marker: "lost-effect-repeated",
    becomes: "",
    tests: ["packages/core/src/session/retry.test.ts"],
    test: "a lost attempt of an effect that happens once is never run again, whatever the policy allows",
  },
  {
    name: "H10: replay starts at the last checkpoint",
    marker: "first-checkpoint-kept",
    part: "=",
    becomes: "??=",
    tests: [MEMORY],
    test: "ST33: two checkpoints of one batch are both counted",
  },
  {
    name: "S1: a signal sent again is one signal",
    marker: "duplicate-signal-stored",
    becomes: "",
    tests: [MEMORY],
    test: "ST9: a dedup key that is sent twice is stored once, under whatever ids",
  },
  {
    name: "S2: a signal that is waited for makes its session due",
    marker: "answered-wait-not-due",
    part: "answered ? -Infinity :",
    becomes: "",
    tests: [MEMORY],
    test: "ST18: a session that begins to wait for a signal it already has is due at once",
  },
  {
    name: "L1: only declared transitions",
    marker: "any-transition-allowed",
    part: "includes(to)",
    becomes: "includes(to) || !isEnded(from)",
    tests: [MEMORY],
    test: "ST23: a session goes from input_required to working, waiting, input_required, paused, cancelling, completed, failed, cancelled and nothing else",
  },
  {
    name: "L2: a cancelled session does not complete",
    marker: "cancelled-completes",
    becomes: "const isRefused = false;",
    tests: [MEMORY],
    test: "ST16: a pause after the cancel does not wash it off",
  },
  {
    name: "L2: a pause does not wash a cancel off",
    marker: "pause-drops-cancel",
    part: 'session.cancel !== undefined && hasNotSeenCancel(patch) ? "cancelling" :',
    becomes: "",
    tests: [MEMORY],
    test: "ST16: a batch that says paused for a budget, made before its agent heard of the cancel, is committed and leaves it due",
  },
  {
    name: "L3: who waits says what for",
    marker: "wait-for-nothing",
    part: "waits.length > 0",
    becomes: "true",
    tests: [MEMORY],
    test: "ST23: a session does not wait without naming what it waits for",
  },
  {
    name: "K6: an outcome that cost a process is kept before it is delivered",
    marker: "outcome-before-commit",
    part: "task.lost === 0",
    becomes: "true",
    tests: ["packages/runtime/src/tasks/attempts.test.ts", CRASHES],
    test: "a lost attempt is not repeated once the outcome of the next attempt is stored (H7)",
  },
  {
    name: "K10c: times that were missed fire once",
    marker: "missed-times-all-fire",
    part: "Math.max(dueAt, clock.now())",
    becomes: "dueAt",
    tests: ["packages/runtime/src/schedules/schedules.test.ts"],
    test: "times that were missed fire once as the first of them, and the next one fires as usual",
  },
  {
    name: "K10c: what a time starts is named by it",
    marker: "fired-session-unnamed",
    part: "scheduleId",
    becomes: "scheduleId + Math.random()",
    tests: ["packages/runtime/src/schedules/schedules.test.ts"],
    test: "a session runs in the next process when the one that fired its schedule dies",
  },
  {
    name: "K10c, ST34: put again a schedule stays where it is in its times",
    marker: "schedule-put-restarts",
    part: "isSame && !wasPaused ? known.nextAt :",
    becomes: "",
    tests: [MEMORY],
    test: "ST34: put again with the same times it stays where it is in them, and takes what is new besides",
  },
  {
    name: "K10c: a time that exists twice is the first",
    marker: "repeated-hour-fires-twice",
    part: "takesEveryHour(line) ? nextBySteps : nextByDay",
    becomes: "nextBySteps",
    tests: ["packages/runtime/src/schedules/cron.test.ts"],
    test: "cron-2: a time that exists twice is the first",
  },
  {
    name: "S4: the end of a child is told",
    marker: "child-end-unreported",
    part: "handedOffTo !== undefined",
    becomes: "true",
    tests: ["packages/core/src/rules/consequences.test.ts"],
    test: "is reported twice, as the last event",
  },
  {
    name: "S4: the end of a child is told once",
    marker: "child-end-reported-twice",
    part: "[last,",
    becomes: "[last, { ...last, signalId: `${by}:again` },",
    tests: ["packages/core/src/rules/consequences.test.ts", MEMORY],
    test: "ST27: a cancel because of a budget is told with the limit, and then the end it comes to",
  },
  {
    name: "S4: a cancel reaches the whole tree below",
    marker: "cancel-of-root-only",
    part: "before.cancel === undefined",
    becomes: "before.cancel === undefined && after.depth === 0",
    tests: [
      "packages/core/src/rules/consequences.test.ts",
      MEMORY,
      "packages/runtime/src/behaviour/children.test.ts",
    ],
    test: "a cancel of a child reaches the sessions below the child",
  },
  {
    name: "S4: that a budget is used up is told also where it cancels",
    marker: "budget-end-unreported",
    part: "exhausted === undefined || after.parent === undefined",
    becomes: 'exhausted?.then !== "park"',
    tests: ["packages/core/src/rules/consequences.test.ts"],
    test: "consequences-3: a cancel for a budget is reported before the end that it leads to",
  },
  {
    name: "B1: every payer is asked",
    marker: "first-payer-only",
    part: "payers",
    becomes: "[...payers].slice(0, 1)",
    tests: ["packages/core/src/budget/budget.test.ts", MEMORY],
    test: "B1: with true worst cases nothing is ever overspent, whatever the order and how many pay",
  },
  {
    name: "B2: what a task used is settled",
    marker: "task-not-settled",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/budget.test.ts"],
    test: "an unused part of a reservation is released for other calls",
    hangs: true,
  },
  {
    name: "B2: the charge for a lost attempt says so",
    marker: "lost-charge-unmarked",
    part: ", true",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/lost-attempts.test.ts"],
    test: "lost attempts are charged in full and shown apart",
  },
  {
    name: "K6: a refused end keeps what it was made of",
    marker: "refused-end-forgotten",
    part: 'result.status !== "invalid" || !isToBeKept',
    becomes: "refusal !== undefined",
    tests: ["packages/runtime/src/behaviour/cancel.test.ts"],
    test: "a cancel that is stored before the end repeats no task: the agent gets what was done again (minimal, ends upon a signal)",
  },
  {
    name: "H8: a back-off outlives its process, also under a budget",
    marker: "back-off-forgotten",
    part: "wasBegun !== true",
    becomes: "wasBegun === undefined",
    tests: ["packages/runtime/src/tasks/task-starts.test.ts"],
    test: "with the budget { maxSteps: 9 } a back-off outlives its process",
  },
  ...WINDOW_MUTANTS,
  {
    name: "B1: a turn that was refused counts when it begins after all",
    marker: "refused-turn-uncounted",
    part: 'exhausted?.limit === "maxTurns"',
    becomes: "payers.length < 0",
    tests: [MEMORY],
    test: "ST30: a turn that was refused counts when it begins after all, and begins when all payers can pay it",
  },
  {
    name: "S1: a question that was answered in time is not given up",
    marker: "answered-question-abandoned",
    part: "kernel.hasOwn ? undefined :",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/questions.test.ts"],
    test: "an answer that came in time, while nobody ran the session, is heard",
  },
  {
    name: "S2: a session resumed before its driver let go is not paused again",
    marker: "resumed-session-paused",
    part: "patch === PAUSED_BY_USER",
    becomes: "false",
    tests: ["packages/runtime/src/behaviour/budget.test.ts", CRASHES],
    test: "a pause that is taken back before the driver has released the session has no effect",
  },
  {
    name: "L2: an agent that ends before it heard of its cancel is cancelled",
    marker: "unseen-cancel-completes",
    part: "|| this.#seen",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/children.test.ts"],
    test: "a session that is cancelled before its first call is cancelled, although its agent ends at once",
  },
  ...KERNEL_MUTANTS,
  ...FAMILY_MUTANTS,
  ...FLEET_MUTANTS,
  ...LOOP_MUTANTS,
  ...RUNNER_MUTANTS,
  ...LOCAL_MUTANTS,
  ...COORDINATOR_MUTANTS,
  ...ENVIRONMENT_MUTANTS,
];

if (import.meta.main) {
  const { positionals } = readArguments(import.meta.filename, {}, true);
  const chosen = MUTANTS.filter(
    ({ name, marker }) =>
      positionals.length === 0 || positionals.some((text) => `${name} ${marker}`.includes(text)),
  );
  if (chosen.length === 0)
    refuse(
      `no mutant has ${positionals.join(" or ")} in its name or marker`,
      "names begin with their promise, such as D3",
    );
  let survived = 0;
  for (const mutant of chosen) {
    const { isKilled, why } = await runMutant(mutant);
    if (!isKilled) survived++;
    console.log(isKilled ? `killed    ${mutant.name}` : `SURVIVED  ${mutant.name}: ${why}`);
  }
  console.log(`${chosen.length - survived} of ${chosen.length} mutants killed`);
  process.exitCode = survived > 0 ? 1 : 0;
}
