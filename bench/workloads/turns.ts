// W7: ten thousand turns of 1 KB, each ended by a checkpoint. Waking must not get dearer, nor storage grow
// beyond what is said.
//
// The floor of a late wake is an early one: of another session in the same database, woken in turns with it.

import { createRuntime, defineAgent, type Agent, type AgentContext, type Runtime } from "@holdfast/runtime";
import type { AgentStorage } from "@holdfast/core";
import { withFloor } from "../floors.ts";
import type { Measured } from "../line.ts";
import { assertDone, median, nowMs, percentile, until } from "../measure.ts";
import { databaseBytes, withStorage } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

/** The content of each turn, as JSON text with its quotes. */
const CONTENT_CHARS = 1_024;
const EARLY_TURN = 10;
/** Signals sent ahead of a session while its early turns are run. */
const AHEAD = 200;

export const turns: Workload = {
  id: "W7",
  title: "turns with a checkpoint each",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    for (const source of ["task", "agent"] as const) {
      yield withStorage(bench.storage, bench.folder, ({ storage, file }) =>
        measure(bench, source, storage, file),
      );
    }
  },
};

/** Where a turn's content comes from: the agent itself, or a task whose output the journal keeps as well. */
type Source = "agent" | "task";

async function measure(
  bench: Bench,
  source: Source,
  storage: AgentStorage,
  file: string | undefined,
): Promise<Measured> {
  const count = bench.size(10_000, 60);
  const wakes = bench.size(200, 5);
  const turned: Turned = { at: new Map() };
  const agent = makeAgent(source, turned);

  // Up to where wakes are measured, the session stays in memory: the turns are the same.
  const warm = createRuntime({ storage });
  const late = (await warm.start(agent)).sessionId;
  await runTurns(warm, turned, late, 0, count - wakes);
  const content = (count - wakes) * CONTENT_CHARS;
  const bytesPerByte = file === undefined ? null : databaseBytes(file) / content;
  const early = (await warm.start(agent)).sessionId;
  await runTurns(warm, turned, early, 0, EARLY_TURN);
  await warm.close();

  const cold = createRuntime({ storage, agents: [agent], warmMs: 0 });
  const lateMs: number[] = [];
  const earlyMs: number[] = [];
  for (let i = 0; i < wakes; i++) {
    earlyMs.push(await wakeOnce(cold, turned, early, EARLY_TURN + i));
    lateMs.push(await wakeOnce(cold, turned, late, count - wakes + i));
  }
  await cold.close();
  await checkEntries(storage, late, count);

  const value = median(lateMs);
  const floor = median(earlyMs);
  const floorBytesPerByte = bench.storage === "memory" ? null : await floorBytes(bench, count);
  return {
    variant: `${count.toLocaleString("en-US")} turns of 1 KB from the ${source}`,
    unit: "ms",
    value,
    floor,
    p50Ms: value,
    p99Ms: percentile(lateMs, 0.99),
    goal:
      bytesPerByte === null
        ? "<= 1.05 x a wake at turn 10"
        : "<= 1.05 x a wake at turn 10, <= 2.2 bytes per byte",
    isGoalMet: value <= 1.05 * floor && (bytesPerByte ?? 0) <= 2.2,
    more: {
      ...(bytesPerByte === null ? {} : { bytesPerByte }),
      ...(floorBytesPerByte === null ? {} : { floorBytesPerByte }),
    },
  };
}

/** When each session last began a turn after a signal. */
interface Turned {
  readonly at: Map<string, { readonly turn: number; readonly ms: number }>;
}

function makeAgent(source: Source, turned: Turned): Agent {
  const turn = async (ctx: AgentContext<unknown, number>, done: number) => {
    await ctx.waitForSignal("next");
    turned.at.set(ctx.sessionId, { turn: done, ms: nowMs() });
    const content = source === "agent" ? contentOf(done) : await ctx.run("model", () => contentOf(done));
    ctx.appendEntry({ role: "assistant", content });
    return { state: done + 1 };
  };
  return defineAgent<unknown, never, number>({ name: "turning", initial: () => 0, turn });
}

async function runTurns(
  runtime: Runtime,
  turned: Turned,
  sessionId: string,
  from: number,
  to: number,
): Promise<void> {
  for (let at = from; at < to; at += AHEAD) {
    const count = Math.min(AHEAD, to - at);
    await Promise.all(Array.from({ length: count }, () => runtime.signal(sessionId, "next")));
    await until("the turns", () => turned.at.get(sessionId)?.turn === at + count - 1);
    await untilTurn(runtime, sessionId, at + count);
  }
}

/** From the moment the signal is stored to the moment the agent goes on, in a process that has let go of it. */
async function wakeOnce(runtime: Runtime, turned: Turned, sessionId: string, turn: number): Promise<number> {
  await runtime.signal(sessionId, "next");
  const storedAt = nowMs();
  await until("the wake", () => turned.at.get(sessionId)?.turn === turn);
  await untilTurn(runtime, sessionId, turn + 1);
  await until("the session to leave memory", () => runtime.live === 0);
  return turned.at.get(sessionId)!.ms - storedAt;
}

async function untilTurn(runtime: Runtime, sessionId: string, turn: number): Promise<void> {
  for (;;) {
    const session = await runtime.handle(sessionId).session();
    if (session.turn >= turn && session.status === "waiting") return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Plain text that no compression would shrink, the same for the same turn. */
function contentOf(turn: number): string {
  let text = "";
  for (let x = turn + 1; text.length < CONTENT_CHARS - 2;) {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
    text += x.toString(36);
  }
  return text.slice(0, CONTENT_CHARS - 2);
}

async function checkEntries(storage: AgentStorage, sessionId: string, count: number): Promise<void> {
  const [first, last] = [
    (await storage.reader.entries(sessionId, 0, 1))[0],
    await storage.reader.entries(sessionId, count - 1, 2),
  ];
  assertDone("the first entry", first?.content, JSON.stringify(contentOf(0)));
  assertDone(
    "entries at the end",
    last.map(({ content }) => content),
    [JSON.stringify(contentOf(count - 1))],
  );
}

function floorBytes({ storage, folder }: Bench, count: number): Promise<number> {
  return withFloor(storage, folder, async (floor, file) => {
    await Promise.all(
      Array.from({ length: count }, (_, turn) => floor.keep(1, turn, JSON.stringify(contentOf(turn)))),
    );
    return databaseBytes(file) / (count * CONTENT_CHARS);
  });
}
