import { describe, expect, test } from "vitest";
import { readTypedLine } from "./typed-answer.ts";

const QUESTION = { type: "input", id: 7, name: "answer:7", prompt: "Deploy?" } as const;

describe("a line typed while a question is open", () => {
  test.each([
    ["y", { approved: true }],
    ["YES", { approved: true }],
    [" n ", { approved: false }],
    ["n, not on a Friday", { approved: false, reason: "not on a Friday" }],
    ["yes but carefully", { approved: true, reason: "but carefully" }],
    ["42", 42],
    ['"blue"', "blue"],
    ["null", null],
    ['{"approved": true}', { approved: true }],
    ['{"name": "Ada"}', { name: "Ada" }],
  ])("%s answers it", (line, payload) => {
    expect(readTypedLine(line, QUESTION)).toEqual({ type: "signal", signal: { name: "answer:7", payload } });
  });

  test.each(["maybe", "nothing", "yellow", "{oops", "[1,"])("%s is no answer, and is refused", (line) => {
    expect(readTypedLine(line, QUESTION)).toMatchObject({
      type: "refused",
      reason: expect.stringContaining("y or n"),
    });
  });

  test("a signal with a payload is a signal all the same", () => {
    const line = '{"name": "stop", "payload": 1}';
    expect(readTypedLine(line, QUESTION)).toEqual({ type: "signal", signal: { name: "stop", payload: 1 } });
  });

  test("an empty line is nothing: somebody leans on Enter", () => {
    expect(readTypedLine("", QUESTION)).toEqual({ type: "nothing" });
  });
});

describe("a question that says what it takes", () => {
  test.each(["blue", '"blue"', "42", '{"approved": "yes"}', '{"approved": true, "colour": "blue"}'])(
    "for yes or no, %s is refused",
    (line) => {
      expect(readTypedLine(line, { ...QUESTION, answer: "approval" }).type).toBe("refused");
    },
  );

  test("for anything, y is no approval", () => {
    const question = { ...QUESTION, answer: "any" } as const;
    expect(readTypedLine("y", question).type).toBe("refused");
    expect(readTypedLine('"y"', question)).toMatchObject({ signal: { payload: "y" } });
  });
});

describe("a line typed without an open question", () => {
  test("a line without an open question is a signal, also when it could be an answer", () => {
    expect(readTypedLine("y", undefined)).toEqual({
      type: "signal",
      signal: { name: "input", payload: "y" },
    });
  });

  // An answer goes to the question it was meant for, never to one that was not asked yet.
  test.each(['{"name": "answer:7", "payload": 1}', '{"name": "  "}'])(
    "%s has a name that nobody may use",
    (line) => {
      expect(readTypedLine(line, undefined)).toMatchObject({ type: "refused" });
      expect(readTypedLine(line, QUESTION).type).not.toBe("nothing");
    },
  );
});
