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
import { runMutant, type Mutant } from "./mutant-run.ts";

const CRASHES = "packages/testkit/src/crash-everywhere.test.ts";
const MEMORY = "packages/runtime/src/memory-storage.test.ts";
const KERNEL = "packages/core/src/kernel/";
const CONSEQUENCES = "packages/core/src/session/consequences.ts";
const RULES = "packages/core/src/session/storage-rules.ts";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "H5: another input at a position is seen",
    file: "packages/core/src/kernel/identity.ts",
    find: "return `with input ${any.hash.slice(0, 8)}`;",
    replace: 'return "";',
    tests: [`${KERNEL}divergence.test.ts`],
  },
  {
    name: "K14: sessions that began before repeats were guarded replay without",
    file: "packages/core/src/kernel/repeat-guard.ts",
    find: "(relations.flags & BEHAVIOUR.guardsRepeats) !== 0 &&",
    replace: "relations.flags >= 0 &&",
    tests: ["packages/testkit/src/histories.test.ts"],
  },
  {
    name: "K5: fewer commands than recorded are seen",
    file: "packages/core/src/kernel/kernel.ts",
    find: 'this.#faults.remember(this.#cursor.divergence(record, "nothing more, or to wait for an outcome"));',
    replace: "",
    tests: [`${KERNEL}divergence.test.ts`],
  },
  {
    name: "K2: asking outside a slice is a fault",
    file: "packages/core/src/kernel/kernel.ts",
    find: 'if (this.#cursor.slice === "none")\n      throw this.#strayFault',
    replace: "if (this.closed) throw this.#strayFault",
    tests: [`${KERNEL}slices.test.ts`],
  },
  {
    name: "K2a: a name has one consumer",
    file: "packages/core/src/kernel/asks.ts",
    find: 'if (item.future.type !== "signal" || item.name === undefined || !matches(item.name)) continue;',
    replace: "continue;",
    tests: [`${KERNEL}races.test.ts`, `${KERNEL}signals.test.ts`],
  },
  {
    name: "K2a: the losers of ctx.race are withdrawn",
    file: "packages/core/src/kernel/combinators.ts",
    find: "if (losers.length > 0) this.#owner.withdraw(losers);",
    replace: "",
    tests: [`${KERNEL}races.test.ts`],
  },
  {
    name: "H1, S1: a delivered signal is consumed by the same commit",
    file: "packages/core/src/kernel/kernel.ts",
    find: 'if (this.#cursor.slice === "live") this.#segment.consume(event.signalId);',
    replace: "",
    tests: [CRASHES, `${KERNEL}signals.test.ts`],
  },
  {
    name: "K3: nothing starts before its batch is committed",
    file: "packages/runtime/src/session-driver.ts",
    find: "this.#rowStale = false;\n",
    replace:
      "this.#rowStale = false;\n    for (const task of segment.newTasks) this.#attempts.start(task);\n",
    tests: [CRASHES, "packages/runtime/src/"],
  },
  {
    name: "H7: a kept outcome is delivered, not done again",
    file: "packages/runtime/src/attempts.ts",
    find: "if (task.kept !== undefined) {\n        this.#deliverKept(task);\n      } else if",
    replace: "if",
    tests: [CRASHES, "packages/runtime/src/"],
  },
  {
    name: "H8: a lost attempt is followed by another",
    file: "packages/runtime/src/task-starts.ts",
    find: 'record.type === "attempt_lost" ? (this.#host.openTask(record.task) ?? []) : []',
    replace: "[]",
    tests: [CRASHES],
  },
  {
    name: "S2: what arrived while a commit was in flight is looked for",
    file: "packages/runtime/src/session-driver.ts",
    find: "poke(): void {\n    if (this.#over) return;",
    replace: "poke(): void {\n    if (!this.#over) return;",
    tests: [CRASHES],
  },
  {
    name: "K10: a session that could not be claimed for a moment is tried again",
    file: "packages/runtime/src/live-sessions.ts",
    find: "if (!isAway || this.#closed) return;",
    replace: "if (error.code.length > 0) return;",
    tests: ["packages/runtime/src/storage-away.test.ts"],
  },
  {
    name: "K10: a session that may have been created is gone on with",
    file: "packages/runtime/src/live-sessions.ts",
    find: "this.failedToRun(sessionId, departure.error); // Also",
    replace: "if (token !== undefined) this.failedToRun(sessionId, departure.error); // Also",
    tests: ["packages/runtime/src/storage-away.test.ts"],
  },
  {
    name: "D1: a session that met a full disk is gone on with once there is room",
    file: "packages/runtime/src/session-errors.ts",
    find: '"storage_full", ',
    replace: "",
    tests: ["packages/runtime/src/storage-away.test.ts"],
  },
  {
    name: "D1a: a commit to a removed database is not acknowledged",
    file: "packages/storage/src/sqlite/sqlite-storage.ts",
    find: "this.#options.guard?.check(); // S5.",
    replace: "",
    tests: ["packages/storage/src/sqlite/removed.test.ts"],
  },
  {
    name: "D3: a clock that was set forward is noticed",
    file: "packages/runtime/src/timers.ts",
    find: "Math.min(at - this.#clock.now(), LOOK_AGAIN_MS)",
    replace: "Math.min(at - this.#clock.now(), LOOK_AGAIN_MS ** 9)",
    tests: ["packages/runtime/src/runtime.test.ts"],
  },
  {
    name: "H8: a lost attempt is not one of the three that may fail",
    file: "packages/runtime/src/attempts.ts",
    find: "attempt - lost : attempt",
    replace: "attempt - lost * 0 : attempt",
    tests: ["packages/runtime/src/attempts.test.ts"],
  },
  {
    name: "O1, ST2: an older token is fenced",
    file: "packages/core/src/session/storage-rules.ts",
    find: "if (batch.token !== claim.token || claim.token === NO_CLAIM.token)",
    replace: "if (claim.token === NO_CLAIM.token)",
    tests: [MEMORY],
  },
  {
    name: "O7: leases are renewed",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "if (now >= this.#nextAt) this.#renew(now);",
    replace: "if (now >= this.#nextAt) this.#nextAt = Infinity;",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O4: what cannot be renewed is let go of",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "    this.#goIdle();\n    this.#host.letGo();",
    replace: "    this.#goIdle();",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O4: what may have passed on is not renewed",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "    this.check();\n    if (this.#since === undefined) return;\n    const now",
    replace: "    if (this.#since === undefined) return;\n    const now",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O7: a renewal that got lost is not waited for",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "this.#nextAt = askedAt + this.renewMs;",
    replace: "this.#nextAt = Infinity;",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O3: only what its owner names is renewed",
    file: "packages/runtime/src/memory-storage.ts",
    find: "|| wanted?.has(sessionId) === false",
    replace: "",
    tests: ["packages/runtime/src/memory-storage.test.ts"],
  },
  {
    name: "S2: an overtaken answer puts off no look",
    file: "packages/runtime/src/due-sessions.ts",
    find: "const isNewest = asked >= this.#newest;",
    replace: "const isNewest = asked > 0;",
    tests: ["packages/runtime/src/due-sessions.test.ts"],
  },
  {
    name: "L3: a child that is waited for is answered",
    file: "packages/core/src/kernel/kernel.ts",
    find: "return this.#ending === undefined || this.children.awaitsEnd;",
    replace: "return this.#ending === undefined;",
    tests: ["packages/runtime/src/children.test.ts"],
  },
  {
    name: "H3: a poll that is asked again gets the same answer",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "if (known !== undefined) return known;",
    replace: "",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
  },
  {
    name: "H3: an answer is not repeated with claims that were given back",
    file: "packages/coordinator/src/dispatch/seat.ts",
    find: "told.claims.filter((claim) => !lost.includes(claim))",
    replace: "told.claims",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
  },
  {
    name: "O1: a claim that was used elsewhere is not given back",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "({ asGiven }) => ({ ifUnchanged: asGiven })",
    replace: "() => ({})",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
  },
  {
    name: "S2: losing every notice loses no session",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "const isOld = clock.monotonic() - this.#scannedAt >= SCAN_MS;",
    replace: "const isOld = false;",
    tests: ["packages/coordinator/src/dispatch/lost-answers.test.ts"],
  },
  {
    name: "D2: a damaged row is named, never believed",
    file: "packages/storage/src/sqlite/row-checks.ts",
    find: "  if (stored === computed) return;",
    replace: "  if (stored === computed || path.length > 0) return;",
    tests: ["packages/storage/src/sqlite/open.test.ts", "packages/storage/src/sqlite/crash.test.ts"],
  },
  {
    name: "H1: acknowledged means synced",
    file: "packages/storage/src/sqlite/database.ts",
    find: 'driver.exec("PRAGMA synchronous = FULL");',
    replace: 'driver.exec("PRAGMA synchronous = OFF");',
    tests: ["packages/storage/src/sqlite/sync.test.ts", "packages/storage/src/sqlite/open.test.ts"],
  },
  {
    name: "D2: an entry's own row is checked",
    file: "packages/storage/src/sqlite/rows.ts",
    find: 'assertChecksum(path, "entry", key, row["checksum"], rowChecksum(valuesOf(row, ENTRY_COLUMNS)));',
    replace: "",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
  },
  {
    name: "D2: a database of a newer version is refused",
    file: "packages/storage/src/sqlite/database.ts",
    find: "if (version > SCHEMA_VERSION) {",
    replace: "if (version > SCHEMA_VERSION * 1_000) {",
    tests: ["packages/storage/src/sqlite/open.test.ts"],
  },
  {
    name: "H2: a transaction that failed leaves nothing",
    file: "packages/storage/src/sqlite/sqlite-storage.ts",
    find: 'if (this.#driver.inTransaction) this.#driver.exec("ROLLBACK");',
    replace: 'if (this.#driver.inTransaction) this.#driver.exec("COMMIT");',
    tests: ["packages/storage/src/sqlite/group.test.ts"],
  },
  {
    name: "H3: a batch sent again gives the first answer",
    file: RULES,
    find: 'if (isResent(session, batch, lookups)) return { status: "committed", inbox: session.inbox };',
    replace: "",
    tests: [MEMORY],
  },
  {
    name: "H4: entries are numbered without a gap",
    file: RULES,
    find: "if (entry.index !== index) return",
    replace: "if (entry.index < index) return",
    tests: [MEMORY],
  },
  {
    name: "H8: an author's limit counts lost attempts",
    file: "packages/core/src/session/retry.ts",
    find: "policy?.maxAttempts === undefined || attempt < policy.maxAttempts",
    replace: "true",
    tests: ["packages/core/src/session/retry.test.ts", CRASHES],
  },
  {
    name: "H10: replay starts at the last checkpoint",
    file: RULES,
    find: "next.checkpointSeq = records[i]!.seq;",
    replace: "next.checkpointSeq ??= records[i]!.seq;",
    tests: [MEMORY],
  },
  {
    name: "H11: a probe answers the same until its slice ends",
    file: "packages/core/src/kernel/kernel.ts",
    find: "else this.#offered.push(signal);",
    replace: "else this.#pending.add(signal);",
    tests: [`${KERNEL}signals.test.ts`],
  },
  {
    name: "S1: signals of a name come in their order",
    file: `${KERNEL}pending-signals.ts`,
    find: "queue?.shift()",
    replace: "queue?.pop()",
    tests: [`${KERNEL}pending-signals.test.ts`, `${KERNEL}signals.test.ts`],
  },
  {
    name: "S1: a signal sent again is one signal",
    file: RULES,
    find: 'if (facts.seen) return { result: { status: "duplicate" } };',
    replace: "",
    tests: [MEMORY],
  },
  {
    name: "S2: a signal that is waited for makes its session due",
    file: "packages/core/src/session/due.ts",
    find: 'case "waiting":\n    case "input_required":\n      return answered ? -Infinity : (session.wakeAt ?? Infinity);',
    replace: 'case "waiting":\n    case "input_required":\n      return session.wakeAt ?? Infinity;',
    tests: [MEMORY],
  },
  {
    name: "S3: a timer never fires early",
    file: `${KERNEL}open-items.ts`,
    find: "first !== undefined && (first.at ?? 0) <= now ? first : undefined",
    replace: "first",
    tests: ["packages/runtime/src/runtime.test.ts", CRASHES],
  },
  {
    name: "D3: what the agent sees of the clock does not go back",
    file: "packages/core/src/kernel/kernel.ts",
    find: "this.#now = Math.max(this.#now, event.at);",
    replace: "this.#now = event.at;",
    tests: [`${KERNEL}signals.test.ts`],
  },
  {
    name: "L1: only declared transitions",
    file: "packages/core/src/session/session.ts",
    find: "return NEXT[from].includes(to);",
    replace: "return NEXT[from].includes(to) || !isEnded(from);",
    tests: [MEMORY],
  },
  {
    name: "L2: a cancelled session does not complete",
    file: "packages/core/src/session/storage-rules.ts",
    find: 'const isRefused = session.cancel !== undefined && status === "completed";',
    replace: "const isRefused = false;",
    tests: [MEMORY],
  },
  {
    name: "L2: a pause does not wash a cancel off",
    file: RULES,
    find: 'return session.cancel !== undefined && hasNotHeard(patch) ? "cancelling" : patch.status;',
    replace: "return patch.status;",
    tests: [MEMORY],
  },
  {
    name: "L3: who waits says what for",
    file: RULES,
    find: 'return waits.length > 0 ? undefined : "cannot wait without naming what it waits for";',
    replace: "return undefined;",
    tests: [MEMORY],
  },
  {
    name: "L5: a slice asks for no more than its limit",
    file: `${KERNEL}journal-cursor.ts`,
    find: "++this.#sliceCommands > this.#options.limits.commandsPerSlice",
    replace: "++this.#sliceCommands > this.#options.limits.commandsPerSlice + 1",
    tests: [`${KERNEL}slices.test.ts`],
  },
  {
    name: "K4: a fault outlives the agent's catch",
    file: `${KERNEL}fault-memory.ts`,
    find: "this.remember(fault);\n    return fault;",
    replace: "return fault;",
    tests: [`${KERNEL}divergence.test.ts`],
  },
  {
    name: "K6: an outcome that cost a process is kept before it is delivered",
    file: "packages/runtime/src/attempts.ts",
    find: "if (task.lost === 0) return this.#host.deliver(event);",
    replace: "return this.#host.deliver(event);",
    tests: ["packages/runtime/src/attempts.test.ts", CRASHES],
  },
  {
    name: "K7: a checkpoint withdraws what is open",
    file: "packages/core/src/kernel/kernel.ts",
    find: "this.#withdrawAll();\n      this.#turn++;",
    replace: "this.#turn++;",
    tests: [`${KERNEL}checkpoint.test.ts`],
  },
  {
    name: "K13: a task nobody observed is awaited",
    file: "packages/core/src/kernel/kernel.ts",
    find: "item.task !== undefined && !item.future.observed;",
    replace: "false;",
    tests: [`${KERNEL}end.test.ts`],
  },
  {
    name: "K10c: times that were missed fire once",
    file: "packages/runtime/src/schedule-keeper.ts",
    find: ".after(Math.max(dueAt, clock.now()))",
    replace: ".after(dueAt)",
    tests: ["packages/runtime/src/schedules.test.ts"],
  },
  {
    name: "K10c: what a time starts is named by it",
    file: "packages/runtime/src/schedule-keeper.ts",
    find: "new Date(dueAt).toISOString()",
    replace: "new Date(dueAt).toISOString() + Math.random()",
    tests: ["packages/runtime/src/schedules.test.ts"],
  },
  {
    name: "K10c, ST34: put again a schedule stays where it is in its times",
    file: RULES,
    find: "nextAt: isSame ? known.nextAt : put.nextAt,",
    replace: "nextAt: put.nextAt,",
    tests: [MEMORY],
  },
  {
    name: "K10c: a time that exists twice is the first",
    file: "packages/runtime/src/cron.ts",
    find: "namesNoHour(line) ? nextBySteps : nextByDay",
    replace: "nextBySteps",
    tests: ["packages/runtime/src/cron.test.ts"],
  },
  {
    name: "S4: the end of a child is told",
    file: CONSEQUENCES,
    find: "if (parent === undefined || handedOffTo !== undefined) return NONE;",
    replace: "if (parent !== undefined) return NONE;\n  if (parent === undefined) return NONE;",
    tests: ["packages/core/src/session/consequences.test.ts", "packages/runtime/src/children.test.ts"],
  },
  {
    name: "S4: the end of a child is told once",
    file: CONSEQUENCES,
    find: "return [last, {",
    replace: "return [last, { ...last, signalId: `${sessionId}:again` }, {",
    tests: ["packages/core/src/session/consequences.test.ts", MEMORY],
  },
  {
    name: "S4: who takes over is made by the end of the one before",
    file: "packages/core/src/kernel/child-asks.ts",
    find: 'if (this.#door.cursor.slice === "live") this.#described(name);',
    replace: "this.#effect(this.#heir);",
    tests: [`${KERNEL}end.test.ts`],
  },
  {
    name: "S4: a cancel reaches the whole tree below",
    file: CONSEQUENCES,
    find: "if (after.cancel !== undefined && before.cancel === undefined) {",
    replace: "if (after.cancel !== undefined && before.cancel === undefined && after.depth === 0) {",
    tests: [
      "packages/core/src/session/consequences.test.ts",
      MEMORY,
      "packages/runtime/src/children.test.ts",
    ],
  },
  {
    name: "S4: that a budget is used up is told also where it cancels",
    file: CONSEQUENCES,
    find: "if (exhausted === undefined || after.parent === undefined) return [below];",
    replace: "if (exhausted?.then !== 'park') return [below];",
    tests: ["packages/core/src/session/consequences.test.ts"],
  },
  {
    name: "B1: every payer is asked",
    file: "packages/core/src/session/budget.ts",
    find: "for (const [payer, { limits, spent, reserved }] of payers) {",
    replace: "for (const [payer, { limits, spent, reserved }] of [...payers].slice(0, 1)) {",
    tests: ["packages/core/src/session/budget.test.ts", MEMORY],
  },
  {
    name: "B2: what a task used is settled",
    file: "packages/runtime/src/spending.ts",
    find: 'charges.push({ type: "settle", task, used: usedOf(held, usage) });',
    replace: "",
    tests: ["packages/runtime/src/budget.test.ts"],
  },
  {
    name: "K6: a refused end keeps what it was made of",
    file: "packages/runtime/src/session-driver.ts",
    find: 'if (result.status !== "invalid" || !isToBeKept)',
    replace: "if (refusal !== undefined)",
    tests: ["packages/runtime/src/cancel.test.ts"],
  },
  {
    name: "H8: a back-off outlives its process, also under a budget",
    file: "packages/runtime/src/attempts.ts",
    find: "task.retryAt > at && wasBegun !== true) {",
    replace: "task.retryAt > at && wasBegun === undefined) {",
    tests: ["packages/runtime/src/task-starts.test.ts"],
  },
  {
    name: "K5: a divergence of a child's request parks",
    file: "packages/core/src/kernel/child-asks.ts",
    find: "if (!HoldfastError.is(error)) throw error;",
    replace: "throw error;",
    tests: ["packages/runtime/src/children.test.ts"],
  },
  {
    name: "B1: a turn that was refused counts when it begins after all",
    file: "packages/core/src/session/cascade.ts",
    find: 'before.exhausted?.limit === "maxTurns"',
    replace: "before.payers.length < 0",
    tests: [MEMORY],
  },
  {
    name: "S1: a question that was answered in time is not given up",
    file: "packages/runtime/src/session-driver.ts",
    find: "kernel.hasOwn ? undefined : kernel.open.unanswered(at)",
    replace: "kernel.open.unanswered(at)",
    tests: ["packages/runtime/src/questions.test.ts"],
  },
  {
    name: "K10: a session resumed before its driver let go is not paused again",
    file: "packages/runtime/src/session-driver.ts",
    find: 'patch === PAUSED_BY_USER ? ({ status: "working" } as const) : patch;',
    replace: "patch;",
    tests: ["packages/runtime/src/budget.test.ts", CRASHES],
  },
  {
    name: "L2: an agent that ends before it heard of its cancel is cancelled",
    file: "packages/runtime/src/session-driver.ts",
    find: "this.#kernel.cancelNotice !== undefined || this.#cancel.seen",
    replace: "this.#kernel.cancelNotice !== undefined",
    tests: ["packages/runtime/src/children.test.ts"],
  },
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
