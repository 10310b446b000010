import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import type { IncomingSignal } from "@holdfast/core";
import { readSignalLine, stdinSignals, type StdinSignalsOptions } from "./stdin-signals.ts";

describe("the meaning of a line", () => {
  test.each([
    ["plain text is the payload of `input`", "hello there", { name: "input", payload: "hello there" }],
    ["text keeps its spaces", "  indented", { name: "input", payload: "  indented" }],
    ["a number is text: only braces begin a signal", "42", { name: "input", payload: "42" }],
    ["a signal with a payload", '{"name":"go","payload":{"n":1}}', { name: "go", payload: { n: 1 } }],
    ["a signal without one", '{"name":"go"}', { name: "go", payload: undefined }],
    ["a dedup key", '{"name":"go","dedupKey":"k"}', { name: "go", payload: undefined, dedupKey: "k" }],
  ])("%s", (_, line, signal) => {
    expect(readSignalLine(line)).toEqual({ type: "signal", signal });
  });

  test.each(["", "   ", "\t"])("an empty line is nothing (%j)", (line) => {
    expect(readSignalLine(line)).toEqual({ type: "nothing" });
  });

  test.each([
    ["{oops", "is no JSON"],
    ["{}", `has no "name"`],
    ['{"name":7}', `has no "name"`],
    ['{"name":"go","paylod":1}', `has "paylod"`],
    ['{"name":"go","dedupKey":1}', `"dedupKey"`],
  ])("%s is refused, and says why", (line, reason) => {
    const meaning = readSignalLine(line);
    expect(meaning).toMatchObject({ type: "refused", reason: expect.stringContaining(reason) });
  });
});

describe("stdinSignals", () => {
  test("lines arrive in their order, however the stream cuts them, the last one without a line break", async () => {
    const text = 'één\r\n{"name":"go"}\n\nlast';
    // Byte by byte, so that every character and every line is cut somewhere.
    const { received } = read(Readable.from([...Buffer.from(text)].map((byte) => Uint8Array.of(byte))));
    expect(await received(3)).toEqual([
      { sessionId: "s", name: "input", payload: "één" },
      { sessionId: "s", name: "go", payload: undefined },
      { sessionId: "s", name: "input", payload: "last" },
    ]);
  });

  // A signal is acknowledged when it is stored. If a signal overtook another one while it is stored, it would
  // be consumed first.
  test("the next line waits until the one before it is stored", async () => {
    const input = new PassThrough();
    const stored = Promise.withResolvers<void>();
    const order: string[] = [];
    const { received } = read(input, {}, async ({ payload }) => {
      order.push(`begin ${String(payload)}`);
      if (payload === "slow") await stored.promise;
      order.push(`end ${String(payload)}`);
    });
    input.write("slow\n");
    input.write("quick\n");
    await received(1);
    expect(order).toEqual(["begin slow"]);
    stored.resolve();
    await received(2);
    expect(order).toEqual(["begin slow", "end slow", "begin quick", "end quick"]);
  });

  // Pausing a stream holds its text back, on Node 22 not its end.
  test("a last line that ends without a break waits for the lines before it", async () => {
    const input = new PassThrough();
    const stored = Promise.withResolvers<void>();
    const { received } = read(input, {}, async ({ payload }) => {
      if (payload === "slow") await stored.promise;
    });
    input.emit("data", "slow\nsecond\nlast");
    input.emit("end");
    await received(1);
    stored.resolve();
    expect((await received(3)).map(({ payload }) => payload)).toEqual(["slow", "second", "last"]);
  });

  test("a line over the limit is refused once, and the next one is read", async () => {
    const input = new PassThrough();
    const { received, refusals } = read(input, { lineChars: 10 });
    input.write("x".repeat(25));
    input.write(`${"x".repeat(25)}\nnext\n`);
    expect(await received(1)).toMatchObject([{ payload: "next" }]);
    expect(refusals).toEqual(["a line has more than 10 characters"]);
  });

  test("a stream that breaks is reported, and breaks nothing else", async () => {
    const input = new PassThrough();
    const { refusals } = read(input);
    input.destroy(new Error("gone"));
    await new Promise((resolve) => input.once("close", resolve));
    expect(refusals).toEqual(["the input broke off: gone"]);
  });

  test("after closing nothing is read any more, and the stream keeps no process alive", async () => {
    const input = new PassThrough();
    const { source, signals } = read(input);
    const reading = await source;
    await reading.close();
    input.write("late\n");
    await new Promise(setImmediate);
    expect(signals).toEqual([]);
    expect(input.isPaused()).toBe(true);
  });

  test("a line may be given another meaning", async () => {
    const interpret = (line: string) =>
      ({ type: "signal", signal: { name: "said", payload: line.length } }) as const;
    const { received } = read(Readable.from(["four\n"]), { interpret });
    expect(await received(1)).toEqual([{ sessionId: "s", name: "said", payload: 4 }]);
  });
});

function read(
  input: Readable,
  options: Partial<StdinSignalsOptions> = {},
  store: (signal: IncomingSignal) => Promise<void> = () => Promise.resolve(),
) {
  const signals: IncomingSignal[] = [];
  const refusals: string[] = [];
  let arrived = () => {};
  const source = stdinSignals({
    input,
    sessionId: "s",
    onRefused: (reason) => refusals.push(reason),
    ...options,
  }).open(async (signal) => {
    signals.push(signal);
    arrived();
    await store(signal);
    return { status: "stored" };
  });
  const received = async (count: number) => {
    while (signals.length < count) await new Promise<void>((resolve) => (arrived = resolve));
    return signals;
  };
  return { source, signals, refusals, received };
}
