// `external-agent`: what Holdfast adds to the turns of a coding agent. The agent is a program that speaks
// Claude Code's protocol and answers at once. The floor is the same program under a process that only reads
// its lines.
//
// Our share of a turn is the CPU of this process and of all processes that it started, without the floor. It
// includes git for the restore receipt. The program's own CPU is in both sides. Turns are measured in a
// process of their own, because each start of a process costs more in a process with much memory.
//
// A program that is kept carries out all turns of its side, and its CPU is in neither side.
//
// It does not measure a model, or the start of a real program.

import { execFileSync, spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { ClaudeCode, externalAgent } from "@holdfast/programs";
import { NEXT_INPUT, type AgentStorage, type TraceEvent } from "@holdfast/core";
import { createRuntime, type Agent } from "@holdfast/runtime";
import type { Measured } from "../line.ts";
import { startChild } from "../child.ts";
import { assertDone, cpuMicros, mean, median, nowMs, percentile, startedCpuMs, until } from "../measure.ts";
import { withFolder, withStorage } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

const PROGRAM = fileURLToPath(
  new URL("../../packages/programs/src/testing/fake-claude-code.mjs", import.meta.url),
);
const TURN_GOAL_MS = 5;
const FIRST_EVENT_GOAL_MS = 100;
const MEMORY_GOAL_MB = 2;
const COLD_TURNS = 5;
/** Three calls of tools with their results, and a text. */
const WRITES = "write:a write:b write:c";
const READS = "env env env";

export const externalAgentTurns: Workload = {
  id: "external-agent",
  title: "turns of a coding agent, each in a process of its own, and many such processes at once",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    yield await inPlace(bench, (place, storage) => measureMemory(bench, place, storage));
    for (const isKept of [true, false])
      for (const request of [READS, WRITES]) {
        const child = startChild("external-turns", {
          storage: bench.storage,
          folder: bench.folder,
          request,
          turns: bench.size(60, 12),
          isKept,
        } satisfies TurnsRun);
        const { lines } = await child.next("ran");
        await child.end();
        yield* lines as Measured[];
      }
  },
};

/** A project, and a home with the program on its PATH. */
class Place {
  readonly project: string;
  /** The floor changes files, too, and would otherwise do so between two turns of ours. */
  readonly floorFolder: string;
  readonly environment: Readonly<Record<string, string>>;

