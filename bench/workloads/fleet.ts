// W8: W1, W2, W3 and W4 through a coordinator and four runners, each a process, over HTTP on this machine. It
// also measures the time from the store of a session to its first run.
//
// This process starts sessions and waits for them over the same HTTP. The floor writes the same rows from as
// many processes over HTTP/2 without Holdfast: one request per group, kept by one process.

import type { RemoteSession } from "holdfast/client";
import {
  usedSince,
  withFleet,
  withFloorFleet,
  type Fleet,
  type FleetUsage,
  type FloorFleet,
  type FloorWork,
} from "../fleet.ts";
import type { Measured } from "../line.ts";
import { assertDone, eachOf, gaps, inTurns, median, nowMs, percentile } from "../measure.ts";
import type { Bench, Workload } from "../workload.ts";

const RUNNERS = 4;
const WIDTH = 64;
/** Steps per second of sessions with many steps, and with three. */
const LONG_GOAL = 12_000;
const SHORT_GOAL = 5_000;
const DISPATCH_GOAL_MS = 3;
const REQUESTS_GOAL = 1;

export const fleet: Workload = {
  id: "W8",
  title: `a coordinator and ${RUNNERS} runners over HTTP`,
  async *run(bench) {
    const runners = bench.size(RUNNERS, 2);
    const lines = await withFleet(bench, { runners }, (ours) =>
      withFloorFleet(bench, runners, (floor) => measureAll({ bench, ours, floor, runners })),
    );
    yield* lines;
  },
};

async function measureAll(sides: Sides): Promise<readonly Measured[]> {
  const { size } = sides.bench;
  return [
    await measureDispatch(sides, size(300, 5)),
    await measureSequential(sides, size(1_000, 20)),
    await measureParallel(sides, size(1_000, 50)),
    await measureParked(sides, size(200, 2)),
    await measurePingPong(sides, { sessions: 1, rounds: size(60, 2) }),
    await measurePingPong(sides, { sessions: size(WIDTH, 8), rounds: size(60, 2) }),
    await measureSessions(sides, size(WIDTH, 8), size(100, 5)),
    await measureSessions(sides, size(2_000, 16), 3),
  ];
}

interface Sides {
  readonly bench: Bench;
  readonly ours: Fleet;
  readonly floor: FloorFleet;
  readonly runners: number;
}

/** The cost of one run of our side. */
interface Run {
  readonly ms: number;
  /** Times of a step, a wake, a round trip or a session. */
  readonly sampleMs: readonly number[];
  readonly used: FleetUsage;
}

// ---- what is run -------------------------------------------------------------------------------------------------

/** One session after the other, the fleet idle before each. */
async function measureDispatch({ ours, floor }: Sides, sessions: number): Promise<Measured> {
  const before = await ours.usage();
  const startMs: number[] = [];
  const ranAt = new Map<string, number>();
  for (let i = 0; i < sessions; i++) {
    const from = nowMs();
    const session = await ours.client.sessions.start<unknown, number>("dispatched");
    startMs.push(nowMs() - from);
    ranAt.set(session.sessionId, await session.result());
  }
  const dispatchMs = await dispatchOf(ours, ranAt); // A report forgets what it told.
  const used = usedSince(before, await ours.usage());
  const rowMs = await floor.keep({ sessions: 1, steps: sessions, width: 1 }, 1);
  const p50Ms = median(dispatchMs);
  return {
    variant: "dispatch: stored to running, one at a time",
    unit: "ms",
    value: p50Ms,
    floor: median(rowMs),
    p50Ms,
    p99Ms: percentile(dispatchMs, 0.99),
    goal: `p50 <= ${DISPATCH_GOAL_MS} ms`,
    isGoalMet: p50Ms <= DISPATCH_GOAL_MS,
    more: { startP50Ms: median(startMs), ...requestsOf([used], sessions) },
  };
}

