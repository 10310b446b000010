// NameLines, compared with a direct computation of the rule over random names, starts and ends.

import { expect, test } from "vitest";
import { NameLines, type Naming } from "./key-queues.ts";

interface Item extends Naming {
  readonly number: number;
}

/** The items that are free: no running item, and no earlier waiting item, has a common name. */
function freeOf(waiting: readonly Item[], underWay: readonly Item[]): number[] {
  const taken = new Set(underWay.flatMap(({ names }) => names));
  const free: number[] = [];
  for (const { number, names } of waiting) {
    if (names.some((name) => taken.has(name))) for (const name of names) taken.add(name);
    else free.push(number);
  }
  return free;
}

test("the free items are those of the rule, in any order of entering, running and leaving", () => {
  const random = lcg(7);
  for (let round = 0; round < 60; round++) {
    const lines = new NameLines<Item>();
    const groups: Item[][] = [];
    let waiting: Item[] = [];
    let free: Item[] = [];
    const steps = 60;
    for (let step = 0; step < 2 * steps; step++) {
      const drawn = random(3);
      if (step < steps && drawn === 0) {
        const names = [...new Set(Array.from({ length: 1 + random(3) }, () => `name-${random(6)}`))];
        const item = { number: step, names };
        waiting.push(item);
        if (lines.enter(item)) free.push(item);
      } else if (drawn === 1 && free.length > 0) {
        const group = free;
        lines.take(group);
        groups.push(group);
        waiting = waiting.filter((item) => !group.includes(item));
        free = [];
      } else if (groups.length > 0) {
        const [over] = groups.splice(random(groups.length), 1);
        free.push(...lines.leave(over!));
      }
      const numbers = free.map(({ number }) => number).sort((a, b) => a - b);
      expect(numbers).toEqual(freeOf(waiting, groups.flat()));
    }
  }
});

function lcg(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}
