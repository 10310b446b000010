// `agent-turns`: the turns of an agent file, each with a model call and a file that is read. The model
// answers at once.
//
// The floor of a late turn is an early turn of the same session. The floor of a long session's resume is that
// of a short one. The CPU of the model's stand-in is not counted.

import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type AgentRecord,
  foundAt,
  loadAgentFile,
  ModelLoop,
  type ModelProvider,
  type ModelReply,
  workspacesByRoot,
} from "@holdfast/agents";
import { NEXT_INPUT, type AgentStorage } from "@holdfast/core";
import { createRuntime } from "@holdfast/runtime";
import type { Measured } from "../line.ts";
import { assertDone, inTurns, median, nowMs, until } from "../measure.ts";
import { withStorage } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

/** The tokens that the model reads in one call. A boundary is made about every 40 turns. */
const WINDOW = 60_000;
const LINES = "0123456789abcdef\n".repeat(120);
const RESUME_GOAL_MS = 300;
const HEAP_GOAL_MB = 100;
const AGENT = "---\nname: reader\ndescription: Reads files.\nmaxTurns: 10000\n---\nYou read files.\n";
const CONVERSATION = AGENT.replace("---\nYou", "holdfast:\n  conversation: true\n---\nYou");

export const agentTurns: Workload = {
  id: "agent-turns",
  title: "turns of an agent file, with context boundaries",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    if (bench.storage === "sqlite") yield await measureResume(bench);
    yield withStorage(bench.storage, bench.folder, ({ storage }) => measure(bench, storage));
  },
};

/** An agent that reads so many files of a new folder, and its model. */
async function readerOf(
  bench: Bench,
  count: number,
  text = AGENT,
): Promise<{ readonly agent: ReturnType<ModelLoop["agent"]>; readonly model: Reader }> {
  const folder = await mkdtemp(join(bench.folder, "agent-turns-"));
  await writeFile(join(folder, "reader.md"), text);
  await Promise.all(
    Array.from({ length: count }, (_, turn) =>
      writeFile(join(folder, `${turn}.txt`), `part ${turn}\n${LINES}`),
    ),
  );
  const model = new Reader(count);
  const loop = new ModelLoop({
    model: model.provider,
    workspace: workspacesByRoot(),
    root: folder,
    contextWindow: () => WINDOW,
  });
  return { agent: loop.agent(recordOf(join(folder, "reader.md"))), model };
}

/** From the request that wakes a conversation, in a process that does not know it yet, to its request of the model. */
async function measureResume(bench: Bench): Promise<Measured> {
  const resumeMs = (turns: number): Promise<number> =>
    withStorage("sqlite", bench.folder, async ({ storage }) => {
      const { agent, model } = await readerOf(bench, turns, CONVERSATION);
      const before = createRuntime({ storage, agents: [agent] });
      const { sessionId } = await before.start(agent, "Read all files.");
      await until("the first answer", () => model.answers === 1);
      await before.close();
      const after = createRuntime({ storage, agents: [agent] });
      const startedAt = nowMs();
      await after.handle(sessionId).signal(NEXT_INPUT, "Say it again.");
      await until("the second answer", () => model.answers === 2);
      await after.close();
      return model.askedAt - startedAt;
    });
  const turns = bench.size(200, 10);
  const repeats = bench.isQuick ? 1 : bench.repeats;
  const { ours, floors } = await inTurns(
    repeats,
    () => resumeMs(turns),
    () => resumeMs(1),
  );
  const value = median(ours);
  return {
    variant: `resume after ${turns} turns`,
    unit: "ms",
    value,
    floor: median(floors),
    goal: `<= ${RESUME_GOAL_MS} ms`,
    isGoalMet: value <= RESUME_GOAL_MS,
  };
}

async function measure(bench: Bench, storage: AgentStorage): Promise<Measured> {
  const count = bench.size(2_000, 60);
  const { agent, model } = await readerOf(bench, count);
  const emptyMb = collectedMb();
  const runtime = createRuntime({ storage, agents: [agent] });
  const handle = await runtime.start(agent, "Read all files.");
  assertDone("the session", await handle.result(), `${count} files`);
  const withGarbageMb = process.memoryUsage().heapUsed / 1e6;
  const heapMb = collectedMb();
  await runtime.close();
  assertDone("each request is within the window", model.longest < WINDOW, true);
  const tenth = Math.ceil(count / 10);
  const value = median(model.turnMs.slice(-tenth));
  // The first turns of a process are dearer: its code is not compiled yet.
  const floor = median(model.turnMs.slice(tenth, 2 * tenth));
  return {
    variant: `${count.toLocaleString("en-US")} turns`,
    unit: "ms CPU/turn",
    value,
    floor,
    goal: `<= 3 ms of CPU, <= 1.2 x an early turn, heap <= ${HEAP_GOAL_MB} MB`,
    isGoalMet: value <= 3 && value <= 1.2 * floor && heapMb <= HEAP_GOAL_MB,
    more: { heapMb, heapBeforeMb: emptyMb, withGarbageMb, longestTokens: model.longest },
  };
}

function recordOf(path: string): AgentRecord {
  const { record } = loadAgentFile(foundAt(path));
  if (record === null) throw new Error(`${path} does not load`);
  return record;
}

/** A model that reads one file after the other. It measures the CPU between its calls. */
class Reader {
  /** CPU of each turn in milliseconds, without the model's own. */
  readonly turnMs: number[] = [];
  /** The tokens of the longest request. */
  longest = 0;
  /** Final texts until now, and when the last request came. */
  answers = 0;
  askedAt = 0;
  readonly #count: number;
  #next = 0;
  #since: number | undefined;

  constructor(count: number) {
    this.#count = count;
  }

  readonly provider: ModelProvider = {
    provider: "bench",
    model: "reader",
    isScripted: true,
    isPriced: false,
    describe: () => "a model of the bench",
    generate: (request) => {
      const now = cpuMs();
      this.askedAt = nowMs();
      if (this.#since !== undefined) this.turnMs.push(now - this.#since);
      const tokens = Math.ceil(JSON.stringify(request).length / 3);
      this.longest = Math.max(this.longest, tokens);
      const reply = this.#reply(tokens, JSON.stringify(request.messages.at(-1)).includes("Write a summary"));
      this.#since = cpuMs();
      return Promise.resolve(reply);
    },
  };

  #reply(inputTokens: number, isSummary: boolean): ModelReply {
    const usage = { inputTokens, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const said = { text: "", toolCalls: [], finishReason: "stop", usage, model: "bench/reader" } as const;
    if (isSummary) return { ...said, text: `Files up to ${this.#next} are read.` };
    if (this.#next >= this.#count) this.answers++;
    if (this.#next >= this.#count) return { ...said, text: `${this.#count} files` };
    const turn = this.#next++;
    const call = { id: `call_${turn}`, name: "read_file", input: { path: `${turn}.txt` } };
    return { ...said, toolCalls: [call], finishReason: "tool_calls" };
  }
}

/** The reachable heap. After the turns the runtime is still open; garbage of V8 is no part of it. */
function collectedMb(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed / 1e6;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
