// A profile is divided among the owners of the code.

import type { Profiler } from "node:inspector";
import { expect, test } from "vitest";
import { sharesOf } from "./shares.ts";

test("native functions belong to SQLite where its driver calls them, and waiting belongs to nobody", () => {
  const profile = profileOf([
    ["idle", "(idle)", "", 50],
    ["start", "post", "node:inspector", 40],
    ["garbage", "(garbage collector)", "", 10],
    ["driver", "run", "file:///x/packages/storage/src/sqlite/file/driver.ts", 2],
    ["native", "run", "", 28, "driver"],
    ["writer", "commit", "file:///x/packages/storage/src/sqlite/engine/writer.ts", 20],
    ["look", "lstat", "", 5, "writer"],
    ["core", "seal", "file:///x/packages/core/src/kernel/kernel.ts", 35],
  ]);
  expect(sharesOf(profile)).toEqual([
    { owner: "core", part: 0.35 },
    { owner: "SQLite", part: 0.3 },
    { owner: "storage", part: 0.2 },
    { owner: "garbage", part: 0.1 },
    { owner: "Node and V8", part: 0.05 },
  ]);
});

/** Each sample has a function of its own, under the one that calls it. */
function profileOf(samples: readonly [string, string, string, number, string?][]): Profiler.Profile {
  const idOf = (name: string): number => samples.findIndex(([known]) => known === name) + 1;
  const nodes = samples.map(([name, functionName, url]) => ({
    id: idOf(name),
    callFrame: { functionName, url, scriptId: "0", lineNumber: 0, columnNumber: 0 },
    children: samples.filter(([, , , , caller]) => caller === name).map(([called]) => idOf(called)),
  }));
  const timeDeltas = samples.map(([, , , micros]) => micros);
  return { nodes, startTime: 0, endTime: 190, samples: samples.map(([name]) => idOf(name)), timeDeltas };
}
