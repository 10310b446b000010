// Planted mutants: each takes one guard out, and a test named beside it must fail because of that. A test that only runs out of
// time has not noticed: on a busy machine it would without the mutant.
//
// `npm run mutants`: all of them; `npm test` runs some, by way of `scripts/mutants.test.ts`.
//
//   -- TEXT ...                those with one of these in their names, such as D3
//
// Sources are never touched: the change is made as the file is loaded, by vitest (see `vitest.config.ts`) or by Node (see
// `mutant-hook.ts`). A mutant whose text is no longer there is an error, so that the list cannot go stale.

import { readArguments, refuse } from "./arguments.ts";
import { COORDINATOR_MUTANTS } from "./mutants-coordinator.ts";
import { FAMILY_MUTANTS } from "./mutants-families.ts";
import { FLEET_MUTANTS } from "./mutants-fleet.ts";
import { KERNEL_MUTANTS } from "./mutants-kernel.ts";
import { runMutant, type Mutant } from "./mutant-run.ts";

const CRASHES = "packages/testkit/src/crash/crash-everywhere.test.ts";
const MEMORY = "packages/runtime/src/memory/memory-storage.test.ts";
const CONSEQUENCES = "packages/core/src/session/consequences.ts";
const RULES = "packages/core/src/session/storage-rules.ts";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "K3: nothing starts before its batch is committed",
    file: "packages/runtime/src/session/session-driver.ts",
    find: "this.#rowStale = false;\n",
    replace:
      "this.#rowStale = false;\n    for (const task of segment.newTasks) this.#attempts.start(task);\n",
    tests: [CRASHES, "packages/runtime/src/"],
    test: "a sequence of tasks",
  },
  {
    name: "H7: a kept outcome is delivered, not done again",
    file: "packages/runtime/src/tasks/attempts.ts",
    find: "if (task.kept !== undefined) {\n        this.#deliverKept(task);\n      } else if",
    replace: "if",
    tests: [CRASHES, "packages/runtime/src/"],
    test: "is not done again when its successor's outcome was kept (H7)",
  },
  {
    name: "H8: a lost attempt is followed by another",
    file: "packages/runtime/src/tasks/task-starts.ts",
    find: 'record.type === "attempt_lost" ? (this.#host.openTask(record.task) ?? []) : []',
    replace: "[]",
    tests: [CRASHES],
    test: "a sequence of tasks",
    hangs: true,
  },
  {
    name: "S2: what arrived while a commit was in flight is looked for",
    file: "packages/runtime/src/session/session-driver.ts",
    find: "poke(): void {\n    if (this.#over) return;",
    replace: "poke(): void {\n    if (!this.#over) return;",
    tests: [CRASHES],
    test: "signals that come after the wait",
  },
  {
    name: "K10: a session that could not be claimed for a moment is tried again",
    file: "packages/runtime/src/sessions/live-sessions.ts",
    find: "if (!isAway || this.#closed) return;",
    replace: "if (error.code.length > 0) return;",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "for its row, when its pause was over already, after 3",
  },
  {
    name: "K10: a session that may have been created is gone on with",
    file: "packages/runtime/src/sessions/live-sessions.ts",
    find: "this.failedToRun(sessionId, departure.error); // Also",
    replace: "if (token !== undefined) this.failedToRun(sessionId, departure.error); // Also",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "a session whose creation was answered by an error, and may have been stored, goes on if it was",
    hangs: true,
  },
  {
    name: "D1: a session that met a full disk is gone on with once there is room",
    file: "packages/runtime/src/session/session-errors.ts",
    find: '"storage_full", ',
    replace: "",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "is told to whoever waits for it, does nothing twice, and goes on once there is room",
  },
  {
    name: "D1a: a commit to a removed database is not acknowledged",
    file: "packages/storage/src/sqlite/engine/sqlite-storage.ts",
    find: "this.#options.guard?.check(); // S5.",
    replace: "",
    tests: ["packages/storage/src/sqlite/behaviour/removed.test.ts"],
    test: "once it is removed, and its owner can still be asked",
  },
  {
    name: "D3: a clock that was set forward is noticed",
    file: "packages/runtime/src/loop/timers.ts",
    find: "Math.min(at - this.#clock.now(), LOOK_AGAIN_MS)",
    replace: "Math.min(at - this.#clock.now(), LOOK_AGAIN_MS ** 9)",
    tests: ["packages/runtime/src/runtime.test.ts"],
    test: "is noticed within ten seconds by what it has reached",
    hangs: true,
  },
  {
    name: "H8: a lost attempt is not one of the three that may fail",
    file: "packages/runtime/src/tasks/attempts.ts",
    find: "attempt - lost : attempt",
    replace: "attempt - lost * 0 : attempt",
    tests: ["packages/runtime/src/tasks/attempts.test.ts"],
    test: "does not use up the three that may end in an error, where the author set no limit",
  },
  {
    name: "O1, ST2: an older token is fenced",
    file: "packages/core/src/session/storage-rules.ts",
    find: "if (batch.token !== claim.token || claim.token === NO_CLAIM.token)",
    replace: "if (claim.token === NO_CLAIM.token)",
    tests: [MEMORY],
    test: "ST2: a token higher than any that was given out is fenced too",
  },
  {
    name: "O7: leases are renewed",
    file: "packages/runtime/src/sessions/lease-keeper.ts",
    find: "if (now >= this.#nextAt) this.#renew(now);",
    replace: "if (now >= this.#nextAt) this.#nextAt = Infinity;",
    tests: ["packages/runtime/src/sessions/lease-keeper.test.ts"],
    test: "lets go of everything, once, three seconds before a lease that was not renewed can pass on",
  },
  {
    name: "O4: what cannot be renewed is let go of",
    file: "packages/runtime/src/sessions/lease-keeper.ts",
    find: "    this.#goIdle();\n    this.#host.letGo();",
    replace: "    this.#goIdle();",
    tests: ["packages/runtime/src/sessions/lease-keeper.test.ts"],
    test: "O5: tells by when it lets go, after each renewal anew, and when there is nothing left to let go of",
  },
  {
    name: "O4: what may have passed on is not renewed",
    file: "packages/runtime/src/sessions/lease-keeper.ts",
    find: "    this.check();\n    if (this.#since === undefined) return;\n    const now",
    replace: "    if (this.#since === undefined) return;\n    const now",
    tests: ["packages/runtime/src/sessions/lease-keeper.test.ts"],
    test: "renews nothing when it comes too late",
  },
  {
    name: "O7: a renewal that got lost is not waited for",
    file: "packages/runtime/src/sessions/lease-keeper.ts",
    find: "this.#nextAt = askedAt + this.renewMs;",
    replace: "this.#nextAt = Infinity;",
    tests: ["packages/runtime/src/sessions/lease-keeper.test.ts"],
    test: "does not wait for a renewal that is not answered: the next one keeps what is held",
  },
  {
    name: "O3: only what its owner names is renewed",
    file: "packages/runtime/src/memory/memory-storage.ts",
    find: "|| wanted?.has(sessionId) === false",
    replace: "",
    tests: ["packages/runtime/src/memory/memory-storage.test.ts"],
    test: "ST37: of an owner that names its sessions, only these are renewed",
  },
  {
    name: "S2: an overtaken answer puts off no look",
    file: "packages/runtime/src/sessions/due-sessions.ts",
    find: "const isNewest = asked >= this.#newest;",
    replace: "const isNewest = asked > 0;",
    tests: ["packages/runtime/src/sessions/due-sessions.test.ts"],
    test: "T5: an answer that was overtaken does not put off what is due",
  },
  {
    name: "H3: a poll that is asked again gets the same answer",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "if (known !== undefined) return known;",
    replace: "",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "W1: a poll that is asked again gets what it got, and nothing besides",
  },
  {
    name: "H3: an answer is not repeated with claims that were given back",
    file: "packages/coordinator/src/dispatch/seat.ts",
    find: "told.claims.filter((claim) => !lost.includes(claim))",
    replace: "told.claims",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "W1: and nothing that was given back meanwhile",
  },
  {
    name: "O1: a claim that was used elsewhere is not given back",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "({ asGiven }) => ({ ifUnchanged: asGiven })",
    replace: "() => ({})",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "D2: a claim under which a batch without records was committed is not given back",
  },
  {
    name: "S2: losing every notice loses no session",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "const isOld = clock.monotonic() - this.#scannedAt >= SCAN_MS;",
    replace: "const isOld = false;",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
    test: "W5: a poll that was left, and arrives after the one that followed it, takes nothing away",
  },
  {
    name: "D2: a damaged row is named, never believed",
    file: "packages/storage/src/sqlite/tables/row-checks.ts",
    find: "  if (stored === computed) return;",
    replace: "  if (stored === computed || path.length > 0) return;",
    tests: [
      "packages/storage/src/sqlite/open.test.ts",
      "packages/storage/src/sqlite/behaviour/crash.test.ts",
    ],
    test: "D03: a single flipped bit of a payload is found, naming file, table and row",
  },
  {
    name: "H1: acknowledged means synced",
    file: "packages/storage/src/sqlite/file/database.ts",
    find: 'driver.exec("PRAGMA synchronous = FULL");',
    replace: 'driver.exec("PRAGMA synchronous = OFF");',
    tests: ["packages/storage/src/sqlite/behaviour/sync.test.ts", "packages/storage/src/sqlite/open.test.ts"],
    test: "SYNC: between a commit's last write to the log and its acknowledgement the log is synced",
  },
  {
    name: "D2: an entry's own row is checked",
    file: "packages/storage/src/sqlite/tables/rows.ts",
    find: 'assertChecksum(path, "entry", key, row["checksum"], rowChecksum(valuesOf(row, ENTRY_COLUMNS)));',
    replace: "",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
    test: "a flipped bit of its checksum",
  },
  {
    name: "D2: a database of a newer version is refused",
    file: "packages/storage/src/sqlite/file/database.ts",
    find: "if (version > SCHEMA_VERSION) {",
    replace: "if (version > SCHEMA_VERSION * 1_000) {",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
    test: "D06: a database of a newer version is refused, naming both versions, and left as it was",
  },
  {
    name: "H2: a transaction that failed leaves nothing",
    file: "packages/storage/src/sqlite/engine/sqlite-storage.ts",
    find: 'if (this.#driver.inTransaction) this.#driver.exec("ROLLBACK");',
    replace: 'if (this.#driver.inTransaction) this.#driver.exec("COMMIT");',
    tests: ["packages/storage/src/sqlite/behaviour/group.test.ts"],
    test: "ST6: tokens grow over a restart also when the transaction that took a block of them failed",
  },
  {
    name: "H3: a batch sent again gives the first answer",
    file: RULES,
    find: 'if (isResent(session, batch, lookups)) return { status: "committed", inbox: session.inbox };',
    replace: "",
    tests: [MEMORY],
    test: "ST3: a batch and the release behind it may be sent again together",
  },
  {
    name: "H4: entries are numbered without a gap",
    file: RULES,
    find: "if (entry.index !== index) return",
    replace: "if (entry.index < index) return",
    tests: [MEMORY],
    test: "ST19: an entry that skips a number makes its batch invalid",
  },
  {
    name: "H8: an author's limit counts lost attempts",
    file: "packages/core/src/session/retry.ts",
    find: "policy?.maxAttempts === undefined || attempt < policy.maxAttempts",
    replace: "true",
    tests: ["packages/core/src/session/retry.test.ts", CRASHES],
    test: "counts against a policy that its author wrote, so maxAttempts: 1 is at most once",
  },
  {
    name: "H10: replay starts at the last checkpoint",
    file: RULES,
    find: "next.checkpointSeq = records[i]!.seq;",
    replace: "next.checkpointSeq ??= records[i]!.seq;",
    tests: [MEMORY],
    test: "ST33: two checkpoints of one batch are both counted",
  },
  {
    name: "S1: a signal sent again is one signal",
    file: RULES,
    find: 'if (facts.seen) return { result: { status: "duplicate" } };',
    replace: "",
    tests: [MEMORY],
    test: "ST9: a dedup key that is sent twice is stored once, under whatever ids",
  },
  {
    name: "S2: a signal that is waited for makes its session due",
    file: "packages/core/src/session/due.ts",
    find: 'case "waiting":\n    case "input_required":\n      return answered ? -Infinity : (session.wakeAt ?? Infinity);',
    replace: 'case "waiting":\n    case "input_required":\n      return session.wakeAt ?? Infinity;',
    tests: [MEMORY],
    test: "ST18: a session that begins to wait for a signal it already has is due at once",
  },
  {
    name: "L1: only declared transitions",
    file: "packages/core/src/session/session.ts",
    find: "return NEXT[from].includes(to);",
    replace: "return NEXT[from].includes(to) || !isEnded(from);",
    tests: [MEMORY],
    test: "ST23: a session goes from input_required to working, waiting, input_required, paused, cancelling, completed, failed, cancelled and nothing else",
  },
  {
    name: "L2: a cancelled session does not complete",
    file: "packages/core/src/session/storage-rules.ts",
    find: 'const isRefused = session.cancel !== undefined && status === "completed";',
    replace: "const isRefused = false;",
    tests: [MEMORY],
    test: "ST16: a pause after the cancel does not wash it off",
  },
  {
    name: "L2: a pause does not wash a cancel off",
    file: RULES,
    find: 'return session.cancel !== undefined && hasNotHeard(patch) ? "cancelling" : patch.status;',
    replace: "return patch.status;",
    tests: [MEMORY],
    test: "ST16: a batch that says paused for a budget, made before its agent heard of the cancel, is committed and leaves it due",
  },
  {
    name: "L3: who waits says what for",
    file: RULES,
    find: 'return waits.length > 0 ? undefined : "cannot wait without naming what it waits for";',
    replace: "return undefined;",
    tests: [MEMORY],
    test: "ST23: a session does not wait without naming what it waits for",
  },
  {
    name: "K6: an outcome that cost a process is kept before it is delivered",
    file: "packages/runtime/src/tasks/attempts.ts",
    find: "if (task.lost === 0) return this.#deliver(event);",
    replace: "return this.#deliver(event);",
    tests: ["packages/runtime/src/tasks/attempts.test.ts", CRASHES],
    test: "is not done again when its successor's outcome was kept (H7)",
  },
  {
    name: "K10c: times that were missed fire once",
    file: "packages/runtime/src/schedules/schedule-keeper.ts",
    find: ".after(Math.max(dueAt, clock.now()))",
    replace: ".after(dueAt)",
    tests: ["packages/runtime/src/schedules/schedules.test.ts"],
    test: "are one firing, as the first of them, and the next is to come",
  },
  {
    name: "K10c: what a time starts is named by it",
    file: "packages/runtime/src/schedules/schedule-keeper.ts",
    find: "new Date(dueAt).toISOString()",
    replace: "new Date(dueAt).toISOString() + Math.random()",
    tests: ["packages/runtime/src/schedules/schedules.test.ts"],
    test: "also when a process dies between firing and running: the next one runs what was started",
  },
  {
    name: "K10c, ST34: put again a schedule stays where it is in its times",
    file: RULES,
    find: "nextAt: isSame ? known.nextAt : put.nextAt,",
    replace: "nextAt: put.nextAt,",
    tests: [MEMORY],
    test: "ST34: put again with the same times it stays where it is in them, and takes what is new besides",
  },
  {
    name: "K10c: a time that exists twice is the first",
    file: "packages/runtime/src/schedules/cron.ts",
    find: "namesNoHour(line) ? nextBySteps : nextByDay",
    replace: "nextBySteps",
    tests: ["packages/runtime/src/schedules/cron.test.ts"],
    test: "C2: a time that exists twice is the first",
  },
  {
    name: "S4: the end of a child is told",
    file: CONSEQUENCES,
    find: "if (parent === undefined || handedOffTo !== undefined) return NONE;",
    replace: "if (parent !== undefined) return NONE;\n  if (parent === undefined) return NONE;",
    tests: ["packages/core/src/session/consequences.test.ts"],
    test: "is told twice, under two names, as the last",
  },
  {
    name: "S4: the end of a child is told once",
    file: CONSEQUENCES,
    find: "return [last, {",
    replace: "return [last, { ...last, signalId: `${sessionId}:again` }, {",
    tests: ["packages/core/src/session/consequences.test.ts", MEMORY],
    test: "ST27: a cancel because of a budget is told with the limit, and then the end it comes to",
  },
  {
    name: "S4: a cancel reaches the whole tree below",
    file: CONSEQUENCES,
    find: "if (after.cancel !== undefined && before.cancel === undefined) {",
    replace: "if (after.cancel !== undefined && before.cancel === undefined && after.depth === 0) {",
    tests: [
      "packages/core/src/session/consequences.test.ts",
      MEMORY,
      "packages/runtime/src/behaviour/children.test.ts",
    ],
    test: "a cancel goes on below a session that was asked for itself",
  },
  {
    name: "S4: that a budget is used up is told also where it cancels",
    file: CONSEQUENCES,
    find: "if (exhausted === undefined || after.parent === undefined) return [below];",
    replace: "if (exhausted?.then !== 'park') return [below];",
    tests: ["packages/core/src/session/consequences.test.ts"],
    test: "Q3: so is a cancel because of a budget, before the end it comes to",
  },
  {
    name: "B1: every payer is asked",
    file: "packages/core/src/session/budget.ts",
    find: "for (const [payer, { limits, spent, reserved }] of payers) {",
    replace: "for (const [payer, { limits, spent, reserved }] of [...payers].slice(0, 1)) {",
    tests: ["packages/core/src/session/budget.test.ts", MEMORY],
    test: "B1: with true worst cases nothing is ever overspent, whatever the order and how many pay",
  },
  {
    name: "B2: what a task used is settled",
    file: "packages/runtime/src/tasks/spending.ts",
    find: 'charges.push({ type: "settle", task, used: usedOf(held, usage), ...(isLost ? { lost: true } : {}) });',
    replace: "",
    tests: ["packages/runtime/src/behaviour/budget.test.ts"],
    test: "is given back: calls that use less",
    hangs: true,
  },
  {
    name: "B2: the charge for a lost attempt says so",
    file: "packages/runtime/src/tasks/spending.ts",
    find: "this.#settle(charges, record.task, undefined, true);",
    replace: "this.#settle(charges, record.task, undefined);",
    tests: ["packages/runtime/src/behaviour/lost-attempts.test.ts"],
    test: "attempts that are lost are charged in full and told apart",
  },
  {
    name: "K6: a refused end keeps what it was made of",
    file: "packages/runtime/src/session/session-driver.ts",
    find: 'if (result.status !== "invalid" || !isToBeKept)',
    replace: "if (refusal !== undefined)",
    tests: ["packages/runtime/src/behaviour/cancel.test.ts"],
    test: "does nothing again that was done: what was done is what the agent hears once more (minimal, its end: upon a signal)",
  },
  {
    name: "H8: a back-off outlives its process, also under a budget",
    file: "packages/runtime/src/tasks/attempts.ts",
    find: "task.retryAt > at && wasBegun !== true) {",
    replace: "task.retryAt > at && wasBegun === undefined) {",
    tests: ["packages/runtime/src/tasks/task-starts.test.ts"],
    test: "with the budget { maxSteps: 9 } a back-off outlives its process",
  },
  {
    name: "B1: a turn that was refused counts when it begins after all",
    file: "packages/core/src/session/cascade.ts",
    find: 'before.exhausted?.limit === "maxTurns"',
    replace: "before.payers.length < 0",
    tests: [MEMORY],
    test: "ST30: a turn that was refused counts when it begins after all, and begins when all payers can pay it",
  },
  {
    name: "S1: a question that was answered in time is not given up",
    file: "packages/runtime/src/session/session-driver.ts",
    find: "kernel.hasOwn ? undefined : kernel.open.unanswered(at)",
    replace: "kernel.open.unanswered(at)",
    tests: ["packages/runtime/src/behaviour/questions.test.ts"],
    test: "an answer that came in time, while nobody ran the session, is heard",
  },
  {
    name: "K10: a session resumed before its driver let go is not paused again",
    file: "packages/runtime/src/session/session-driver.ts",
    find: 'patch === PAUSED_BY_USER ? ({ status: "working" } as const) : patch;',
    replace: "patch;",
    tests: ["packages/runtime/src/behaviour/budget.test.ts", CRASHES],
    test: "that is over before its driver has let go is over",
  },
  {
    name: "L2: an agent that ends before it heard of its cancel is cancelled",
    file: "packages/runtime/src/session/session-driver.ts",
    find: "this.#kernel.cancelNotice !== undefined || this.#cancel.seen",
    replace: "this.#kernel.cancelNotice !== undefined",
    tests: ["packages/runtime/src/behaviour/children.test.ts"],
    test: "is cancelled, although its agent ends at once",
  },
  ...KERNEL_MUTANTS,
  ...FAMILY_MUTANTS,
  ...FLEET_MUTANTS,
  ...COORDINATOR_MUTANTS,
];

if (import.meta.main) {
  const { positionals } = readArguments(import.meta.filename, {}, true);
  const chosen = MUTANTS.filter(
    ({ name }) => positionals.length === 0 || positionals.some((text) => name.includes(text)),
  );
  if (chosen.length === 0)
    refuse(
      `no mutant has ${positionals.join(" or ")} in its name`,
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
