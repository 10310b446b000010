// Each kind of value at each place where it enters a session. `docs/api.md` has the same table under "What is
// recorded".

import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

class Point {
  readonly x = 1;
  /** Seen by nobody, so that nobody misses it. */
  readonly #hidden = 2;
  static of({ x, ...point }: Point): number {
    return #hidden in point ? point.#hidden : x;
  }
}

class Account extends Point {
  save(): string {
    return "saved";
  }
}

class Row extends Account {
  readonly id = 7;
}

class Money extends Point {
  get cents(): number {
    return 500;
  }
}

interface Read {
  readonly kept?: unknown;
  readonly output?: unknown;
}

/**
 * Each given value with the value that is read later. A value without `kept` is refused, but one with `output` is
 * recorded so as the output of a task, which is done by then.
 */
const VALUES: readonly (readonly [string, unknown, Read?])[] = [
  ["-0", -0, { kept: 0 }],
  ["a fraction", 0.1, { kept: 0.1 }],
  ["a number beyond the safe integers", 2 ** 60, { kept: 2 ** 60 }],
  ["NaN", Number.NaN],
  ["Infinity", Infinity],
  ["a BigInt", 1n],
  ["a symbol", Symbol("s")],
  ["a function", () => 1],
  ["a text with NUL and a lone surrogate", "\0 \ud800", { kept: "\0 \ud800" }],
  ["a key that is undefined", { a: 1, b: undefined }, { kept: { a: 1 } }],
  ["a key that is a symbol", { a: 1, [Symbol("s")]: 2 }, { kept: { a: 1 } }],
  ["a key named __proto__", JSON.parse('{"__proto__":1}'), { kept: JSON.parse('{"__proto__":1}') }],
  ["undefined in a list", [undefined]],
  // oxlint-disable-next-line no-sparse-arrays -- the hole is the case
  ["a sparse list", [1, , 3]],
  ["a list with a property of its own", Object.assign([1], { extra: 2 }), { kept: [1] }],
  ["an instance of a class without methods", new Point(), { kept: { x: 1 } }],
  ["an instance of a class with a method", new Account(), { output: { x: 1 } }],
  ["an instance of a class that inherits a method", new Row(), { output: { x: 1, id: 7 } }],
  ["an instance of a class with a getter", new Money(), { output: { x: 1 } }],
  ["an instance that holds what is refused", Object.assign(new Account(), { tags: new Set([1]) })],
  ["properties of a prototype", Object.create({ a: 1 }), { output: {} }],
  ["a plain object of another realm", runInNewContext("({ a: { b: 1 } })"), { kept: { a: { b: 1 } } }],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { kept: { a: 1 } }],
  [
    "a getter of the object's own",
    Object.defineProperty({}, "a", { get: () => 1, enumerable: true }),
    { kept: { a: 1 } },
  ],
  [
    "a property that is not enumerable",
    Object.defineProperty({ a: 1 }, "b", { value: 2 }),
    { kept: { a: 1 } },
  ],
  ["toJSON", { toJSON: () => ({ as: "json" }) }, { kept: { as: "json" } }],
  ["toJSON of a URL", new URL("http://a/b"), { kept: "http://a/b" }],
  ["bytes of a Buffer, by its toJSON", Buffer.from("a"), { kept: { type: "Buffer", data: [97] } }],
  ["other bytes", new Uint8Array(1)],
  ["a Date", new Date(0), { output: "1970-01-01T00:00:00.000Z" }],
  ["an invalid Date", new Date(Number.NaN)],
  ["a Map", new Map([[1, 2]])],
  ["a Set", new Set([1])],
  ["an Error", new Error("no")],
  ["a RegExp", /x/],
  ["a promise", Promise.resolve(1)],
];

type Outcome = { readonly kept: unknown } | { readonly refused: string | undefined };

function start(
  run: (ctx: AgentContext<{ readonly v: unknown }, { readonly v: unknown }>) => Promise<unknown>,
) {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, development: false });
  opened.push(runtime);
  const agent = defineAgent<{ readonly v: unknown }, unknown, { readonly v: unknown }>({
    name: "reads",
    run,
  });
  return { runtime, begin: (v: unknown) => runtime.start(agent, { v }), storage };
}

