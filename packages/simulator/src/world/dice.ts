// Chance for a simulation: all of it drawn from one seed, in streams that do not disturb each other.

import { seededRandom } from "@holdfast/core/internal";

export class Dice {
  /** An integer in [0, 2^32). */
  readonly u32: () => number;

  constructor(seed: number, stream: number) {
    this.u32 = seededRandom(seed, stream);
  }

  chance(probability: number): boolean {
    return this.u32() < probability * 0x1_0000_0000;
  }

  /** An integer from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor((this.u32() / 0x1_0000_0000) * (most - least + 1));
  }

  pick<const T>(items: readonly [T, ...T[]]): T {
    return items[this.between(0, items.length - 1)] ?? items[0];
  }
}
