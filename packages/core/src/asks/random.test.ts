import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seededRandom, sessionRandom } from "./random.ts";

const anySeed = fc.integer({ min: 0, max: 0xffff_ffff });

describe("seeded randomness", () => {
  test("numbers are the same for the same seed and stream, and stay within 32 bits", () => {
    fc.assert(
      fc.property(anySeed, fc.nat(1_000_000), (seed, stream) => {
        const [a, b] = [draw(seed, stream, 50), draw(seed, stream, 50)];
        expect(a).toEqual(b);
        for (const value of a) expect(Number.isInteger(value) && value >= 0 && value < 2 ** 32).toBe(true);
      }),
    );
  });

  test("streams of one seed share no numbers, also for the poorest seeds", () => {
    for (const seed of [0, 1, 0xffff_ffff, 0x9e37_79b9]) {
      const seen = new Set<number>();
      for (let stream = 0; stream < 200; stream++)
        for (const value of draw(seed, stream, 20)) seen.add(value);
      // 4,000 draws of 2^32: more than a handful of coincidences would be no coincidence.
      expect(seen.size, `seed ${seed}`).toBeGreaterThan(3_990);
    }
  });

  test("neighbouring seeds share no numbers", () => {
    const seen = new Set<number>();
    for (let seed = 0; seed < 200; seed++) for (const value of draw(seed, 7, 20)) seen.add(value);
    expect(seen.size).toBeGreaterThan(3_990);
  });

  test("numbers are spread evenly: every sixteenth gets its share", () => {
    const counts = Array.from({ length: 16 }, () => 0);
    for (const value of draw(12_345, 3, 160_000)) counts[value >>> 28]!++;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(600);
  });

  test("the generator is the one that sessions were recorded with", () => {
    // A change here would give every running session other random numbers on its next replay.
    expect(draw(42, 0, 4)).toEqual([3704290710, 166753127, 957952423, 1464233848]);
  });
});

describe("the numbers of a session", () => {
  const words = (sessionId: string, seed = 42, stream = 0): string =>
    Array.from({ length: 4 }, sessionRandom(sessionId, seed, stream)).join("-");

  test("they are made of its id: sessions with one seed have others, also below each other", () => {
    const ids = Array.from({ length: 20_000 }, (_, n) => `ses_0${n}`);
    const below = ids.slice(0, 200).flatMap((id) => [`${id}-1`, `${id}-1-1`, `${id}-11`, `${id}-1-1-1`]);
    const seen = new Set([...ids, ...below].map((id) => words(id)));
    expect(seen.size).toBe(ids.length + below.length);
  });

  test("they are the same for the same session, and others at another checkpoint or with another seed", () => {
    expect(words("ses_1")).toBe(words("ses_1"));
    const others = [words("ses_1"), words("ses_1", 43), words("ses_1", 42, 1), words("ses_2")];
    expect(new Set(others).size).toBe(4);
  });

  test("the generator is the one that sessions were recorded with", () => {
    expect(Array.from({ length: 4 }, sessionRandom("ses_1", 42, 0))).toEqual([
      2664128818, 2402325852, 109910366, 2949743067,
    ]);
  });
});

function draw(seed: number, stream: number, count: number): number[] {
  const next = seededRandom(seed, stream);
  return Array.from({ length: count }, next);
}
