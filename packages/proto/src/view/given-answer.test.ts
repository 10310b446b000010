import { expect, test } from "vitest";
import { givenAnswerText } from "./given-answer.ts";

test.each([
  [{ approved: true }, "allowed"],
  [{ approved: false, reason: "not today" }, "refused: not today"],
  [{ approved: true, remember: { scope: "session" } }, "allowed, and this call in this session"],
  [
    { approved: true, remember: { scope: "project", pattern: "git diff:*" } },
    "allowed, and calls like git diff:* in this project",
  ],
  [{ approved: true, input: { command: "ls" } }, 'allowed, with another input: {"command":"ls"}'],
  ["Postgres", "Postgres"],
  [{ Database: "Postgres" }, '{"Database":"Postgres"}'],
  [{ approved: true, by: "me" }, '{"approved":true,"by":"me"}'],
  [undefined, ""],
])("the answer %j is %s", (answer, text) => {
  expect(givenAnswerText(answer)).toBe(text);
});
