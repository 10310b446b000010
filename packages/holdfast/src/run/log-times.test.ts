import { expect, test } from "vitest";
import type { Io } from "@holdfast/terminal/frame/command";
import { withLogTimes } from "./log-times.ts";

const AT = "2026-11-30T03:00:00.000Z";

function logOf(hasTimes: boolean): { readonly io: Io; readonly lines: unknown[] } {
  const lines: unknown[] = [];
  const io = {
    notes: { symbols: { warn: "!", failed: "x" } },
    result: (value: unknown) => void lines.push(value),
    note: (line: string) => void lines.push(line),
  } as unknown as Io;
  return { io: withLogTimes(io, hasTimes, () => new Date(AT)), lines };
}

test("a line of JSON has its time and level before what it says", () => {
  const { io, lines } = logOf(false);
  io.result({ type: "listening", url: "u" }, "");
  io.result({ type: "warning", message: "m" }, "");
  expect(lines).toEqual([
    { at: AT, level: "info", type: "listening", url: "u" },
    { at: AT, level: "warn", type: "warning", message: "m" },
  ]);
});

test("a line of text has them only where they are asked for", () => {
  const [asked, other] = [logOf(true), logOf(false)];
  for (const { io } of [asked, other]) {
    io.note("Runner started");
    io.note("\u001b[33m! the coordinator cannot be reached");
  }
  expect(asked.lines).toEqual([
    `${AT} info Runner started`,
    `${AT} warn \u001b[33m! the coordinator cannot be reached`,
  ]);
  expect(other.lines).toEqual(["Runner started", "\u001b[33m! the coordinator cannot be reached"]);
});
