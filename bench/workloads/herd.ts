// herd: a coordinator is killed and restarted under 500 runners, each in the middle of a session.
//
// It measures the time until its API and all runners are back, and the coordinator's CPU. It checks that no
// step is lost or runs twice.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "holdfast/client";
import { startChild, type Child } from "../child.ts";
import type { CoordinatorOptions, CoordinatorReport } from "../fleet.ts";
import type { Measured } from "../line.ts";
import { eachOf, median, nowMs, percentile, until } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

const PROCESSES = 4;
const STARTS_AT_ONCE = 16;
const LEASE_MS = 15_000;
/** A smoke test runs beside others, and a lease that ran out meanwhile would be no fault. */
const QUICK_LEASE_MS = 120_000;
const API_GOAL_MS = 3_000;
const BACK_GOAL_MS = 60_000;
const CPU_GOAL = 0.8;
const WAKE_GOAL_MS = 250;
/** How long the coordinator is away. The longer time is just bearable for a runner that renewed four seconds before. */
const AWAY_MS = [0, 5_000] as const;

export interface HerdOptions {
  readonly url: string;
  readonly registrations: readonly string[];
  readonly folder: string;
  /** Number of its first runner. */
  readonly first: number;
}

interface Coordinator {
  readonly child: Child;
  readonly url: string;
  readonly adminToken: string;
  readonly registrations: readonly string[];
  readonly place: string;
}

export const herd: Workload = {
  id: "herd",
  title: "runners by the hundred reconnect",
  refuses: (storage) => (storage === "memory" ? "nothing of it outlives its process" : undefined),
  async *run(bench) {
    const runners = bench.size(500, 12);
    for (const awayMs of bench.isQuick ? [0] : AWAY_MS) yield* await measure(bench, runners, awayMs);
  },
};

function measure(bench: Bench, count: number, awayMs: number): Promise<readonly Measured[]> {
  return withFolder(bench.folder, async (folder) => {
    const leaseMs = bench.size(LEASE_MS, QUICK_LEASE_MS);
    const options = { storage: bench.storage, folder, runners: count, leaseMs, notes: "sessions" as const };
    const before = await startCoordinator(options);
    const coordinators = [before];
    const children: Child[] = [];
    try {
      const all = await startHerd(before, folder, children, bench.size(PROCESSES, 1));
      const sessionIds = await startSessions(before, count);
      await until("every session to be in its middle", () => all.stepsOf("during") === count);

      const receivedBefore = await all.received();
      const runBefore = all.steps.length;
      await before.child.kill();
      await wait(awayMs);
      const startedAt = nowMs();
      const port = Number(new URL(before.url).port);
      const now = await startCoordinator({ ...options, runners: 0, after: { place: before.place, port } });
      coordinators.push(now);
      await pollsOf(now);
      const apiMs = nowMs() - startedAt;
      while ((await pollsOf(now)) < count) await wait(50);
      const backMs = nowMs() - startedAt;
      const used = await reportOf(now);
      // Leases that were not renewed run out meanwhile.
      if (!bench.isQuick) await wait(leaseMs + 5_000);
      const idle = await reportOf(now);
      const idleMs = nowMs() - startedAt - backMs;

      all.release();
      await until("every session to go on", () => all.stepsOf("after") === count);
      const givenAgain = (await all.received()) - receivedBefore;
      const runAgain = all.steps.length - runBefore - count;
      const [some, others] = [sessionIds.slice(0, count / 2), sessionIds.slice(count / 2)];
      const warmMs = await wakeEach(now, all, some);
      if (!bench.isQuick) await untilReleased(now, others); // Half a minute, which a smoke test does not wait.
      const releasedMs = await wakeEach(now, all, others);
      return linesOf({
        count,
        awayMs,
        apiMs,
        backMs,
        used,
        idle,
        idleMs,
        givenAgain,
        runAgain,
        warmMs,
        releasedMs,
      });
    } finally {
      await Promise.all(
        [...children, ...coordinators.map(({ child }) => child)].map((child) => child.kill()),
      );
    }
  });
}

interface Figures {
  readonly count: number;
  readonly awayMs: number;
  readonly apiMs: number;
  readonly backMs: number;
  /** Until all were back, and after that. */
  readonly used: CoordinatorReport;
  readonly idle: CoordinatorReport;
  readonly idleMs: number;
  /** Sessions whose lease was lost, and steps that ran twice. */
  readonly givenAgain: number;
  readonly runAgain: number;
  readonly warmMs: readonly number[];
  readonly releasedMs: readonly number[];
}

