// Every journal ever recorded replays under today's kernel to the same end, and a changed agent is told apart
// from it.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { decodeRecords, defined, type JournalRecord } from "@holdfast/core";
import { sha256 } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { HISTORY_SCENARIOS, type HistoryScenario } from "../history-scenarios.ts";
import { KernelStand, type StandAgent } from "../kernel-stand.ts";

const FOLDER = new URL("../../../../histories/", import.meta.url);

interface History {
  readonly header: {
    readonly format: number;
    /** Behaviour flags of its session. */
    readonly flags: number;
    readonly name: string;
    readonly shows: string;
    readonly sessionId: string;
    readonly seed: number;
    readonly input?: unknown;
    readonly end: { readonly status: string; readonly output?: string; readonly error?: unknown };
  };
  readonly records: readonly JournalRecord[];
}

const files = readdirSync(FOLDER).filter((file) => file.endsWith(".jsonl"));

test("there is a history of each scenario, and a scenario for each history", () => {
  expect(files.map((file) => file.replace(".jsonl", "")).sort()).toEqual(
    HISTORY_SCENARIOS.map(({ name }) => name).sort(),
  );
});

// Histories are append-only: a change of one breaks a promise to existing sessions.
test("each history is what it was when it was recorded", () => {
  const sums = readFileSync(new URL("SHA256SUMS", FOLDER), "utf8").trimEnd().split("\n");
  const now = files.map((file) => {
    const sum = createHash("sha256")
      .update(readFileSync(new URL(file, FOLDER)))
      .digest("hex");
    return `${sum}  ${file}`;
  });
  expect(now.sort()).toEqual(sums.sort());
});

describe("replayed", () => {
  test.each(files)("%s comes to the same end", async (file) => {
    const { header, records } = read(file);
    expect(header.format).toBe(1);
    expect(header.shows).toBeTruthy();
    const last = await replay(header, records, agentOf(header.name));
    expect(last?.fault).toBeUndefined();
    const end =
      header.end.status === "failed"
        ? { type: "threw", error: header.end.error }
        : { type: "returned", output: header.end.output };
    expect(last?.stands).toEqual({ type: "ended", ending: end });
  });

  test.each(files)("%s comes to the same end when its code is changed behind ctx.patched", async (file) => {
    const { header, records } = read(file);
    const agent = agentOf(header.name);
    const last = await replay(header, records, (ctx, input) => {
      if (ctx.patched("a later change")) ctx.appendEntry({ role: "user", content: "changed" });
      return agent(ctx, input);
    });
    expect([last?.fault, last?.stands?.type]).toEqual([undefined, "ended"]);
  });

  test.each(files)("%s says the same of itself at every cut", async (file) => {
    const { header, records } = read(file);
    // A journal ends where a batch did: before an event or a note, never within the commands of one.
    for (let length = 1; length < records.length; length++) {
      const next = records[length]!;
      if ("id" in next || records[length - 1]!.type === "checkpoint") continue;
      const last = await replay(header, records.slice(0, length), agentOf(header.name));
      expect(last?.fault, `cut to ${length}`).toBeUndefined();
    }
  });
});

/** Asks for another task, signal or word. */
function renamed(name: string, args: unknown[]): unknown[] {
  if (name === "run" || name === "waitForSignal") return ["changed", ...args.slice(1)];
  if (name === "scheduleTask") return [{ name: "changed" }, ...args.slice(1)];
  return name === "signalChild" ? [args[0], "changed", ...args.slice(2)] : args;
}

/** Ways to change an agent without touching its code: what it asks of its context is bent on the way. */
const BENDS: readonly (readonly [string, (run: StandAgent) => StandAgent])[] = [
  ["another name for its first task or wait", (run) => (ctx, input) => run(bent(ctx, renamed), input)],
  [
    "one command more at the beginning",
    (run) => (ctx, input) => (ctx.appendEntry({ role: "user", content: "more" }), run(ctx, input)),
  ],
  ["nothing asked any more", () => async () => "nothing"],
  ["an error at the beginning", () => () => Promise.reject(new Error("changed"))],
  ["a wait for ever at the beginning", () => (ctx) => ctx.waitForSignal("for ever")],
];

describe("a changed agent is seen", () => {
  for (const [change, bend] of BENDS) {
    test.each(files)(`${change}: %s`, async (file) => {
      const { header, records } = read(file);
      // A session that ends in its first slice could show no difference; no history is one.
      const last = await replay(header, records, bend(agentOf(header.name)));
      const isUntouched =
        change.startsWith("another name") &&
        !records.some((record) => record.type === "wait_signal" || record.type === "schedule_task");
      if (isUntouched) return;
      expect(last?.fault).toMatchObject({
        code: "nondeterminism",
        got: expect.any(String),
        expected: expect.any(String),
      });
      expect(last?.fault?.got).not.toBe(last?.fault?.expected);
    });
  }
});

// ---- replaying whole journals
// ---------------------------------------------------------------------------------------

/** One kernel per life: the journal from one checkpoint to the next. */
async function replay(header: History["header"], records: readonly JournalRecord[], agent: StandAgent) {
  const { tasks = [], agents = [] } = scenarioOf(header.name);
  let from = 0;
  let state: unknown;
  let carried: { turn?: number; entryCount?: number; leaf?: number; cancel?: never } = {};
  let baseId = 0;
  for (;;) {
    const at = records.findIndex((record, i) => i >= from && record.type === "checkpoint");
    const life = records.slice(from, at === -1 ? undefined : at + 1);
    if (life.length === 0) return undefined;
    const stand = new KernelStand(agent, {
      sessionId: header.sessionId,
      input: header.input,
      seed: header.seed,
      recorded: life,
      baseSeq: from,
      baseId,
      hash: sha256,
      relations: { flags: header.flags },
      kinds: {
        changed: {},
        ...Object.fromEntries(tasks.map(({ name, guardRepeats = false }) => [name, { guardRepeats }])),
      },
      agents: agents.map(({ name }) => name),
      ...defined({ state }),
      ...carried,
    });
    const stands = await stand.replay();
    const fault = stand.kernel.fault;
    if (fault !== undefined || at === -1) return { stands, fault };
    const checkpoint = records[at]!;
    if (checkpoint.type !== "checkpoint") throw new Error("no checkpoint");
    state = JSON.parse(checkpoint.payload ?? "null");
    expect(stands).toMatchObject({ type: "checkpointed", turn: checkpoint.turn, state: { current: state } });
    const { turn, entryCount, leaf } = checkpoint;
    carried = { turn, entryCount, ...defined({ leaf }) };
    from = at + 1;
    baseId = checkpoint.id + 1;
  }
}

function agentOf(name: string): StandAgent {
  const { run } = scenarioOf(name);
  return (ctx) => run(ctx as never);
}

function scenarioOf(name: string): HistoryScenario {
  const scenario = HISTORY_SCENARIOS.find((each) => each.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  return scenario;
}

function read(file: string): History {
  const text = readFileSync(new URL(file, FOLDER), "utf8").trimEnd();
  const end = text.indexOf("\n");
  const none = {
    get: (): never => {
      throw new Error("histories hold no blobs");
    },
  };
  return {
    header: JSON.parse(text.slice(0, end)) as History["header"],
    records: decodeRecords(text.slice(end + 1), none, file),
  };
}

/** The context, with the arguments of its methods changed on the way. */
function bent<T extends object>(ctx: T, change: (name: string, args: unknown[]) => unknown[]): T {
  return new Proxy(ctx, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) =>
        (member as (...given: unknown[]) => unknown).apply(target, change(String(name), args));
    },
  });
}
