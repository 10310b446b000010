// `npm run compositions`: every scenario over every combination of ports there is, and a report of what
// differs.
//
//   - storage: memory, memory with little of the session stored (minimal, ephemeral), a SQLite file,
//     PostgreSQL, and a coordinator over each
//   - signals: a channel, standard input
//   - tasks: in process, or queued and done by a runner. With a SQLite file of one's own that is the hybrid
//     mode
//
// Outcomes, effects and the things asked for must be the same, and so must entries wherever they are stored.
// The report must be empty. It leaves out the death of a session's process: `crashEverywhere` plays that.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { AgentStorage } from "@holdfast/core";
import { coordinatorQueue, queuedTasks } from "@holdfast/runner";
import { openPostgresStorage } from "@holdfast/storage/postgres";
import { CoordinatorConnection, openRemoteStorage } from "@holdfast/storage/remote";
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
import { openFleet, type Fleet } from "../packages/holdfast/src/testing/fleet.ts";
import { startServer } from "../packages/storage/src/postgres/testing/server.ts";

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

/** The scenarios that need nothing of their world but the ports that are compared. */
const SCENARIOS = crashScenarios.filter(({ isDirect }) => isDirect !== true);

type Played = readonly { readonly name: string; readonly same: readonly boolean[] }[];

export interface World {
  /** For SQLite files. */
  readonly folder: string;
  /** The URL of a PostgreSQL server. */
  readonly postgresUrl: string;
}

export function combinations({ folder, postgresUrl }: World): readonly Combination[] {
  let made = 0;
  const sqlite: CrashSubject = {
    name: "sqlite",
    open: () => openSqliteStorage({ path: join(folder, `${made++}.db`) }),
  };
  const postgres: CrashSubject = {
    name: "postgres",
    open: () => openPostgresStorage({ url: postgresUrl, schema: `composition_${process.pid}_${made++}` }),
  };
  const fleets = new Map<AgentStorage, Fleet>();
  const remote = (inner: CrashSubject): CrashSubject => overCoordinator(inner, fleets);
  const direct = (["channel", "stdin"] as const).flatMap((signals) => [
    { name: `memory, ${signals}`, subject: memorySubject, composition: { signals } },
    ...(["minimal", "ephemeral"] as const).map((persistence) => ({
      name: `${persistence}, ${signals}`,
      subject: memorySubject,
      composition: { signals, persistence },
    })),
    { name: `sqlite, ${signals}`, subject: sqlite, composition: { signals } },
  ]);
  const signals = "channel";
  const queue = queueOf(fleets);
  return [
    ...direct,
    { name: "postgres", subject: postgres, composition: { signals } },
    { name: "sqlite, queued", subject: sqlite, composition: { signals, queue } },
    ...[memorySubject, sqlite, postgres].flatMap((inner) => [
      { name: `remote on ${inner.name}`, subject: remote(inner), composition: { signals } as const },
      {
        name: `remote on ${inner.name}, queued`,
        subject: remote(inner),
        composition: { signals, queue } as const,
      },
    ]),
  ];
}

/** A storage as a program elsewhere has it. */
function overCoordinator(inner: CrashSubject, fleets: Map<AgentStorage, Fleet>): CrashSubject {
  return {
    name: `remote on ${inner.name}`,
    async open() {
      const fleet = await openFleet({ storage: await inner.open() });
      const storage = openRemoteStorage({ url: fleet.url, token: fleet.adminToken });
      const close = storage.close.bind(storage);
      fleets.set(storage, fleet);
      return Object.assign(storage, {
        async close() {
          fleets.delete(storage);
          await close();
          await fleet.close();
        },
      });
    },
  };
}

/** Tasks are queued at the coordinator of the storage, or, where it has none, at one that is there for nothing else. */
function queueOf(fleets: ReadonlyMap<AgentStorage, Fleet>): NonNullable<Composition["queue"]> {
  return async (storage, tasks) => {
    const own = fleets.get(storage);
    const fleet = own ?? (await openFleet());
    const runner = tasks.length === 0 ? undefined : await fleet.runner({ tasks: [...new Set(tasks)] });
    const connection = new CoordinatorConnection({ url: fleet.url, token: fleet.adminToken });
    return {
      executor: queuedTasks({ queue: coordinatorQueue(connection), tasks }),
      async close() {
        await runner?.stop();
        connection.close();
        if (own === undefined) await fleet.close();
      },
    };
  };
}

/**
 * Run the scenarios. The first combination says what is expected of the others. With `every` a scenario runs
 * over every n-th of the others, and the next scenario begins one further.
 */
export async function compareAll(
  all: readonly Combination[],
  every = 1,
): Promise<{ readonly played: Played; readonly differences: readonly Difference[] }> {
  const differences: Difference[] = [];
  const played: { name: string; same: boolean[] }[] = [];
  for (const [from, scenario] of SCENARIOS.entries()) {
    const same: boolean[] = [];
    let expected: Snapshot | undefined;
    const chosen = all.filter((_, i) => i === 0 || i % every === from % every);
    for (const { name, subject, composition } of chosen) {
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
  const promised =
    persistence === "minimal" || persistence === "ephemeral"
      ? parts.filter((part) => part !== "entries")
      : parts;
  return promised.filter((part) => !isDeepStrictEqual(expected[part], got[part]));
}

if (import.meta.main) {
  readArguments(import.meta.filename, {});
  const folder = mkdtempSync(join(tmpdir(), "holdfast-compositions-"));
  const server = await startServer({ fsync: false });
  try {
    const all = combinations({ folder, postgresUrl: server.url });
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
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