  constructor(home: string) {
    this.project = join(home, "project");
    this.floorFolder = join(home, "floor");
    for (const folder of [this.project, this.floorFolder]) mkdirSync(folder);
    const git = (...args: readonly string[]): void => void execFileSync("git", args, { cwd: this.project });
    git("init", "--quiet");
    git(
      "-c",
      "user.name=b",
      "-c",
      "user.email=b@example.invalid",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "b",
    );
    mkdirSync(join(home, "bin"));
    const file = join(home, "bin/claude");
    writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`);
    chmodSync(file, 0o755);
    this.environment = {
      HOME: home,
      PATH: [join(home, "bin"), process.env["PATH"]].join(delimiter),
    };
  }

  /** The programs that are in the middle of a turn. */
  working(): number {
    const file = join(this.project, "gates");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0;
  }

  agent(isKept = false): { readonly agent: Agent<unknown, string>; readonly protocol: ClaudeCode } {
    const protocol = new ClaudeCode({ environment: this.environment, folder: this.project });
    const mirrors = join(this.project, "../mirrors");
    const options = { folder: this.project, permissionModes: ["default"], mirrors } as const;
    return { agent: externalAgent(protocol, { ...options, keepsPrograms: isKept }), protocol };
  }
}

/** The program without Holdfast. */
class FloorProgram {
  readonly #place: Place;
  readonly #isKept: boolean;
  readonly #id = crypto.randomUUID();
  #turns = 0;
  #child: ChildProcessByStdio<Writable, Readable, null> | undefined;
  #onMessage: (type: string) => void = () => {};

  constructor(place: Place, isKept: boolean) {
    this.#place = place;
    this.#isKept = isKept;
  }

  async turn(request: string): Promise<TurnCost> {
    const before = CpuMark.now();
    const startedAt = nowMs();
    const child = (this.#child ??= this.#start());
    let firstAt: number | undefined;
    const answered = new Promise<void>((resolve) => {
      this.#onMessage = (type) => {
        if (type === "assistant") firstAt ??= nowMs();
        if (type === "result") resolve();
      };
    });
    const content = [{ type: "text", text: request }];
    child.stdin.write(`${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`);
    await answered;
    if (!this.#isKept) await this.end();
    if (firstAt === undefined) throw new Error("the program answered nothing");
    return { firstMs: firstAt - startedAt, ...before.until() };
  }

  async end(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    child.stdin.end();
    await once(child, "exit");
  }

  #start(): ChildProcessByStdio<Writable, Readable, null> {
    const { environment: env, floorFolder: cwd } = this.#place;
    const args = [
      this.#turns++ === 0 ? "--session-id" : "--resume",
      this.#id,
      "--permission-mode",
      "default",
    ];
    const child = spawn("claude", args, { cwd, env, stdio: ["pipe", "pipe", "ignore"] });
    createInterface({ input: child.stdout }).on("line", (line) =>
      this.#onMessage((JSON.parse(line) as { readonly type: string }).type),
    );
    return child;
  }
}

interface TurnCost {
  /** When the first text or call came. */
  readonly firstMs: number;
  /** CPU of this process, and of the processes that it has started. */
  readonly ownMs: number;
  readonly startedMs: number;
}

/** The CPU used until a moment. */
class CpuMark {
  readonly #own = process.cpuUsage();
  readonly #started = startedCpuMs();

  static now(): CpuMark {
    return new CpuMark();
  }

  until(): Pick<TurnCost, "ownMs" | "startedMs"> {
    return { ownMs: cpuMicros(this.#own) / 1_000, startedMs: startedCpuMs() - this.#started };
  }
}

/** The work of a process that measures turns. */
export interface TurnsRun extends Pick<Bench, "storage" | "folder"> {
  readonly request: string;
  readonly turns: number;
  /** The program is kept for the next turn. */
  readonly isKept: boolean;
}

function inPlace<T>(
  bench: Pick<Bench, "storage" | "folder">,
  work: (place: Place, storage: AgentStorage) => Promise<T>,
): Promise<T> {
  return withFolder(bench.folder, (home) =>
    withStorage(bench.storage, home, ({ storage }) => work(new Place(home), storage)),
  );
}

/** The turns of one conversation, each with a floor before it. */
export function measureTurns({ request, turns, isKept, ...run }: TurnsRun): Promise<Measured[]> {
  return inPlace(run, async (place, storage) => {
    const seen: Seen = { answer: `Done: ${request}`, firstAt: 0, answers: 0, waits: () => {} };
    const runtime = createRuntime({ storage, tracer: { trace: (event) => note(event, seen) } });
    const { agent, protocol } = place.agent(isKept);
    const floor = new FloorProgram(place, isKept);
    const ours: TurnCost[] = [];
    const floors: TurnCost[] = [];
    let handle: Awaited<ReturnType<typeof runtime.start>> | undefined;
    for (let turn = 0; turn < turns; turn++) {
      floors.push(await floor.turn(request));
      seen.firstAt = 0;
      const waiting = new Promise<void>((resolve) => (seen.waits = resolve));
      const before = CpuMark.now();
      const startedAt = nowMs();
      if (handle === undefined) handle = await runtime.start(agent, { text: request, conversation: true });
      else await handle.signal(NEXT_INPUT, request);
      await waiting;
      ours.push({ firstMs: seen.firstAt - startedAt, ...before.until() });
    }
    await runtime.close();
    await Promise.all([floor.end(), protocol.close()]);
    assertDone("answers", seen.answers, turns);
    const kind = request === READS ? "that changes no file" : "that changes 3 files";
    return linesOf(kind, isKept, ours, floors);
  });
}

function linesOf(
  kind: string,
  isKept: boolean,
  ours: readonly TurnCost[],
  floors: readonly TurnCost[],
): Measured[] {
  const ofProgram = isKept ? ", its program kept" : "";
  // The first turns compile the code of both sides.
  const of = (side: readonly TurnCost[], what: keyof TurnCost): number[] =>
    side.slice(COLD_TURNS).map((turn) => turn[what]);
  const cpuOf = (side: readonly TurnCost[]): number =>
    median(of(side, "ownMs")) + mean(of(side, "startedMs"));
  const [cpuMs, cpuFloorMs] = [cpuOf(ours), cpuOf(floors)];
  const firstMs = median(of(ours, "firstMs"));
  const floorMs = median(of(floors, "firstMs"));
  return [
    {
      variant: `CPU of a turn with 3 calls ${kind}${ofProgram}`,
      unit: "ms CPU/turn",
      value: cpuMs,
      floor: cpuFloorMs,
      goal: `<= ${TURN_GOAL_MS} ms more than the floor`,
      isGoalMet: cpuMs - cpuFloorMs <= TURN_GOAL_MS,
      more: {
        shareMs: cpuMs - cpuFloorMs,
        ownShareMs: median(of(ours, "ownMs")) - median(of(floors, "ownMs")),
        // The least decile shows what other work on the machine does not disturb.
        ownShareLeastMs: percentile(of(ours, "ownMs"), 0.1) - percentile(of(floors, "ownMs"), 0.1),
        ownFloorLeastMs: percentile(of(floors, "ownMs"), 0.1),
        rssMb: process.memoryUsage.rss() / 1e6,
      },
    },
    {
      variant: `from the request to the first text or call${ofProgram}`,
      unit: "ms",
      value: firstMs,
      floor: floorMs,
      p50Ms: firstMs,
      p99Ms: percentile(of(ours, "firstMs"), 0.99),
      goal: `<= ${FIRST_EVENT_GOAL_MS} ms more than the floor`,
      isGoalMet: firstMs - floorMs <= FIRST_EVENT_GOAL_MS,
    },
  ];
}

interface Seen {
  readonly answer: string;
  /** When the first entry of the program was appended in a turn; 0 before. */
  firstAt: number;
  answers: number;
  /** Called when the session begins to wait for the next request. */
  waits: () => void;
}

function note(event: TraceEvent, seen: Seen): void {
  if (event.type === "waiting" && event.waits.some((wait) => "name" in wait && wait.name === NEXT_INPUT))
    seen.waits();
  if (event.type !== "entry_appended" || event.role !== "assistant") return;
  if (seen.firstAt === 0) seen.firstAt = nowMs();
  if (event.content?.includes(seen.answer) ?? false) seen.answers++;
}

/** Sessions whose program is in the middle of a turn, beside fewer of them. Garbage of the process counts. */
async function measureMemory(bench: Bench, place: Place, storage: AgentStorage): Promise<Measured> {
  const [few, many] = bench.isQuick ? [1, 3] : [10, 60];
  const runtime = createRuntime({ storage });
  const { agent } = place.agent();
  const results: Promise<string>[] = [];
  const rssMb: number[] = [];
  for (const count of [few, many]) {
    while (results.length < count) {
      const handle = await runtime.start(agent, `${WRITES} gate:g-${results.length}`);
      results.push(handle.result());
    }
    await until("programs that work", () => place.working() === count);
    rssMb.push(process.memoryUsage.rss() / 1e6);
  }
  for (let number = 0; number < many; number++) writeFileSync(join(place.project, `open-${number}`), "");
  const answers = await Promise.all(results);
  assertDone("answers", answers.filter((text) => text.startsWith(`Done: ${WRITES}`)).length, many);
  await runtime.close();
  const [before = 0, after = 0] = rssMb;
  const value = (after - before) / (many - few);
  return {
    variant: `memory of this process for each of ${many} working agents`,
    unit: "MB",
    value,
    goal: `<= ${MEMORY_GOAL_MB} MB`,
    isGoalMet: value <= MEMORY_GOAL_MB,
    more: { rssMbWithAll: after },
  };
}
