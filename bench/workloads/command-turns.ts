// command-turns: the turns of `holdfast run FILE.md` in a terminal, each with a streamed answer of a model over
// HTTP and a file that is read. The command is bundled as users have it.
//
// The floor is the bare loop of the AI SDK with the same files, in a terminal too. It stores nothing.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installCommand } from "../../scripts/installed-command.ts";
import type { Measured } from "../line.ts";
import { assertDone, inTurns, median, nowMs, runningCpuMs } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

const TERMINAL = "/usr/bin/script";
const GOAL = 1.5;
const AGENT = `---
name: reader
description: Reads files.
model: anthropic/claude-sonnet-4-5
tools: Read
maxTurns: 10000
---
You read files.
`;
const LINES = "0123456789abcdef\n".repeat(120);

export const commandTurns: Workload = {
  id: "command-turns",
  title: "turns of holdfast run FILE.md in a terminal, beside the bare loop of the AI SDK",
  refuses: (storage) => {
    if (storage !== "sqlite") return "a run has its own database";
    return existsSync(TERMINAL)
      ? undefined
      : `there is no ${TERMINAL} on this machine, which makes a terminal`;
  },
  run: async function* (bench) {
    const turns = bench.size(200, 5);
    const command = join(await installCommand(), "holdfast");
    const loop = fileURLToPath(new URL("../children/model-loop.mjs", import.meta.url));
    const of = (program: string, ...args: string[]) => turnsOf(bench, turns, [program, ...args]);
    const { ours, floors } = await inTurns(
      bench.isQuick ? 1 : bench.repeats,
      () => of(command, "run", "reader.md", "Read all files."),
      () => of(loop),
    );
    yield lineOf("from the end of an answer to the next request", "ms", "gapMs", ours, floors);
    yield lineOf(`${turns} turns`, "ms CPU/turn", "cpuMs", ours, floors);
  },
};

/** Medians of a run, without its first quarter, in which the code is compiled. */
interface Turns {
  /** From the end of an answer to the next request. */
  readonly gapMs: number;
  /** CPU time of a turn, of all processes and threads. */
  readonly cpuMs: number;
}

function lineOf(
  variant: string,
  unit: string,
  what: keyof Turns,
  ours: readonly Turns[],
  floors: readonly Turns[],
): Measured {
  const [value, floor] = [ours, floors].map((side) => median(side.map((turns) => turns[what]))) as [
    number,
    number,
  ];
  return {
    variant,
    unit,
    value,
    floor,
    goal: `<= ${GOAL} x the bare loop of the AI SDK`,
    isGoalMet: value <= GOAL * floor,
  };
}

/** Runs a program of Node in a terminal, in a new project, until it has read all files. */
function turnsOf({ folder }: Bench, turns: number, args: readonly string[]): Promise<Turns> {
  return withFolder(folder, async (project) => {
    mkdirSync(join(project, ".holdfast")); // A project of its own, and no folder of this checkout.
    writeFileSync(join(project, "reader.md"), AGENT);
    for (let turn = 0; turn < turns; turn++)
      writeFileSync(join(project, `${turn}.txt`), `part ${turn}\n${LINES}`);
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const model = await Model.listen(turns, () => treeCpuMs(terminal.pid!));
    const keys = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "unused" };
    const env = { PATH, NODE_COMPILE_CACHE, HOME: project, LANG: "C.UTF-8", TERM: "xterm-256color", ...keys };
    const line = [process.execPath, ...args].map((word) => `'${word}'`).join(" ");
    const terminal: ChildProcess = spawn(
      TERMINAL,
      ["-qfec", `stty cols 100 rows 40; exec ${line}`, "/dev/null"],
      {
        cwd: project,
        env,
        stdio: ["pipe", "ignore", "inherit"],
      },
    );
    const [code] = (await once(terminal, "exit")) as [number | null];
    await model.close();
    assertDone(args.join(" "), { code, answers: model.answers }, { code: 0, answers: turns + 1 });
    return model.turns;
  });
}

/** CPU time of a process and of all that run below it, in milliseconds and steps of ten. */
function treeCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + treeCpuMs(Number(child)), runningCpuMs(pid));
}

/** The server of a model that has one file read after the other. */
class Model {
  readonly #server: Server;
  readonly #last: number;
  readonly #cpuMs: () => number;
  readonly #gaps: number[] = [];
  /** CPU time at each request. */
  readonly #marks: number[] = [];
  #endedAt: number | undefined;
  answers = 0;

  private constructor(turns: number, cpuMs: () => number) {
    this.#last = turns;
    this.#cpuMs = cpuMs;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async listen(turns: number, cpuMs: () => number): Promise<Model> {
    const model = new Model(turns, cpuMs);
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get turns(): Turns {
    const first = Math.floor(this.#last / 4);
    const marks = this.#marks.slice(first);
    return {
      gapMs: median(this.#gaps.slice(first)),
      cpuMs: (marks.at(-1)! - marks[0]!) / (marks.length - 1),
    };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const askedAt = nowMs();
    if (request.method !== "POST") return void response.writeHead(404).end();
    if (this.#endedAt !== undefined) this.#gaps.push(askedAt - this.#endedAt);
    this.#marks.push(this.#cpuMs());
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(answerOf(this.answers++, this.#last, Math.ceil(bytes / 4)), () => (this.#endedAt = nowMs()));
  }
}

interface Block {
  readonly block: object;
  readonly deltas: readonly object[];
}

/** An answer of Anthropic's Messages API as a stream: a text, and up to the last turn a file to read. */
function answerOf(turn: number, last: number, inputTokens: number): string {
  const isLast = turn === last;
  const model = "claude-sonnet-4-5";
  const usage = { input_tokens: inputTokens, output_tokens: 1 };
  const message = { id: `m${turn}`, type: "message", role: "assistant", model, content: [], usage };
  const call = { type: "tool_use", id: `toolu_${turn}`, name: "read_file", input: {} };
  const input = { type: "input_json_delta", partial_json: JSON.stringify({ path: `${turn}.txt` }) };
  const text = ["I ", "read ", "file ", `${turn}.`].map((word) => ({ type: "text_delta", text: word }));
  const said: Block = { block: { type: "text", text: "" }, deltas: text };
  const blocks = isLast ? [said] : [said, { block: call, deltas: [input] }];
  const events = [
    { type: "message_start", message },
    ...blocks.flatMap(({ block, deltas }, index) => [
      { type: "content_block_start", index, content_block: block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: isLast ? "end_turn" : "tool_use" },
      usage: { output_tokens: 20 },
    },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
