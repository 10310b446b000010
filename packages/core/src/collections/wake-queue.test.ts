import fc from "fast-check";
import { expect, test } from "vitest";
import { WakeQueue, type Queued } from "./wake-queue.ts";

const item = (): Queued => ({ queuedFor: Infinity, queueIndex: -1 });

test("the first item is always the earliest, whatever is queued, moved and removed", () => {
  const moves = fc.array(fc.tuple(fc.nat({ max: 7 }), fc.oneof(fc.nat({ max: 20 }), fc.constant(Infinity))));
  fc.assert(
    fc.property(moves, (asked) => {
      const queue = new WakeQueue<Queued>();
      const items = Array.from({ length: 8 }, item);
      for (const [index, at] of asked) {
        queue.set(items[index]!, at);
        expect(items[index]!.queuedFor).toBe(at);
        const earliest = Math.min(...items.map(({ queuedFor }) => queuedFor));
        expect(queue.first()?.queuedFor ?? Infinity).toBe(earliest);
        const { items: due, nextAt } = queue.upTo(10);
        const others = items.filter(({ queuedFor }) => queuedFor > 10);
        expect(new Set([...due, ...others])).toEqual(new Set(items));
        expect(due).toHaveLength(items.length - others.length);
        expect(nextAt).toBe(Math.min(...others.map(({ queuedFor }) => queuedFor)));
      }
      // Emptied from the front, the queue returns all items in order and is empty then.
      const left = items.map(({ queuedFor }) => queuedFor).filter((at) => at !== Infinity);
      const drained: number[] = [];
      for (let first = queue.first(); first !== undefined; first = queue.first()) {
        drained.push(first.queuedFor);
        queue.set(first, Infinity);
      }
      expect(drained).toEqual(left.sort((a, b) => a - b));
    }),
  );
});

test("an item that changes its time leaves nothing behind", () => {
  const queue = new WakeQueue<Queued>();
  const one = item();
  for (let at = 0; at < 1_000; at++) queue.set(one, at);
  queue.set(one, Infinity);
  queue.set(one, Infinity);
  expect(queue.first()).toBeUndefined();
  expect(one).toEqual({ queuedFor: Infinity, queueIndex: -1 });
});
