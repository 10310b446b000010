import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { ChurnMap } from "./churn-map.ts";

test("churn-map-1: it is a Map", () => {
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

test("an entry that is removed during an iteration does not come", () => {
  const map = new ChurnMap<number, object>();
  for (let i = 0; i < 5; i++) map.set(i, {});
  const seen: number[] = [];
  for (const [key] of map) {
    seen.push(key);
    map.delete(key + 1);
  }
  expect(seen).toEqual([0, 2, 4]);
});

// A table of the map has grown old, and would keep later tables alive if it were a Map's. The test runs in a
// process of its own, because garbage of other tests would grow old as well.
test("removed values do not grow old", () => {
  const grown = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "--eval", GROWTH], {
    encoding: "utf8",
  });
  expect(grown.status, grown.stderr).toBe(0);
  expect(Number(grown.stdout)).toBeLessThan((ENTRIES * NUMBERS * 8) / 2);
});

const [ENTRIES, NUMBERS] = [4_000, 100];
const GROWTH = `
  import { getHeapSpaceStatistics } from "node:v8";
  import { ChurnMap } from ${JSON.stringify(new URL("churn-map.ts", import.meta.url).href)};
  const oldBytes = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space").space_used_size;
  const map = new ChurnMap();
  for (let i = -3; i < 0; i++) map.set(i, {});
  for (let i = 0; i < 3; i++) gc({ type: "minor" });
  const before = oldBytes();
  for (let i = 0; i < ${ENTRIES}; i++) {
    map.set(i, { numbers: Array.from({ length: ${NUMBERS} }, () => 0) });
    map.delete(i - 64);
    if (i % 500 === 0) gc({ type: "minor" });
  }
  console.log(oldBytes() - before);
`;
