// PositionList: a list in chunks, compared with one array that is sorted after each change.

import { seededRandom } from "@holdfast/core/internal";
import { expect, test } from "vitest";
import { PositionList } from "./position-list.ts";

test("a list from which anything is taken gives the same pages as a sorted array", () => {
  const next = seededRandom(1, 0);
  const below = (end: number): number => Math.floor((next() / 2 ** 32) * end);
  const list = new PositionList<{ readonly position: number }>();
  let model: { readonly position: number }[] = [];
  const insert = (position: number): void => {
    const item = { position };
    list.add(item);
    model = [...model, item].sort((a, b) => a.position - b.position);
  };
  // At the end, then in between, so that chunks are cut in two; then away, until chunks are empty.
  for (let n = 0; n < 700; n++) insert(n * 1_000);
  for (let n = 0; n < 1_500; n++) insert(below(500) * 1_000 + n + 1);
  while (model.length > 0) {
    if (model.length % 100 === 0) {
      expect([...list]).toEqual(model);
      for (const end of [0, model.at(model.length >> 1)!.position, 350_001, Infinity])
        expect([...list.below(end)]).toEqual(model.filter(({ position }) => position < end).toReversed());
      for (const start of [-1, 0, model.at(model.length >> 1)!.position, 350_001, Infinity])
        expect([...list.above(start)]).toEqual(model.filter(({ position }) => position > start));
    }
    const [item] = model.splice(below(model.length), 1);
    list.remove(item!);
    list.remove(item!); // A second removal has no effect.
    expect(list.size).toBe(model.length);
  }
  expect([...list.below(Infinity)]).toEqual([]);
});
