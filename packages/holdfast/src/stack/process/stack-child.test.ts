// A process of the local stack, and what it writes.

import { expect, test } from "vitest";

import { StackChild } from "./stack-child.ts";

test("a line without an end is logged up to its limit, and the lines after it as they are", async () => {
  const lines: string[] = [];
  const program = 'process.stdout.write("first\\r\\n" + "x".repeat(20_000_000) + "\\nlast")';
  const child = new StackChild({
    component: "runner",
    argv: [process.execPath, "-e", program],
    cwd: process.cwd(),
    env: {},
    marker: "lines",
    log: (line) => void lines.push(line),
    onReport: () => {},
  });
  await child.ended;
  await expect.poll(() => lines.at(-1)).toBe("last");
  expect(lines.map((line) => line.length < 70_000)).toEqual([true, true, true]);
  expect(lines[0]).toBe("first");
  expect(lines[1]).toContain("longer than 65536 characters");
});