function linesOf(figures: Figures): readonly Measured[] {
  const { count, awayMs, apiMs, backMs, used, idle, idleMs, givenAgain, runAgain, warmMs, releasedMs } =
    figures;
  const after = `${count} runners, away for ${awayMs / 1_000} s`;
  const cpuPart = used.cpuMicros / 1_000 / backMs;
  const wake = (what: string, ms: readonly number[]): Measured => ({
    variant: `${after}: signal to going on, ${what}`,
    unit: "ms",
    value: median(ms),
    p50Ms: median(ms),
    p99Ms: percentile(ms, 0.99),
    goal: `p99 <= ${WAKE_GOAL_MS} ms`,
    isGoalMet: percentile(ms, 0.99) <= WAKE_GOAL_MS,
  });
  return [
    wake("held by its runner", warmMs),
    wake("held by nobody", releasedMs),
    {
      variant: `${after}: the API is back`,
      unit: "ms",
      value: apiMs,
      goal: `<= ${API_GOAL_MS} ms`,
      isGoalMet: apiMs <= API_GOAL_MS,
    },
    {
      variant: `${after}: all are back`,
      unit: "ms",
      value: backMs,
      goal: `<= ${BACK_GOAL_MS} ms, < ${CPU_GOAL * 100} % of a core, nothing given or run again`,
      isGoalMet: backMs <= BACK_GOAL_MS && cpuPart < CPU_GOAL && givenAgain + runAgain === 0,
      more: {
        givenAgain,
        runAgain,
        cpuMs: used.cpuMicros / 1_000,
        cpuPart,
        peakCpuPart: used.peakCpuPart,
        cpuPartAfter: (idle.cpuMicros - used.cpuMicros) / 1_000 / idleMs,
      },
    },
  ];
}

async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const child = startChild("coordinator", options, ["--expose-gc"]);
  return { child, ...((await child.next("listening")) as unknown as Omit<Coordinator, "child">) };
}

async function reportOf({ child }: Coordinator): Promise<CoordinatorReport> {
  child.send({});
  return (await child.next("report"))["report"] as CoordinatorReport;
}

/** How many runners wait for something to do. */
async function pollsOf({ url, adminToken }: Coordinator): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } });
  return Number(/^holdfast_polls_waiting (\d+)$/m.exec(await response.text())?.[1]);
}

interface Step {
  readonly sessionId: string;
  readonly step: string;
}

interface Herd {
  readonly steps: readonly Step[];
  /** In how many sessions this one ran. */
  stepsOf(step: string): number;
  release(): void;
  /** Sessions that runners were given. */
  received(): Promise<number>;
  /** When its agent goes on. */
  resumed(sessionId: string): Promise<number>;
}

async function startHerd(
  { url, registrations }: Coordinator,
  folder: string,
  children: Child[],
  processes: number,
): Promise<Herd> {
  const share = Math.ceil(registrations.length / processes);
  const steps: Step[] = [];
  const waiting = new Map<string, (at: number) => void>();
  for (let i = 0; i < processes; i++) {
    const own = join(folder, `herd-${i}`);
    mkdirSync(own);
    const first = i * share;
    const options = { url, registrations: registrations.slice(first, first + share), folder: own, first };
    const child = startChild("herd", options satisfies HerdOptions);
    child.onMessage("step", ({ sessionId, step }) => {
      steps.push({ sessionId: sessionId as string, step: step as string });
    });
    child.onMessage("resumed", ({ sessionId, at }) => waiting.get(sessionId as string)?.(at));
    children.push(child);
  }
  await Promise.all(children.map((child) => child.next("ready")));
  return {
    steps,
    stepsOf: (wanted) =>
      new Set(steps.filter(({ step }) => step === wanted).map(({ sessionId }) => sessionId)).size,
    release: () => {
      for (const child of children) child.send({ release: true });
    },
    async received() {
      let received = 0;
      for (const child of children) {
        child.send({});
        received += (await child.next("report"))["received"] as number;
      }
      return received;
    },
    resumed: (sessionId) => new Promise((resolve) => waiting.set(sessionId, resolve)),
  };
}

async function startSessions({ url, adminToken }: Coordinator, count: number): Promise<readonly string[]> {
  const client = createClient({ url, token: adminToken });
  try {
    const sessionIds: string[] = [];
    await eachOf(count, STARTS_AT_ONCE, async (i) => {
      const demands = { number: String(i) };
      sessionIds[i] = (await client.sessions.start("held", undefined, { demands })).sessionId;
    });
    return sessionIds;
  } finally {
    client.close();
  }
}

/** One after the other: from when each is signalled to when its agent goes on. */
async function wakeEach(
  { url, adminToken }: Coordinator,
  { resumed }: Herd,
  sessionIds: readonly string[],
): Promise<readonly number[]> {
  const client = createClient({ url, token: adminToken });
  try {
    const tookMs: number[] = [];
    for (const sessionId of sessionIds) {
      const at = resumed(sessionId);
      const sentAt = nowMs();
      await client.sessions.get(sessionId).signal("end");
      tookMs.push((await at) - sentAt);
    }
    return tookMs;
  } finally {
    client.close();
  }
}

async function untilReleased({ url, adminToken }: Coordinator, sessionIds: readonly string[]): Promise<void> {
  const client = createClient({ url, token: adminToken });
  try {
    for (const sessionId of sessionIds) {
      for (;;) {
        const { status, runnerId } = await client.sessions.get(sessionId).status();
        if (status === "waiting" && runnerId === undefined) break;
        await wait(100);
      }
    }
  } finally {
    client.close();
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
