// The conformance suite proves what adapters make of consequences (ST27). These tests prove which
// consequences there are, and which there are not.

import { describe, expect, test } from "vitest";
import { NO_AMOUNT, openAccount } from "../budget/budget.ts";
import { consequencesOf, isLastEvent, notifyLow } from "./consequences.ts";
import type { Session, SessionStatus } from "../session/session.ts";
import { createSession } from "./creation.ts";

const parent = { sessionId: "ses-parent", child: 4, onEnd: "cancel" } as const;
const creation = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
} as const;
const row = (more: Partial<Session> = {}): Session =>
  Object.freeze({ ...createSession({ ...creation, parent }, 0), status: "working", ...more });
const notified = (before: Session, after: Session) =>
  consequencesOf(before, after, 10).flatMap((one) =>
    one.type === "send_signal" ? [[one.sessionId, one.name, JSON.parse(one.payload ?? "null")]] : [],
  );
const cancelled = (before: Session, after: Session) =>
  consequencesOf(before, after, 10).filter(({ type }) => type === "cancel_children");

describe("an end", () => {
  const events: readonly [Partial<Session>, unknown][] = [
    [
      { status: "completed", output: "[1]" },
      { type: "completed", output: [1] },
    ],
    [{ status: "completed" }, { type: "completed", output: null }],
    [
      { status: "failed", error: { name: "E", message: "m" }, progress: "1" },
      { type: "failed", error: { name: "E", message: "m" }, progress: 1 },
    ],
    [{ status: "cancelled" }, { type: "cancelled", reason: null }],
    [
      { status: "cancelled", cancel: { mode: "hard", deadlineAt: 1, reason: "no", cause: "parent" } },
      { type: "cancelled", reason: "no", cause: "parent" },
    ],
    [
      { status: "cancelled", cancel: { mode: "hard", deadlineAt: 1, cause: "parent" }, output: "2" },
      { type: "cancelled", reason: "parent", cause: "parent", output: 2 },
    ],
    [
      { status: "cancelled", cancel: { mode: "graceful", deadlineAt: 1, cause: "deadline" }, output: "2" },
      { type: "timed_out", output: 2 },
    ],
  ];
  test.each(events)("consequences-1: %j is reported twice, as the last event", (more, event) => {
    expect(notified(row(), row(more))).toEqual([
      ["ses-parent", "child:4", event],
      ["ses-parent", "child-end:4", event],
    ]);
    expect(isLastEvent(event as never)).toBe(true);
  });

  test("consequences-1: a session that had ended before, or has a successor, reports no end", () => {
    const ended = row({ status: "failed" });
    expect(consequencesOf(ended, { ...ended, updatedAt: 9 }, 10)).toEqual([]);
    expect(notified(row(), row({ status: "completed", handedOffTo: "ses-2" }))).toEqual([]);
  });

  test.each<[Partial<Session>, boolean, string]>([
    [{ status: "completed" }, false, "graceful"],
    [{ status: "cancelled", cancel: { mode: "graceful", deadlineAt: 5 } }, false, "graceful"],
    [{ status: "cancelled", cancel: { mode: "hard", deadlineAt: 5 } }, true, "hard"],
  ])("consequences-2: %j reaches its children, all: %s, %s", (more, all, mode) => {
    expect(cancelled(row(), row(more))).toMatchObject([
      { sessionId: "ses-1", all, request: { mode, cause: "parent" } },
    ]);
  });
});

describe("while it lives", () => {
  test("consequences-2: a graceful cancel reaches all below, once, and ends with it", () => {
    const cancel = { mode: "graceful", deadlineAt: 60 } as const;
    const after = row({ status: "cancelling", cancel });
    expect(consequencesOf(row(), after, 10)).toEqual([
      {
        type: "cancel_children",
        sessionId: "ses-1",
        all: true,
        isEnd: false,
        request: { mode: "graceful", graceMs: 50, cause: "parent" },
      },
    ]);
    expect(consequencesOf(after, { ...after, turn: 2 }, 10)).toEqual([]);
  });

  test("consequences-3: a cancel for a budget is reported before the end that it leads to", () => {
    const exhausted = { payer: "ses-1", limit: "maxTokens", used: 3, max: 5, then: "cancel" } as const;
    const cancel = { mode: "graceful", deadlineAt: 60, cause: "budget_exceeded", exhausted } as const;
    const after = row({ status: "cancelling", cancel });
    expect(notified(row(), after)).toEqual([
      ["ses-parent", "child:4", { type: "budget_exceeded", limit: "maxTokens", used: 3, max: 5 }],
    ]);
    expect(notified(after, { ...after, turn: 2 })).toEqual([]);
    expect(notified(after, { ...after, status: "cancelled" })[0]).toEqual([
      "ses-parent",
      "child:4",
      { type: "cancelled", reason: "budget_exceeded", cause: "budget_exceeded" },
    ]);
  });

  test("consequences-3: a pause is reported, with the limit if the limit is its cause", () => {
    const paused = row({ status: "paused", pauseReason: "poison" });
    expect(notified(row(), paused)).toEqual([
      ["ses-parent", "child:4", { type: "blocked", reason: "poison" }],
    ]);
    expect(notified(paused, { ...paused, turn: 2 })).toEqual([]);
    const exhausted = { payer: "ses-1", limit: "maxTokens", used: 3, max: 5, then: "park" } as const;
    expect(notified(row(), row({ status: "paused", pauseReason: "budget_exceeded", exhausted }))).toEqual([
      ["ses-parent", "child:4", { type: "budget_exceeded", limit: "maxTokens", used: 3, max: 5 }],
    ]);
  });

  test.each<SessionStatus>(["working", "waiting", "input_required"])("%s concerns only itself", (status) => {
    expect(consequencesOf(row({ status: "submitted" }), row({ status }), 10)).toEqual([]);
  });

  test("a session without a parent notifies no session", () => {
    const alone = createSession(creation, 0);
    expect(notified(alone, { ...alone, status: "completed" })).toEqual([]);
    expect(notified(alone, { ...alone, status: "paused", pauseReason: "poison" })).toEqual([]);
  });
});

test("a low budget is reported once, and not by a session that has ended", () => {
  const account = { ...openAccount({ maxTokens: 100 }), spent: { ...NO_AMOUNT, tokens: 95 } };
  expect(notifyLow(row(), account, 0)).toMatchObject([{ sessionId: "ses-parent", name: "child:4" }]);
  expect(notifyLow(row({ status: "completed" }), account, 0)).toEqual([]);
});

test("a cancel of a child reaches the sessions below the child", () => {
  const below = row({ depth: 2, parent });
  const after = row({ depth: 2, parent, status: "cancelling", cancel: { mode: "graceful", deadlineAt: 30 } });
  expect(cancelled(below, after)).toMatchObject([{ all: true, request: { mode: "graceful", graceMs: 20 } }]);
});
