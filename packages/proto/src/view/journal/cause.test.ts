import { expect, test } from "vitest";
import { viewCause } from "./cause.ts";

test("the innermost error is the cause, with the nearest code and advice around it", () => {
  const cause = { name: "Error", message: "connect ECONNREFUSED", code: "ECONNREFUSED" };
  const middle = { name: "DeployError", message: "could not deploy", fix: "start the database", cause };
  const error = {
    name: "TaskFailedError",
    message: "task failed",
    code: "task_failed",
    fix: "look",
    cause: middle,
  };
  expect(viewCause(error)).toEqual({
    words: "connect ECONNREFUSED",
    code: "ECONNREFUSED",
    advice: "start the database",
    around: ["task failed", "DeployError: could not deploy"],
  });
});

test("an error without a cause is its own, and a chain that goes round ends", () => {
  expect(viewCause({ name: "TypeError", message: "x is not a function" })).toEqual({
    words: "TypeError: x is not a function",
    around: [],
  });
  const round: { name: string; message: string; cause?: object } = { name: "Error", message: "again" };
  round.cause = round;
  expect(viewCause(round as never).around.length).toBeLessThan(50);
});
