// `npm run bench`: our side of every benchmark, each beside its floor in the same run. See README.md.

import { mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { HoldfastError, toHoldfastError, UsageError } from "@holdfast/core";
import { runCpu } from "./cpu/command.ts";
import { exitCodeOf, makeLine, toJsonLine, toTable, type Line } from "./line.ts";
import { readOptions, USAGE, type Options } from "./options.ts";
import { provideServer } from "./postgres.ts";
import type { Bench } from "./workload.ts";
import { WORKLOADS } from "./workloads/index.ts";

/** Linux's number of a file system in memory, where syncing costs nothing. */
const TMPFS = 0x01021994;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    if (args[0] === "cpu") return await runCpu(args.slice(1));
    const options = readOptions(args, WORKLOADS);
    if (!options.isHelp) return await runAll(options);
    process.stdout.write(USAGE);
    return 0;
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "usage") throw error;
    note(`bench: ${error.message}`);
    if (error.expected !== undefined) note(`  expected: ${error.expected}`);
    if (error.fix !== undefined) note(`  try: ${error.fix}`);
    return 2;
  }
}

/** Answers the exit code. */
async function runAll({
  workloads,
  storages,
  isJson,
  isQuick,
  repeats,
  folder: chosen,
}: Options): Promise<0 | 1> {
  // Beside what is installed for this checkout: the disk on which a project's own database would lie.
  const parent =
    chosen === undefined
      ? fileURLToPath(new URL("../node_modules/.cache", import.meta.url))
      : resolve(chosen);
  if (chosen === undefined) mkdirSync(parent, { recursive: true });
  const folder = makeFolder(parent);
  // A bench that is interrupted leaves nothing behind either.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

  note(
    `Node ${process.versions.node}, SQLite ${process.versions.sqlite}, ` +
      `${availableParallelism()} x ${cpus()[0]?.model ?? "CPU"}, load ${loadavg()[0]?.toFixed(1) ?? "unknown"}`,
  );
  if (statfsSync(folder).type === TMPFS) {
    note(
      `${parent} is in memory: syncing costs nothing there, and figures for SQLite mean nothing. Use --folder`,
    );
  }
  const lines: (Line & { readonly isGate: boolean })[] = [];
  let isBroken = false;
  const stopServer = storages.includes("postgres") ? await provideServer(folder) : undefined;
  for (const storage of storages) {
    for (const workload of workloads) {
      const refusal = workload.refuses?.(storage);
      if (refusal !== undefined) {
        note(`${workload.id} ${storage}: left out, ${refusal}`);
        continue;
      }
      note(`${workload.id} ${storage}: ${workload.title}`);
      const size = (full: number, quick: number) => (isQuick ? quick : full);
      const bench: Bench = { storage, isQuick, repeats, folder, size };
      try {
        for await (const measured of workload.run(bench)) {
          // A smoke test meets or misses nothing.
          const line = makeLine(workload.id, storage, isQuick ? { ...measured, isGoalMet: null } : measured);
          lines.push({ ...line, isGate: workload.isGate === true });
          if (isJson) process.stdout.write(`${toJsonLine(line)}\n`);
        }
      } catch (error) {
        // The other workloads are measured all the same: a complete run takes an hour.
        isBroken = true;
        note(`${workload.id} ${storage}: FAILED, ${inspect(error)}`);
      }
    }
  }
  await stopServer?.();
  if (!isJson) process.stdout.write(`${toTable(lines)}\n`);
  return isBroken ? 1 : exitCodeOf(lines);
}

/** @throws UsageError when it cannot be written. */
function makeFolder(parent: string): string {
  try {
    return mkdtempSync(join(parent, "holdfast-bench-"));
  } catch (thrown) {
    const got = toHoldfastError(thrown).message;
    throw new UsageError(`no databases can be made in ${parent}: ${got}`, {
      fix: "--folder with a folder that is there and may be written",
    });
  }
}

/** For people: stdout belongs to the figures. */
function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
