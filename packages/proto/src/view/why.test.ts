import { expect, test } from "vitest";
import { inLiveOrder, whyText, type PlainSession } from "./why.ts";

const CONTEXT = { isElsewhere: false, when: (at: number) => `at ${at}` };
const of = (session: Partial<PlainSession>): PlainSession => ({
  sessionId: "s",
  status: "waiting",
  waits: [],
  ...session,
});

test("a session that waits says for what and until when", () => {
  const waits = [
    { type: "timer", id: 1, at: 7 },
    { type: "input", id: 2, prompt: "Allow?", until: 9 },
  ];
  expect(whyText(of({ waits }), CONTEXT)).toBe("waits for a timer, due at 7; Allow?, until at 9");
});

test("a session that no process runs says how to resume it, and one at a coordinator does not", () => {
  const session = of({ status: "working", progress: "half" });
  expect(whyText(session, { ...CONTEXT, isDriven: false })).toBe("no process runs it: holdfast resume s");
  expect(whyText(session, CONTEXT)).toBe("half");
});

test("a pause that a task caused says what the task said", () => {
  const error = { message: "the usage limit is reached" };
  expect(whyText(of({ status: "paused", pauseReason: "quota", error }), CONTEXT)).toBe(error.message);
  expect(whyText(of({ status: "paused", pauseReason: "by_user" }), CONTEXT)).toBe("somebody paused it");
});

test("a pause after too many orderly stops names the grace, and blames no code", () => {
  const error = {
    message: "its task was cut off 10 times, because the grace was over first",
    code: "session_paused",
  };
  expect(whyText(of({ status: "paused", pauseReason: "agent_fault", error }), CONTEXT)).toBe(error.message);
  const fault = { message: "x", code: "agent_fault" };
  expect(whyText(of({ status: "paused", pauseReason: "agent_fault", error: fault }), CONTEXT)).toBe(
    "its agent made a mistake: correct the code",
  );
});

test("sessions that need a person stand first, and then the ones that changed last", () => {
  const rows = [
    { status: "waiting", updatedAt: 9 },
    { status: "working", updatedAt: 1 },
    { status: "working", updatedAt: 2 },
    { status: "input_required", updatedAt: 0 },
  ] as const;
  expect(inLiveOrder(rows).map(({ updatedAt }) => updatedAt)).toEqual([0, 2, 1, 9]);
});
