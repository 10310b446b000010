// Lines of a stream, however it is cut into pieces.

import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { ipcLines, type IpcLine } from "./ipc-lines.ts";

async function linesOf(given: readonly Buffer[], bytesMax = 10): Promise<IpcLine[]> {
  const lines: IpcLine[] = [];
  for await (const line of ipcLines(Readable.from(given), bytesMax)) lines.push(line);
  return lines;
}

/** The bytes of a text in pieces of one size. */
function pieces(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}

test.each([1, 2, 3, 7, 100])("lines are the same in pieces of %i bytes", async (size) => {
  expect(await linesOf(pieces('{"a":1}\n\n"ü"\n0123456789\n01234567890\nlast\n', size))).toEqual([
    { number: 1, text: '{"a":1}' },
    { number: 3, text: '"ü"' },
    { number: 4, text: "0123456789" },
    { number: 5, problem: "too_long" },
    { number: 6, text: "last" },
  ]);
});

test("a line that never ends is reported once, as soon as it is too long", async () => {
  let given = 0;
  const endless = new Readable({
    read() {
      given++;
      this.push("xxxx");
    },
    highWaterMark: 1,
  });
  const lines = ipcLines(endless, 10);
  expect(await lines.next()).toEqual({ done: false, value: { number: 1, problem: "too_long" } });
  expect(given).toBeLessThan(10);
  endless.push(null);
  expect(await lines.next()).toMatchObject({ done: true });
});

test("bytes that are no text are reported, and the next line is read", async () => {
  expect(await linesOf([Buffer.from([0xff, 0x0a]), Buffer.from("ok\n")])).toEqual([
    { number: 1, problem: "not_utf8" },
    { number: 2, text: "ok" },
  ]);
});

test("a last line without an end was cut off", async () => {
  expect(await linesOf([Buffer.from("ok\n{}")])).toEqual([
    { number: 1, text: "ok" },
    { number: 2, problem: "cut_off" },
  ]);
});
