// `npm run compositions`: every scenario over every combination of ports there is, and a report of what differs.
//
//   storage: memory, memory with little of each session stored (minimal), a SQLite file
//   signals: a channel, standard input
//   tasks:   in process
//
// Sameness is promised of outcomes, effects, and what was asked for; of entries wherever they are stored. The report must be empty.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import {
  crashScenarios,
  memorySubject,
  playScenario,
  type Composition,
  type CrashSubject,
  type Snapshot,
} from "@holdfast/testkit";
import { readArguments } from "./arguments.ts";

export interface Combination {
  readonly name: string;
  readonly subject: CrashSubject;
  readonly composition: Composition;
}

export interface Difference {
  readonly scenario: string;
  readonly combination: string;
  readonly part: keyof Snapshot;
  readonly expected: unknown;
  readonly got: unknown;
}

/** Those that need nothing of their world but the ports that are compared. */
const SCENARIOS = crashScenarios.filter(({ isDirect }) => isDirect !== true);

type Played = readonly { readonly name: string; readonly same: readonly boolean[] }[];

/** @param folder for the SQLite files. */
export function combinations(folder: string): readonly Combination[] {
  let files = 0;
  const sqlite: CrashSubject = {
    name: "sqlite",
    open: () => openSqliteStorage({ path: join(folder, `${files++}.db`) }),
  };
  return (["channel", "stdin"] as const).flatMap((signals) => [
    { name: `memory, ${signals}`, subject: memorySubject, composition: { signals } },
    {
      name: `minimal, ${signals}`,
      subject: memorySubject,
      composition: { signals, persistence: "minimal" } as const,
    },
    { name: `sqlite, ${signals}`, subject: sqlite, composition: { signals } },
  ]);
}

/** Run them all. The first combination says what is expected of the others. */
export async function compareAll(
  all: readonly Combination[],
): Promise<{ readonly played: Played; readonly differences: readonly Difference[] }> {
  const differences: Difference[] = [];
  const played: { name: string; same: boolean[] }[] = [];
  for (const scenario of SCENARIOS) {
    const same: boolean[] = [];
    let expected: Snapshot | undefined;
    for (const { name, subject, composition } of all) {
      const got = await playScenario(scenario, subject, composition);
      expected ??= got;
      const found = differing(expected, got, composition);
      for (const part of found)
        differences.push({
          scenario: scenario.name,
          combination: name,
          part,
          expected: expected[part],
          got: got[part],
        });
      same.push(found.length === 0);
    }
    played.push({ name: scenario.name, same });
  }
  return { played, differences };
}

function differing(expected: Snapshot, got: Snapshot, { persistence }: Composition): (keyof Snapshot)[] {
  const parts: readonly (keyof Snapshot)[] = ["outcome", "others", "effects", "entries"];
  const promised = persistence === "minimal" ? parts.filter((part) => part !== "entries") : parts;
  return promised.filter((part) => !isDeepStrictEqual(expected[part], got[part]));
}

if (import.meta.main) {
  readArguments(import.meta.filename, {});
  const folder = mkdtempSync(join(tmpdir(), "holdfast-compositions-"));
  try {
    const all = combinations(folder);
    const { played, differences } = await compareAll(all);
    const width = Math.max(...played.map(({ name }) => name.length));
    console.log(["".padEnd(width), ...all.map(({ name }) => name)].join(" | "));
    for (const { name, same } of played) {
      const cells = all.map((each, i) => (same[i] === true ? "same" : "DIFFERS").padEnd(each.name.length));
      console.log([name.padEnd(width), ...cells].join(" | "));
    }
    for (const difference of differences) console.log(JSON.stringify(difference));
    console.log(
      `${played.length} scenarios over ${all.length} combinations: ${differences.length} differences`,
    );
    process.exitCode = differences.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