/** From when a session was stored to when its agent ran. */
async function dispatchOf(ours: Fleet, ranAt: ReadonlyMap<string, number>): Promise<readonly number[]> {
  const storedAt = new Map((await ours.report()).noted);
  return [...ranAt].map(([sessionId, at]) => at - (storedAt.get(sessionId) ?? Number.NaN));
}

/** W1. */
async function measureSequential(sides: Sides, steps: number): Promise<Measured> {
  const runOurs = timed(sides.ours, async () => {
    const { sum, marks } = await sequential(sides.ours, { steps, isTimed: true });
    assertDone("the sum of the steps", sum, sumBelow(steps));
    return gaps(marks);
  });
  const shape = { sessions: 1, steps, width: 1 };
  return compare(sides, `W1: ${inWords(steps)} steps`, "steps/s", steps, runOurs, shape);
}

/** W2. */
async function measureParallel(sides: Sides, tasks: number): Promise<Measured> {
  const runOurs = timed(sides.ours, async () => {
    const session = await sides.ours.client.sessions.start<unknown, number>("parallel", { tasks });
    assertDone("the sum of the tasks", await session.result(), sumBelow(tasks));
    return [];
  });
  const shape = { sessions: tasks, steps: 1, width: tasks };
  return compare(sides, `W2: ${inWords(tasks)} tasks`, "tasks/s", tasks, runOurs, shape);
}

/** W3. */
async function measureSessions(sides: Sides, sessions: number, steps: number): Promise<Measured> {
  const { ours } = sides;
  const runOurs = timed(ours, async () => {
    const sessionMs: number[] = [];
    await eachOf(sessions, WIDTH, async () => {
      const from = nowMs();
      const { sum } = await sequential(ours, { steps });
      sessionMs.push(nowMs() - from);
      assertDone("the sum of a session's steps", sum, sumBelow(steps));
    });
    return sessionMs;
  });
  const shape = { sessions, steps, width: WIDTH };
  const all = sessions * steps;
  const line = await compare(
    sides,
    `W3: ${inWords(sessions)} sessions x ${steps} steps`,
    "steps/s",
    all,
    runOurs,
    shape,
    sides.runners,
  );
  const requests = line.more?.["requestsPerSegment"] ?? Number.NaN;
  const least = steps > 3 ? LONG_GOAL : SHORT_GOAL;
  return {
    ...line,
    goal: `>= ${least} steps/s, <= ${REQUESTS_GOAL} request per segment`,
    isGoalMet: line.value >= least && requests <= REQUESTS_GOAL,
  };
}

/** W4, parked: nobody else is at work, and each is let go of before it is sent for. */
async function measureParked({ bench, ours, floor }: Sides, count: number): Promise<Measured> {
  const sessions: RemoteSession<number>[] = [];
  for (let i = 0; i < count; i++) sessions.push(await ours.client.sessions.start<unknown, number>("waiting"));
  // Half a minute, which a smoke test does not wait.
  if (!bench.isQuick) for (const session of sessions) await untilReleased(session);
  const before = await ours.usage();
  const wakeMs: number[] = [];
  for (const session of sessions) {
    const sentAt = nowMs();
    await session.signal("go");
    wakeMs.push((await session.result()) - sentAt);
  }
  const used = usedSince(before, await ours.usage());
  const rowMs = await floor.keep({ sessions: 1, steps: count, width: 1 }, 1);
  return {
    variant: "W4: parked, from send to going on",
    unit: "ms",
    value: median(wakeMs),
    floor: median(rowMs),
    p50Ms: median(wakeMs),
    p99Ms: percentile(wakeMs, 0.99),
    more: requestsOf([used], count),
  };
}

