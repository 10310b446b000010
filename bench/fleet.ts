// A coordinator and runners as processes of their own, over HTTP on this machine, and the floor of that.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createClient, type HoldfastClient } from "holdfast/client";
import { startChild, type Child } from "./child.ts";
import { withFolder, type StorageKind } from "./storages.ts";
import type { Bench } from "./workload.ts";

/** As people have it. */
const LEASE_MS = 15_000;

export interface CoordinatorOptions {
  readonly storage: StorageKind;
  readonly folder: string;
  /** How many runners will register. */
  readonly runners: number;
  readonly leaseMs: number;
  /** Stored things that are noted with their times. Each record costs time and memory, so only a workload that needs them asks. */
  readonly notes: "sessions" | "records";
  /** The storage and the port of an earlier coordinator, in place of new ones. */
  readonly after?: { readonly place: string; readonly port: number };
}

export interface CoordinatorReport {
  /** SQL statements so far; `null` where there are none. */
  readonly statements: number | null;
  readonly cpuMicros: number;
  /** The busiest second since the last report, as a part of a core. */
  readonly peakCpuPart: number;
  readonly rss: number;
  readonly reachable: number;
  /** The keys stored since the last report, each with its time. */
  readonly noted: readonly (readonly [key: string, at: number])[];
}

export interface RunnerOptions {
  readonly url: string;
  readonly token: string;
  readonly folder: string;
  readonly name: string;
  readonly maxRuns: number;
}

export interface FleetOptions {
  readonly runners: number;
  readonly leaseMs?: number;
  readonly maxRuns?: number;
  readonly notes?: CoordinatorOptions["notes"];
}

export interface Fleet {
  readonly url: string;
  readonly adminToken: string;
  readonly client: HoldfastClient;
  readonly runners: readonly Child[];
  report(): Promise<CoordinatorReport>;
  /** The work of the fleet until now. */
  usage(): Promise<FleetUsage>;
}

export interface FleetUsage {
  readonly coordinatorCpuMicros: number;
  readonly runnersCpuMicros: number;
  readonly statements: number;
  /** Requests that runners made, polls and renewals included. */
  readonly runnerRequests: number;
  /** Requests of the client that starts and signals sessions and reads their results. */
  readonly clientRequests: number;
  /** Segments that were committed. */
  readonly segments: number;
}

export async function withFleet<T>(
  { storage, folder: parent }: Bench,
  { runners: count, leaseMs = LEASE_MS, maxRuns = 64, notes = "sessions" }: FleetOptions,
  work: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  return withFolder(parent, async (folder) => {
    const coordinator = startChild(
      "coordinator",
      { storage, folder, runners: count, leaseMs, notes } satisfies CoordinatorOptions,
      ["--expose-gc"],
    );
    const runners: Child[] = [];
    let client: HoldfastClient | undefined;
    try {
      const { url, adminToken, registrations } = (await coordinator.next("listening")) as unknown as {
        url: string;
        adminToken: string;
        registrations: readonly string[];
      };
      for (const [i, token] of registrations.entries()) {
        const options = { url, token, folder: join(folder, `runner-${i}`), name: `runner-${i}`, maxRuns };
        mkdirSync(options.folder);
        runners.push(startChild("runner", options satisfies RunnerOptions));
      }
      await Promise.all(runners.map((runner) => runner.next("ready")));
      client = createClient({ url, token: adminToken });
      const report = async (): Promise<CoordinatorReport> => {
        coordinator.send({});
        return (await coordinator.next("report"))["report"] as CoordinatorReport;
      };
      const usage = (): Promise<FleetUsage> => usageOf(url, adminToken, report, runners);
      return await work({ url, adminToken, client, runners, report, usage });
    } finally {
      client?.close();
      await Promise.all(runners.map((runner) => runner.end()));
      await coordinator.end();
    }
  });
}

async function usageOf(
  url: string,
  token: string,
  report: () => Promise<CoordinatorReport>,
  runners: readonly Child[],
): Promise<FleetUsage> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const metrics = await response.text();
  const requests = (method: RegExp) => sumOf(metrics, new RegExp(`_requests_total{method="${method.source}`));
  const { statements, cpuMicros } = await report();
  let runnersCpuMicros = 0;
  for (const runner of runners) {
    runner.send({});
    runnersCpuMicros += (await runner.next("report"))["cpuMicros"] as number;
  }
  return {
    coordinatorCpuMicros: cpuMicros,
    runnersCpuMicros,
    statements: statements ?? 0,
    runnerRequests: requests(/(Storage|Runner)Service/),
    clientRequests: requests(/SessionService/),
    segments: sumOf(metrics, /_changes_total{status="committed"/),
  };
}

function sumOf(metrics: string, name: RegExp): number {
  const lines = metrics.split("\n").filter((line) => name.test(line));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** The difference of two reports. */
export function usedSince(before: FleetUsage, after: FleetUsage): FleetUsage {
  const names = Object.keys(after) as (keyof FleetUsage)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as unknown as FleetUsage;
}

// ---- the floor ---------------------------------------------------------------------------------------------------

/** The work of one runner of the floor: sessions, with one row after the other in each. */
export interface FloorWork {
  readonly sessions: number;
  readonly steps: number;
  /** Sessions at a time. */
  readonly width: number;
}

export interface FloorFleet {
  /** The same rows over the same HTTP, shared out among so many runners. Answers what each row took. */
  keep(work: FloorWork, runners: number): Promise<readonly number[]>;
  /** Rows kept until now. */
  rows(): Promise<number>;
}

export async function withFloorFleet<T>(
  { storage, folder: parent }: Bench,
  count: number,
  work: (floor: FloorFleet) => Promise<T>,
): Promise<T> {
  return withFolder(parent, async (folder) => {
    const coordinator = startChild("floor-coordinator", { storage, folder });
    const runners: Child[] = [];
    try {
      const { url } = await coordinator.next("listening");
      for (let index = 0; index < count; index++) runners.push(startChild("floor-runner", { url, index }));
      await Promise.all(runners.map((runner) => runner.next("ready")));
      return await work({
        async keep({ sessions, steps, width }, among) {
          const share = { sessions: sessions / among, steps, width: width / among };
          const done = await Promise.all(
            runners.slice(0, among).map((runner) => {
              runner.send(share);
              return runner.next("done");
            }),
          );
          return done.flatMap(({ stepMs }) => stepMs as number[]);
        },
        async rows() {
          coordinator.send({});
          return (await coordinator.next("report"))["rows"] as number;
        },
      });
    } finally {
      await Promise.all(runners.map((runner) => runner.kill()));
      await coordinator.end();
    }
  });
}
