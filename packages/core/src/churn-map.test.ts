import { getHeapSpaceStatistics } from "node:v8";
import { expect, test } from "vitest";
import { ChurnMap } from "./churn-map.ts";

test("M1: it is a Map", () => {
  const map = new ChurnMap<string, object>();
  const [one, two, three] = [{}, {}, {}];
  map.set("a", one);
  map.set("b", two);
  map.set("a", three);
  expect([...map]).toEqual([
    ["a", three],
    ["b", two],
  ]);
  expect(map.get("a")).toBe(three);
  expect(map.has("c")).toBe(false);
  expect(map.get("c")).toBeUndefined();
  expect(map.delete("a")).toBe(true);
  expect(map.delete("a")).toBe(false);
  expect([map.size, map.has("a"), map.get("a")]).toEqual([1, false, undefined]);
  map.set("a", one);
  expect([...map].map(([key]) => key)).toEqual(["b", "a"]);
});

test("what is taken out while it is gone through does not come", () => {
  const map = new ChurnMap<number, object>();
  for (let i = 0; i < 5; i++) map.set(i, {});
  const seen: number[] = [];
  for (const [key] of map) {
    seen.push(key);
    map.delete(key + 1);
  }
  expect(seen).toEqual([0, 2, 4]);
});

// A table of its own has grown old: what is left after it would be kept with it.
test("what was taken out does not grow old", () => {
  const map = new ChurnMap<number, object>();
  const [entries, kept, numbers] = [20_000, 64, 100];
  for (let i = 0; i < 3; i++) map.set(-i, {});
  const garbage: object[] = [];
  for (let i = 0; i < entries; i++) garbage[i % kept] = content(numbers);
  let grownOld = 0;
  let before = oldBytes();
  for (let i = 1; i < entries; i++) {
    map.set(i, content(numbers));
    map.delete(i - kept);
    if (i % 100 !== 0) continue;
    const now = oldBytes();
    grownOld += Math.max(0, now - before); // It is less after a full collection, which takes nothing back of what grew.
    before = now;
  }
  expect(grownOld).toBeLessThan((entries * numbers * 8) / 4); // With a Map it is half of it all.
});

function content(numbers: number): object {
  return { numbers: Array.from({ length: numbers }, () => 0) };
}

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space")?.space_used_size ?? 0;
}
