// The output of a runner to a host that reads slowly, or no more.

import { expect, test } from "vitest";
import { IpcOutput } from "./ipc-output.ts";

const large = { type: "warning", message: "x".repeat(300_000) } as const;
const small = { type: "warning", message: "small" } as const;

/** A reader that takes a piece when it is told to. */
function slowReader() {
  const taken: string[] = [];
  let next = Promise.withResolvers<void>();
  let isGone = false;
  return {
    taken,
    take(): void {
      next.resolve();
      next = Promise.withResolvers();
    },
    leave(): void {
      isGone = true;
      next.resolve();
    },
    async stream(pieces: AsyncIterable<string>): Promise<void> {
      for await (const piece of pieces) {
        await next.promise;
        if (isGone) return;
        taken.push(piece);
      }
    },
  };
}

/** Whether a promise has settled, once everything that could settle it at once has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => (settled = true));
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

test("a sender waits for room, and what may be left out is left out meanwhile", async () => {
  const reader = slowReader();
  const output = new IpcOutput(reader);
  for (let n = 0; n < 3; n++) expect(await isSettled(output.send(large))).toBe(true);
  const waiting = output.send(large);
  expect(await isSettled(waiting)).toBe(false);
  output.offer(small);
  reader.take();
  expect(await isSettled(waiting)).toBe(true);
  const ended = output.end(small);
  for (let n = 0; n < 4; n++) {
    await new Promise((resolve) => setImmediate(resolve));
    reader.take();
  }
  await ended;
  const lines = reader.taken.join("").trim().split("\n");
  expect(lines).toHaveLength(5);
  expect(lines.filter((line) => line.includes("small"))).toHaveLength(1);
});

test("a sender waits no longer when nobody reads any more", async () => {
  const reader = slowReader();
  const output = new IpcOutput(reader);
  const sent = Promise.all(Array.from({ length: 5 }, () => output.send(large)));
  expect(await isSettled(sent)).toBe(false);
  reader.leave();
  await sent;
  await output.closed;
  await output.end(small);
});
