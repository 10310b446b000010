// Planted mutants: each takes one guard out, and the tests named beside it must notice.
//
// `npm run mutants` runs them all; `scripts/mutants.test.ts` does so as part of `npm test`. Sources are never touched: the
// change is made as the file is loaded, by vitest (see `vitest.config.ts`) or by Node (see `mutant-hook.ts`). A mutant whose text is no longer there is an error,
// so that the list cannot go stale.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Mutant {
  /** The promise it breaks. */
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Test files that must fail. */
  readonly tests: readonly string[];
}

const CRASHES = "packages/testkit/src/crash-everywhere.test.ts";
const MEMORY = "packages/runtime/src/memory-storage.test.ts";
const KERNEL = "packages/core/src/kernel/";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "H5: another input at a position is seen",
    file: "packages/core/src/kernel/identity.ts",
    find: "return `with input ${any.hash.slice(0, 8)}`;",
    replace: 'return "";',
    tests: [`${KERNEL}divergence.test.ts`],
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
    file: "packages/runtime/src/attempts.ts",
    find: 'else if (note.type === "attempt_lost" && !this.#running.has(task.id)) this.start(task);',
    replace: "",
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
    name: "O1, ST2: an older token is fenced",
    file: "packages/core/src/session/storage-rules.ts",
    find: "if (batch.token !== claim.token || claim.token === NO_CLAIM.token)",
    replace: "if (claim.token === NO_CLAIM.token)",
    tests: [MEMORY],
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
];

const root = fileURLToPath(new URL("..", import.meta.url));

/** Whether the tests fail with the mutant in, as they must. `output` tells why not, if they did not. */
export function runMutant({
  file,
  find,
  replace,
  tests,
}: Mutant): Promise<{ readonly isKilled: boolean; readonly output: string }> {
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [
        "node_modules/vitest/vitest.mjs",
        "run",
        "--bail=1",
        "--reporter=dot",
        "--testTimeout=15000",
        ...tests,
      ],
      {
        cwd: root,
        env: {
          ...process.env,
          HOLDFAST_MUTANT: JSON.stringify({ file, find, replace }),
          NODE_OPTIONS: `--import=${new URL("mutant-hook.ts", import.meta.url).href}`,
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (data: Buffer) => (output += data.toString()));
    child.on("close", (code) => {
      // A mutant that could not be planted makes every file fail to load: that kills nothing.
      const isPlanted = !output.includes("no longer in the source");
      resolve({ isKilled: code !== 0 && isPlanted, output });
    });
  });
}

if (import.meta.main) {
  let survived = 0;
  for (const mutant of MUTANTS) {
    const { isKilled, output } = await runMutant(mutant);
    if (!isKilled) survived++;
    console.log(`${isKilled ? "killed  " : "SURVIVED"}  ${mutant.name}`);
    if (!isKilled) console.log(output.slice(-2_000));
  }
  console.log(`${MUTANTS.length - survived} of ${MUTANTS.length} mutants killed`);
  process.exitCode = survived > 0 ? 1 : 0;
}
