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
  expect(whyText(of({ waits: waits.slice(0, 1) }), CONTEXT)).toBe("waits for a timer, due at 7");
  // A row of a list may have no room for more than the question.
  expect(whyText(of({ waits }), CONTEXT)).toBe("Allow?, until at 9; waits for a timer, due at 7");
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

test.each([
  ["quota", { quota: { pool: "m" } }, "no more: set another key"],
  ["quota", { quota: { pool: "m", resetsAt: 7 } }, "the limit is reset at 7; no more: set another key"],
  [
    "quota",
    { quota: { pool: "m", resetsAt: 7, resumesAt: 8 }, resumesAt: 8 },
    "it continues by itself at 8; no more: set another key",
  ],
  ["auth_required", {}, "no more: set another key"],
  [
    "budget_exceeded",
    {
      resumesAt: 8,
      exhausted: { payer: "s", limit: "maxTokens", per: "hour", used: 90, max: 100, asked: 20 },
    },
    "it continues by itself at 8; its budget has too little left: 90 of 100 tokens spent per hour, and the next call may need 20",
  ],
] as const)(
  "a pause for %s of %j says when it is over, and what ends it sooner",
  (pauseReason, row, text) => {
    const error = { message: "no more.", fix: "set another key" };
    expect(whyText(of({ status: "paused", pauseReason, error, ...row }), CONTEXT)).toBe(text);
  },
);

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
