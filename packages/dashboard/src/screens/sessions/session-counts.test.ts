import { expect, test } from "vitest";
import { countsIn } from "./session-counts.ts";

test("the counts of statuses are read from the metrics, and a count that was cut says so", () => {
  const metrics = [
    "# TYPE holdfast_sessions gauge",
    'holdfast_sessions{status="working"} 12',
    'holdfast_sessions{status="waiting"} 1000',
    'holdfast_runners{status="online"} 3',
    "",
  ].join("\n");
  expect([...countsIn(metrics)]).toEqual([
    ["working", "12"],
    ["waiting", "1,000+"],
  ]);
});
