// W4: sessions wait for a signal, somebody sends it. Parked: the session is in no process's memory when it is
// sent.
//
// A round trip is from one send to the next: sent, stored, delivered, and the agent has gone on. The floor is
// one row per round trip, or two where the agent answers by a durable step.

import { createRuntime, defineAgent, type AgentContext, type Runtime } from "@holdfast/runtime";
import { startChild } from "../child.ts";
import { keepInOrder, withFloor, type Floor } from "../floors.ts";
import type { Measured } from "../line.ts";
import { assertDone, cpuMicros, inTurns, median, nowMs, percentile, until } from "../measure.ts";
import { withStorage, type OpenStorage } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

export const signals: Workload = {
  id: "W4",
  title: "signals: parked sessions and ping-pong",
  async *run(bench) {
    if (bench.storage !== "memory") yield measureParked(bench, "another process");
    yield measureParked(bench, "this process");
    yield measurePingPong(bench, { sessions: 1, rounds: bench.size(500, 5), answer: "step" });
    yield measurePingPong(bench, { sessions: 64, rounds: bench.size(60, 3), answer: "step" });
    yield measurePingPong(bench, { sessions: 1, rounds: bench.size(500, 5), answer: "agent" });
    yield measurePingPong(bench, { sessions: 64, rounds: bench.size(60, 3), answer: "agent" });
  },
};

// ---- parked ------------------------------------------------------------------------------------------------------

type Sender = "this process" | "another process";

async function measureParked(bench: Bench, sender: Sender): Promise<Measured> {
  const count = bench.size(300, 10);
  const { wakeMs, commitMs } = await withStorage(bench.storage, bench.folder, (open) =>
    withFloor(bench.storage, bench.folder, (floor) => wakeOneByOne(open, floor, sender, count)),
  );
  const p50Ms = median(wakeMs);
  const p99Ms = percentile(wakeMs, 0.99);
  const commit = median(commitMs);
  return {
    variant: `parked, sent by ${sender}`,
    unit: "ms",
    value: p50Ms,
    floor: commit,
    p50Ms,
    p99Ms,
    ...(bench.storage === "memory"
      ? {}
      : { goal: "p50 <= 1.6 x one commit, p99 <= 5 ms", isGoalMet: p50Ms <= 1.6 * commit && p99Ms <= 5 }),
    more: { commitP99Ms: percentile(commitMs, 0.99) },
  };
}

/** A commit of the floor before each wake, so that both see the same disk. */
async function wakeOneByOne({ storage, place }: OpenStorage, floor: Floor, sender: Sender, count: number) {
  const resumedAt = new Map<string, number>();
  const agent = defineAgent({
    name: "waiting",
    run: async (ctx) => {
      const payload = await ctx.waitForSignal("go");
      resumedAt.set(ctx.sessionId, nowMs());
      return payload;
    },
  });
  const runtime = createRuntime({ storage, warmMs: 0 });
  const child = sender === "another process" ? startChild("sender", { place }) : undefined;
  await child?.next("ready");
  try {
    const sessionIds: string[] = [];
    for (let i = 0; i < count; i++) sessionIds.push((await runtime.start(agent)).sessionId);
    await parked(runtime);
    const wakeMs: number[] = [];
    const commitMs: number[] = [];
    for (const [i, sessionId] of sessionIds.entries()) {
      const before = nowMs();
      await floor.keep(1, i, '{"go":true}');
      commitMs.push(nowMs() - before);

      let sentAt = nowMs();
      if (child === undefined) {
        await runtime.signal(sessionId, "go", i);
      } else {
        child.send({ sessionId, payload: i });
        sentAt = (await child.next("sent")).at;
      }
      await until("the session to go on", () => resumedAt.has(sessionId));
      wakeMs.push(resumedAt.get(sessionId)! - sentAt);
      assertDone("what it was sent", await runtime.handle(sessionId).result(), i);
      await parked(runtime);
    }
    return { wakeMs, commitMs };
  } finally {
    await child?.end();
    await runtime.close();
  }
}