async function untilReleased(session: RemoteSession<number>): Promise<void> {
  for (;;) {
    const { status, runnerId } = await session.status();
    if (status === "waiting" && runnerId === undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** W4: the answer is that the agent goes on, told by its process to this one beside the coordinator. */
async function measurePingPong(
  sides: Sides,
  { sessions, rounds }: { sessions: number; rounds: number },
): Promise<Measured> {
  const { ours } = sides;
  const answered = new Map<string, () => void>();
  for (const runner of ours.runners)
    runner.onMessage("pong", ({ sessionId }) => answered.get(sessionId as string)?.());
  const runOurs = timed(ours, async () => {
    const tripMs: number[] = [];
    await eachOf(sessions, sessions, async () => {
      const session = await ours.client.sessions.start<unknown, number>("pong", { rounds });
      for (let i = 0; i < rounds; i++) {
        const sentAt = nowMs();
        const back = new Promise<void>((resolve) => answered.set(session.sessionId, resolve));
        await session.signal("ping", i);
        await back;
        tripMs.push(nowMs() - sentAt);
      }
      assertDone("the sum of the pings", await session.result(), sumBelow(rounds));
    });
    return tripMs;
  });
  const variant = `W4: ping-pong with ${sessions} session${sessions === 1 ? "" : "s"}`;
  const shape = { sessions, steps: rounds, width: sessions };
  const among = sessions === 1 ? 1 : sides.runners;
  return compare(sides, variant, "round trips/s", sessions * rounds, runOurs, shape, among);
}

// ---- how it is run -----------------------------------------------------------------------------------------------

async function sequential(
  { client }: Fleet,
  input: { readonly steps: number; readonly isTimed?: boolean },
): Promise<{ readonly sum: number; readonly marks: readonly number[] }> {
  const session = await client.sessions.start<unknown, { sum: number; marks: number[] }>("sequential", input);
  return session.result();
}

function timed(ours: Fleet, work: () => Promise<readonly number[]>): () => Promise<Run> {
  return async () => {
    const before = await ours.usage();
    const startedAt = nowMs();
    const sampleMs = await work();
    const ms = nowMs() - startedAt;
    return { ms, sampleMs, used: usedSince(before, await ours.usage()) };
  };
}

/** Ours and the floor in turns. */
async function compare(
  { bench, floor }: Sides,
  variant: string,
  unit: string,
  all: number,
  runOurs: () => Promise<Run>,
  shape: FloorWork,
  among = 1,
): Promise<Measured> {
  const runFloor = async (): Promise<number> => {
    const rowsBefore = await floor.rows();
    const startedAt = nowMs();
    await floor.keep(shape, among);
    const ms = nowMs() - startedAt;
    assertDone("rows of the floor", (await floor.rows()) - rowsBefore, all);
    return ms;
  };
  const { ours, floors } = await inTurns(bench.repeats, runOurs, runFloor);
  const samples = ours.flatMap(({ sampleMs }) => sampleMs);
  const used = ours.map((run) => run.used);
  const cpu = used.map((one) => (one.coordinatorCpuMicros + one.runnersCpuMicros) / all);
  const statements = median(used.map((one) => one.statements / all));
  return {
    variant,
    unit,
    value: median(ours.map(({ ms }) => (all * 1_000) / ms)),
    floor: median(floors.map((ms) => (all * 1_000) / ms)),
    p50Ms: median(samples),
    p99Ms: percentile(samples, 0.99),
    cpuMicrosPerStep: median(cpu),
    statementsPerStep: statements === 0 ? null : statements,
    more: {
      coordinatorCpuMicrosPerStep: median(used.map((one) => one.coordinatorCpuMicros / all)),
      ...requestsOf(used, all),
    },
  };
}

function requestsOf(used: readonly FleetUsage[], all: number): Readonly<Record<string, number>> {
  return {
    requestsPerStep: median(used.map((one) => one.runnerRequests / all)),
    requestsPerSegment: median(used.map((one) => one.runnerRequests / one.segments)),
    clientRequestsPerStep: median(used.map((one) => one.clientRequests / all)),
  };
}

function sumBelow(count: number): number {
  return ((count - 1) * count) / 2;
}

function inWords(count: number): string {
  return count.toLocaleString("en-US");
}
