import { expect, test } from "vitest";
import { pauseText, signalText, waitText } from "./wait.ts";

test.each([
  ["child:ended", "callbacks of its children"],
  ["child-end:3", "the end of child ses_1-3"],
  ["child:3", "word of child ses_1-3"],
  ["request:3", "a request of child ses_1-3"],
  ["reply:3", "a reply of its parent"],
  ["child:three", 'signal "child:three"'],
  ["external_agent.report", "events of its external agent"],
  ["go", 'signal "go"'],
])("the signal %s is %s", (name, text) => {
  expect(signalText(name, "ses_1")).toBe(text);
});

test("a wait completes the words `waits for`", () => {
  expect(waitText({ type: "timer", id: 1, at: 5 }, "s")).toBe("a timer");
  expect(waitText({ type: "input", id: 4, prompt: "Go?" }, "s")).toBe("an answer to question 4: Go?");
  expect(waitText({ type: "signal", id: 4, name: "go" }, "s")).toBe('signal "go"');
});

test("a pause says where the code must be corrected, and whether the drift may be accepted", () => {
  expect(pauseText("nondeterminism", false, false)).toContain("correct the code");
  expect(pauseText("nondeterminism", true, true)).toMatch(/start its runners with it, or accept the drift$/);
  expect(pauseText("poison", true, false)).toContain("crashed its runner");
});
