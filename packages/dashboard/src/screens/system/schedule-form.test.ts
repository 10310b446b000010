import { expect, test } from "vitest";
import type { Schedule } from "../../api/types.ts";
import { requestOf } from "./schedule-form.tsx";

const filled = { name: "nightly", cron: " 0 3 * * * ", timeZone: "UTC", agent: "talker", input: "" };

test("a new schedule starts its agent, with an input where one is written", () => {
  expect(requestOf(filled, undefined)).toEqual({
    cron: "0 3 * * *",
    timeZone: "UTC",
    start: { agent: "talker" },
  });
  expect(requestOf({ ...filled, input: '{"a":1}' }, undefined)).toMatchObject({ start: { input: { a: 1 } } });
  expect(requestOf({ ...filled, input: "the report" }, undefined)).toMatchObject({
    start: { input: "the report" },
  });
});

test("a changed schedule keeps what the form does not show", () => {
  const start = { agent: "talker", agentVersion: "3", demands: { gpu: "a100" }, priority: 2, input: "old" };
  const schedule = { scheduleId: "nightly", cron: "1 1 * * *", timeZone: "UTC", start } as Schedule;
  expect(requestOf({ ...filled, input: '"new"' }, schedule)).toEqual({
    cron: "0 3 * * *",
    timeZone: "UTC",
    start: { ...start, input: "new" },
  });
  const signal = { sessionId: "s1", name: "go", payload: 1 };
  expect(requestOf(filled, { ...schedule, signal })).toMatchObject({
    signal: { sessionId: "s1", name: "go" },
  });
});
