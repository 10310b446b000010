// Frames, however the bytes of a line are cut.

import fc from "fast-check";
import { expect, it } from "vitest";
import {
  callOf,
  frameOf,
  FrameKind,
  FrameReader,
  greetingOf,
  readCall,
  readGreeting,
  type Frame,
} from "./line.ts";

it("a reader returns every frame, whole and in order, wherever the bytes are cut", () => {
  const aFrame = fc.record({
    number: fc.nat(2 ** 31 - 1),
    kind: fc.integer({ min: 0, max: 255 }),
    content: fc.uint8Array({ maxLength: 40 }),
  });
  fc.assert(
    fc.property(fc.array(aFrame, { maxLength: 8 }), fc.array(fc.nat(50)), (frames, cuts) => {
      const bytes = Buffer.concat(frames.map(({ number, kind, content }) => frameOf(number, kind, content)));
      const reader = new FrameReader(45);
      const read: Frame[] = [];
      let at = 0;
      for (const cut of [...cuts, bytes.length]) {
        const end = Math.min(bytes.length, at + cut);
        for (const frame of reader.read(bytes.subarray(at, end)))
          read.push({ ...frame, content: Uint8Array.from(frame.content) });
        at = end;
      }
      expect(read).toEqual(frames);
      expect(reader.isWithin).toBe(false);
    }),
  );
});

it("proto-line-1: a reader refuses a frame above its limit once its length has arrived, and a frame without a head", () => {
  const long = frameOf(1, FrameKind.answer, new Uint8Array(6));
  expect(() => new FrameReader(10).read(long.subarray(0, 4))).toThrow(RangeError);
  expect(() => new FrameReader(10).read(new Uint8Array([0, 0, 0, 4]))).toThrow(RangeError);
});

it("a call and a greeting are read as they were written, and other bytes as neither", () => {
  const [path, request] = [new Uint8Array([1, 2]), new Uint8Array([3])];
  const content = Buffer.concat(callOf(path, request));
  expect(readCall(content)).toEqual({ path: Buffer.from(path), request: Buffer.from(request) });
  expect(readCall(content.subarray(0, 2))).toBeUndefined();
  expect(readCall(new Uint8Array())).toBeUndefined();
  const greeting = { calls: 100, frameBytes: 2 ** 31 };
  expect(readGreeting(greetingOf(greeting))).toEqual(greeting);
  expect(readGreeting(new Uint8Array(7))).toBeUndefined();
});
