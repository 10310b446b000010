// Guards of what a fleet needs of storage, runtime and runners, each taken out: a part of the list in `mutants.ts`.

const MEMORY = "packages/runtime/src/memory-storage.test.ts";
const SQLITE = "packages/storage/src/sqlite/sqlite-storage.test.ts";
const RULES = "packages/core/src/session/storage-rules.ts";
const CASCADE = "packages/core/src/session/cascade.ts";
const CLAIMS = "packages/core/src/session/claims.ts";
const KERNEL = "packages/core/src/kernel/";
const STORE_TIME = "packages/coordinator/src/store-time.ts";
const STORE_TIME_TEST = "packages/coordinator/src/store-time.test.ts";
const SHARING = "packages/storage/src/postgres/sharing.test.ts";

export const FLEET_MUTANTS = [
  {
    name: "L5: what is asked for at once has an end",
    file: `${KERNEL}journal-cursor.ts`,
    find: "<= batchChars) return;",
    replace: "<= batchChars + 1) return;",
    tests: [`${KERNEL}batch-limit.test.ts`],
  },
  {
    name: "ST9: a key counts for one name",
    file: RULES,
    find: "return JSON.stringify([name, dedupKey]);",
    replace: "return JSON.stringify([name.length < 0, dedupKey]);",
    tests: [MEMORY],
  },
  {
    name: "X3: nobody acts in another owner's name",
    file: CASCADE,
    find: "const placement = ownedBy(owner, effect.placement);",
    replace: "const placement = ownedBy(effect.placement?.owner ?? owner, effect.placement);",
    tests: [MEMORY],
  },
  {
    name: "X3: nobody reaches another owner's session",
    file: CASCADE,
    find: "return target === undefined || target.placement?.owner === owner ? effect : undefined;",
    replace: "return target === undefined ? undefined : effect;",
    tests: [MEMORY],
  },
  {
    name: "O1: a renewal never shortens",
    file: CLAIMS,
    find: "return claim.until >= until ? claim",
    replace: "return claim.until === until ? claim",
    tests: [MEMORY],
  },
  {
    name: "ST39: a commit takes losses back",
    file: CLAIMS,
    find: "return claim.losses === 0 || !isProof(batch) ? claim",
    replace: "return claim.losses >= 0 ? claim",
    tests: [MEMORY],
  },
  {
    name: "O7: a lease begins anew when its storage is opened again",
    file: "packages/storage/src/sqlite/leases.ts",
    find: "begun.push([sessionId, now + leaseMs]);",
    replace: "begun.push([sessionId, now]);",
    tests: [SQLITE],
  },
  {
    name: "ST40: two who read the same version do not both write",
    file: "packages/core/src/session/documents.ts",
    find: "if (expected !== undefined && expected !== has)",
    replace: "if (expected === 0 && expected !== has)",
    tests: [MEMORY],
  },
  {
    name: "ST42: an audit row holds the hash of the one before it",
    file: "packages/core/src/session/audit-chain.ts",
    find: "return `${last.hash}\\n",
    replace: "return `${last.hash.slice(0, 0)}\\n",
    tests: [MEMORY],
  },
  {
    name: "ST43: who took over keeps what it builds on",
    file: "packages/core/src/session/deletion.ts",
    find: "session = handedOffTo === undefined ? undefined : lookups.session(handedOffTo);",
    replace: "session = handedOffTo === undefined ? undefined : undefined;",
    tests: [MEMORY],
  },
  {
    name: "ST43: content that others have is theirs",
    file: "packages/storage/src/sqlite/blobs.ts",
    find: "u.address = blob.address AND u.session <> ?1",
    replace: "u.address = blob.address AND u.session < 0",
    tests: [SQLITE],
  },
  {
    name: "O4: everything is let go of before a lease can pass on",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "return since + this.leaseMs - this.#marginMs;",
    replace: "return since + this.leaseMs;",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O4: a renewal counts from before it was asked for",
    file: "packages/runtime/src/lease-keeper.ts",
    find: "else this.#since = Math.max(this.#since, confirmedAt);",
    replace: "else this.#since = Math.max(this.#since, this.#host.clock.monotonic());",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O3: what a closing process holds is released after its tasks have ended",
    file: "packages/runtime/src/live-sessions.ts",
    find: "await tasksEnded();",
    replace: "void tasksEnded();",
    tests: ["packages/runtime/src/lease-keeper.test.ts"],
  },
  {
    name: "O4: what was aborted before it could begin does not begin",
    file: "packages/runtime/src/local-task-executor.ts",
    find: "if (this.#abortReason !== undefined) throw abortError",
    replace: "if (this.#abortReason === null) throw abortError",
    tests: ["packages/runtime/src/local-task-executor.test.ts"],
  },
  {
    name: "O1: a claim that is too old when it is heard of is not used",
    file: "packages/runner/src/dispatched-storage.ts",
    find: "this.#clock.monotonic() - given.madeAt > CLAIM_AGE_MS",
    replace: "this.#clock.monotonic() - given.madeAt > Infinity",
    tests: ["packages/runner/src/dispatched-storage.test.ts"],
  },
  {
    name: "S3: a runner goes by its coordinator's time",
    file: "packages/storage/src/remote/coordinator-time.ts",
    find: "if (this.#heard === undefined) return this.#machine.now();",
    replace: "if (this.#told === -Infinity) return this.#machine.now();",
    tests: ["packages/storage/src/remote/coordinator-time.test.ts"],
  },
  {
    name: "D3: leases are carried over when the clock was set forward",
    file: STORE_TIME,
    find: "if (!end.isCarried) await this.#renew",
    replace: "if (!end.isCarried && claim.until <= from) await this.#renew",
    tests: [STORE_TIME_TEST],
  },
  {
    name: "O7: what was claimed after the time was written down is carried over, too",
    file: STORE_TIME,
    find: "if (!end.isCarried) await this.#renew",
    replace: "if (!end.isCarried && claim.until - from <= longestMs) await this.#renew",
    tests: [STORE_TIME_TEST],
  },
  {
    name: "D3: a step of the time that was begun is finished",
    file: STORE_TIME,
    find: "const step = (this.#step ??= {",
    replace: "const step: Step = (this.#step = {",
    tests: [STORE_TIME_TEST],
  },
  {
    name: "D3: a lease is carried over once",
    file: STORE_TIME,
    find: "const end = ends.get(name) ?? { until",
    replace: "const end = { until",
    tests: [STORE_TIME_TEST],
  },
  {
    name: "D3: a clock that was set back is not followed",
    file: "packages/core/src/steady-clock.ts",
    find: "Math.max(-passedMs / DRAW, ",
    replace: "Math.max(-Infinity, ",
    tests: ["packages/core/src/steady-clock.test.ts"],
  },
  {
    name: "S3: time goes on after a restart from where it was written",
    file: STORE_TIME,
    find: "clock.step(writtenAt - clock.now()); // S3.",
    replace: "clock.step(writtenAt - writtenAt);",
    tests: [STORE_TIME_TEST],
  },
  {
    name: "S2: a snapshot that is older than an arrival is not gone on from",
    file: "packages/runner/src/dispatched-storage.ts",
    find: "given.isStale = true; // G2.",
    replace: "given.isStale = false;",
    tests: ["packages/runner/src/dispatched-storage.test.ts"],
  },
  {
    name: "O6: what a poll was answered after it was left is not acted on",
    file: "packages/runner/src/poll-loop.ts",
    find: 'return controller.signal.aborted ? "left" : { answer };',
    replace: "return { answer };",
    tests: ["packages/runner/src/poll-loop.test.ts"],
  },
  {
    name: "K10b: a queued attempt is found again, not lost",
    file: "packages/runner/src/queued-tasks.ts",
    find: 'return result.status !== "unknown";',
    replace: 'return result.status === "unknown";',
    tests: ["packages/holdfast/src/fleet/queued-tasks.test.ts"],
  },
  {
    name: "O9: a group on PostgreSQL checks the versions it was worked out from",
    file: "packages/storage/src/postgres/write-statement.ts",
    find: "AND t.version = v.version AND ${OK}",
    replace: "AND ${OK}",
    tests: [SHARING],
  },
  {
    name: "ST37: a claim on PostgreSQL is taken only where the end that was read still stands",
    file: "packages/storage/src/postgres/leases.ts",
    find: " AND t.until = $4 RETURNING",
    replace: " AND $4::float8 IS NOT NULL RETURNING",
    tests: [SHARING],
  },
  {
    name: "G1: of groups in flight at once none names what another one does",
    file: "packages/runtime/src/group-committer.ts",
    find: "if (this.#lines.enter(queued)) this.#free.push(queued);",
    replace: "this.#free.push(queued);",
    tests: ["packages/runtime/src/group-committer.test.ts"],
  },
  {
    name: "D4: a statement that lost against another transaction is run again",
    file: "packages/storage/src/postgres/database.ts",
    find: "if (!hasLost(error) || runs === RUNS_MAX) throw error;",
    replace: "if (runs < RUNS_MAX || hasLost(error)) throw error;",
    tests: [SHARING],
  },
] as const;
