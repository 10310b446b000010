// One side of `cpu`: chunks of a workload with the sources of a tree, each when the parent asks for it. The
// process has run nothing before.
//
// Packages are imported from the tree alone. An import by name would be of this checkout, whichever tree is
// measured.

import { mkdtemp, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type * as Agents from "@holdfast/agents";
import type * as Runtime from "@holdfast/runtime";
import type * as Sqlite from "@holdfast/storage/sqlite";
import type { CpuOrder, CpuSide } from "../cpu/compare.ts";
import { assertDone, cpuMicros, eachOf } from "../measure.ts";
import { notifyParent, optionsOf } from "./parent.ts";

/** Prepares a chunk and answers its work, which alone is measured, and which answers how many operations it was. */
type Chunk = () => Promise<() => Promise<number>>;

const STEPS = 1_000;
const SESSIONS = 300;
const WIDTH = 64;
const ROUNDS = 12;
const TURNS = 10;
/** The work that a session leaves for later is done within this time, and belongs to the session's chunk. */
const REST_MS = 5;
const LINES = "0123456789abcdef\n".repeat(120);
const AGENT = "---\nname: reader\ndescription: Reads files.\nmaxTurns: 10000\n---\nYou read files.\n";

const side = optionsOf<CpuSide>();
const { createRuntime, defineAgent, silentTracer } = await ofTree<typeof Runtime>("runtime/src/index.ts");
const { openSqliteStorage } = await ofTree<typeof Sqlite>("storage/src/sqlite/index.ts");
const folder = await mkdtemp(join(side.folder, "side-"));
const storage = await openSqliteStorage({ path: join(folder, "bench.db") });
const chunk = await chunkOf(side.workload);

const profiler = new Session();
profiler.connect();
process.on("message", ({ profile }: CpuOrder) => {
  void (profile === "stop" ? stopProfile() : run(profile === "start"));
});
// A parent that was killed asks for nothing any more.
process.once("disconnect", () => process.exit());
notifyParent("ready", {});

async function run(isProfiled: boolean): Promise<void> {
  if (isProfiled) {
    await profiler.post("Profiler.enable");
    await profiler.post("Profiler.start");
  }
  notifyParent("ran", await measure());
}

async function stopProfile(): Promise<void> {
  notifyParent("profiled", await profiler.post("Profiler.stop"));
}

async function measure(): Promise<{ readonly cpuMicros: number; readonly operations: number }> {
  const work = await chunk();
  await wait(REST_MS);
  const before = process.cpuUsage();
  const operations = await work();
  await wait(REST_MS);
  const planted = cpuMicros(before) * (1 + side.plantedPercent / 100);
  while (side.plantedPercent > 0 && cpuMicros(before) < planted);
  return { cpuMicros: cpuMicros(before), operations };
}

async function ofTree<M>(file: string): Promise<M> {
  return (await import(pathToFileURL(join(side.tree, "packages", file)).href)) as M;
}

function chunkOf(workload: CpuSide["workload"]): Promise<Chunk> | Chunk {
  switch (workload) {
    case "W1":
      return steps(1, STEPS);
    case "W3":
      return steps(SESSIONS, 3);
    case "ping-pong 64":
      return pingPong();
    case "turn":
      return turns();
  }
}

function steps(sessions: number, each: number): Chunk {
  const runtime = createRuntime({ storage, tracer: silentTracer });
  const agent = defineAgent({
    name: "steps",
    run: async (ctx) => {
      let sum = 0;
      for (let i = 0; i < each; i++) sum += await ctx.run("step", () => i);
      return sum;
    },
  });
  const work = async (): Promise<number> => {
    await eachOf(sessions, WIDTH, async () => {
      const session = await runtime.start(agent);
      assertDone("the sum of a session's steps", await session.result(), ((each - 1) * each) / 2);
    });
    return sessions * each;
  };
  return () => Promise.resolve(work);
}

function pingPong(): Chunk {
  const runtime = createRuntime({ storage, tracer: silentTracer });
  const answered = new Map<string, () => void>();
  const agent = defineAgent({
    name: "pong",
    run: async (ctx) => {
      let sum = 0;
      for (let i = 0; i < ROUNDS; i++) {
        sum += await ctx.waitForSignal<number>("ping");
        answered.get(ctx.sessionId)?.();
      }
      return sum;
    },
  });
  return async () => {
    const players = await Promise.all(Array.from({ length: WIDTH }, () => runtime.start(agent)));
    return async () => {
      await Promise.all(
        players.map(async (player) => {
          for (let i = 0; i < ROUNDS; i++) {
            const back = new Promise<void>((resolve) => answered.set(player.sessionId, resolve));
            await runtime.signal(player.sessionId, "ping", i);
            await back;
          }
          assertDone("the sum of the pings", await player.result(), ((ROUNDS - 1) * ROUNDS) / 2);
        }),
      );
      return WIDTH * ROUNDS;
    };
  };
}

/** Turns of an agent file: a call of a model that answers at once, and a file that is read. */
async function turns(): Promise<Chunk> {
  const { foundAt, loadAgentFile, ModelLoop, workspacesByRoot } =
    await ofTree<typeof Agents>("agents/src/index.ts");
  const path = join(folder, "reader.md");
  await writeFile(path, AGENT);
  for (let turn = 0; turn < TURNS; turn++) await writeFile(join(folder, `${turn}.txt`), LINES);
  const { record } = loadAgentFile(foundAt(path));
  if (record === null) throw new Error(`${path} does not load`);
  let turn = 0;
  const model: Agents.ModelProvider = {
    provider: "bench",
    model: "reader",
    isScripted: true,
    isPriced: false,
    describe: () => "a model of the bench",
    generate: () => Promise.resolve(replyOf(turn++)),
  };
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder });
  const agent = loop.agent(record);
  const runtime = createRuntime({ storage, tracer: silentTracer, agents: [agent] });
  return () => {
    turn = 0;
    return Promise.resolve(async () => {
      const session = await runtime.start(agent, "Read all files.");
      assertDone("the session", await session.result(), `${TURNS} files`);
      return TURNS;
    });
  };
}

function replyOf(turn: number): Agents.ModelReply {
  const usage = { inputTokens: 1_000, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const said = { text: "", toolCalls: [], finishReason: "stop", usage, model: "bench/reader" } as const;
  if (turn >= TURNS) return { ...said, text: `${TURNS} files` };
  const call = { id: `call_${turn}`, name: "read_file", input: { path: `${turn}.txt` } };
  return { ...said, toolCalls: [call], finishReason: "tool_calls" };
}