/** The value that the agent read, or the code of its refusal. */
async function outcomeOf(read: unknown[], settled: Promise<unknown>): Promise<Outcome> {
  const { fault } = (await settled) as { readonly fault?: { readonly code: string } };
  return fault === undefined ? { kept: read[0] } : { refused: fault.code };
}

/** The places where values enter a session, each with the value that is read there. */
const PLACES: { readonly [place: string]: (v: unknown) => Promise<Outcome> } = {
  async input(v) {
    const read: unknown[] = [];
    const { begin } = start(async (ctx) => void read.push(ctx.input.v));
    const session = await begin(v).catch((error: { code: string }) => error.code);
    return typeof session === "string" ? { refused: session } : outcomeOf(read, session.settled());
  },
  async "the output of a task"(v) {
    const read: unknown[] = [];
    const { begin } = start(async (ctx) => {
      const made = (await ctx.run("make", () => ({ v }))) as { readonly v: unknown };
      read.push(made.v);
    });
    const settled = (await (await begin(1)).settled()) as { error?: { cause?: { code?: string } } };
    return read.length > 0 ? { kept: read[0] } : { refused: settled.error?.cause?.code };
  },
  async "the payload of a signal"(v) {
    const read: unknown[] = [];
    const { runtime, begin } = start(async (ctx) => {
      read.push((await ctx.waitForSignal<{ readonly v: unknown }>("go")).v);
    });
    const session = await begin(1);
    const refused = await runtime.signal(session.sessionId, "go", { v }).then(
      () => undefined,
      ({ code }: { code: string }) => code,
    );
    return refused === undefined ? outcomeOf(read, session.settled()) : { refused };
  },
  async state(v) {
    const read: unknown[] = [];
    const { begin } = start(async (ctx) => {
      if (ctx.state === undefined) return ctx.checkpoint({ v });
      return void read.push(ctx.state.v);
    });
    return outcomeOf(read, (await begin(1)).settled());
  },
  async "an entry"(v) {
    const { storage, begin } = start(async (ctx) => void ctx.appendEntry({ role: "user", content: { v } }));
    const session = await begin(1);
    const settled = session.settled();
    await settled;
    const [entry] = await storage.reader.entries(session.sessionId, 0, 1);
    return outcomeOf(
      [entry === undefined ? undefined : (JSON.parse(entry.content) as { v: unknown }).v],
      settled,
    );
  },
};

describe.each(Object.keys(PLACES))("in %s", (place) => {
  test.each(VALUES)("%s is kept as the table says, or refused as no JSON", async (_, given, read) => {
    const isOutput = place === "the output of a task";
    const { output, kept = isOutput ? output : undefined } = (read ?? {}) as Read;
    expect(await PLACES[place]!(given)).toStrictEqual(
      kept === undefined ? { refused: "not_json" } : { kept },
    );
  });
});

// The row is inserted when its instance is to be recorded. A refusal would lose it, and a repeat would double it.
test("a step that gives an instance is done, and a warning names its line, the place and what is missing", async () => {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, development: true });
  opened.push(runtime);
  let inserted = 0;
  const agent = defineAgent({
    name: "inserts",
    run: (ctx) => ctx.run("insert", () => ({ account: (inserted++, new Account()), at: new Date(0) })),
  });
  const session = await runtime.start(agent);
  expect(await session.result()).toEqual({ account: { x: 1 }, at: "1970-01-01T00:00:00.000Z" });
  expect(inserted).toBe(1);
  const warnings = (await storage.reader.journal(session.sessionId, 0, 100)).flatMap((record) =>
    record.type === "warned" ? [JSON.parse(record.payload!) as string] : [],
  );
  expect(warnings).toEqual([
    expect.stringMatching(
      /^attempt 1 of task "insert" \(\S+values\.test\.ts:\d+:\d+\) gave an output that is recorded otherwise: an instance of Account would come back without "save" of its class \(at \/account\): give plain data/,
    ),
  ]);
});
