import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
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

// A table of its own has grown old: with a Map, what is left after it would be kept with it.
test("what was taken out does not grow old", () => {
  const map = new ChurnMap<number, object>();
  for (let i = -3; i < 0; i++) map.set(i, {});
  for (let i = 0; i < 3; i++) collectYoung({ type: "minor" });
  const [entries, kept, numbers] = [4_000, 64, 100];
  const before = oldBytes();
  for (let i = 0; i < entries; i++) {
    map.set(i, { numbers: Array.from({ length: numbers }, () => 0) });
    map.delete(i - kept);
    if (i % 500 === 0) collectYoung({ type: "minor" });
  }
  expect(oldBytes() - before).toBeLessThan((entries * numbers * 8) / 2);
});

setFlagsFromString("--expose-gc");
const collectYoung = runInNewContext("gc") as (options: { readonly type: "minor" }) => void;

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space")?.space_used_size ?? 0;
}