function parked(runtime: Runtime): Promise<void> {
  return until("all sessions to leave memory", () => runtime.live === 0);
}

// ---- ping-pong ---------------------------------------------------------------------------------------------------

interface PingPong {
  readonly sessions: number;
  readonly rounds: number;
  /** The part that answers the sender: the resumed agent, or a durable step of it. */
  readonly answer: "agent" | "step";
}

async function measurePingPong(bench: Bench, shape: PingPong): Promise<Measured> {
  const all = shape.sessions * shape.rounds;
  const { ours, floors } = await inTurns(
    bench.repeats,
    () => runOurs(bench, shape),
    () => runFloor(bench, shape),
  );
  const value = median(ours.map(({ ms }) => (all * 1_000) / ms));
  const floor = median(floors.map((ms) => (all * 1_000) / ms));
  const tripMs = ours.flatMap((run) => run.tripMs);
  const statements = ours[0]?.statements;
  const hasGoal = bench.storage === "sqlite" && shape.sessions === 64 && shape.answer === "agent";
  const how = shape.answer === "step" ? ", answered by a step" : "";
  return {
    variant: `ping-pong with ${shape.sessions} session${shape.sessions === 1 ? "" : "s"}${how}`,
    unit: "round trips/s",
    value,
    floor,
    p50Ms: median(tripMs),
    p99Ms: percentile(tripMs, 0.99),
    cpuMicrosPerStep: median(ours.map((run) => run.cpuMicros / all)),
    statementsPerStep: statements === undefined ? null : statements / all,
    ...(hasGoal ? { goal: ">= 0.5 of the floor", isGoalMet: value >= 0.5 * floor } : {}),
  };
}

function runOurs({ storage: kind, folder }: Bench, { sessions, rounds, answer }: PingPong) {
  return withStorage(kind, folder, async ({ storage, statements }) => {
    const answered = new Map<string, () => void>();
    const pong = (sessionId: string): void => answered.get(sessionId)?.();
    const agent = defineAgent({
      name: "pong",
      run: async (ctx: AgentContext) => {
        let sum = 0;
        for (let i = 0; i < rounds; i++) {
          sum += await ctx.waitForSignal<number>("ping");
          if (answer === "step") await ctx.run("pong", () => pong(ctx.sessionId));
          else pong(ctx.sessionId);
        }
        return sum;
      },
    });
    const runtime = createRuntime({ storage });
    const players = await Promise.all(Array.from({ length: sessions }, () => runtime.start(agent)));
    const tripMs: number[] = [];
    const statementsBefore = statements();
    const cpuBefore = process.cpuUsage();
    const startedAt = nowMs();
    await Promise.all(
      players.map(async ({ sessionId }) => {
        for (let i = 0; i < rounds; i++) {
          const sentAt = nowMs();
          const back = new Promise<void>((resolve) => answered.set(sessionId, resolve));
          await runtime.signal(sessionId, "ping", i);
          await back;
          tripMs.push(nowMs() - sentAt);
        }
      }),
    );
    const ms = nowMs() - startedAt;
    const used = cpuMicros(cpuBefore);
    const perRun = statementsBefore === undefined ? undefined : (statements() ?? 0) - statementsBefore;
    for (const player of players)
      assertDone("the sum of the pings", await player.result(), ((rounds - 1) * rounds) / 2);
    await runtime.close();
    return { ms, tripMs, cpuMicros: used, statements: perRun };
  });
}

function runFloor({ storage: kind, folder }: Bench, { sessions, rounds, answer }: PingPong): Promise<number> {
  const rows = answer === "step" ? 2 * rounds : rounds;
  return withFloor(kind, folder, async (floor) => {
    const startedAt = nowMs();
    await Promise.all(Array.from({ length: sessions }, (_, session) => keepInOrder(floor, session, rows)));
    assertDone("rows of the floor", floor.count, sessions * rows);
    return nowMs() - startedAt;
  });
}
