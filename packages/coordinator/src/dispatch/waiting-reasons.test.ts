// Why no runner takes a session, as people are told (`whyNotTaken`, `unmetBy`).

import { describe, expect, test } from "vitest";
import { unmetBy, whyNotTaken, type Candidate } from "./rules.ts";

const offer = (runnerId: string, more: object = {}) => ({
  runnerId,
  labels: { runner: runnerId },
  agents: new Map([["greeter", new Set<string>()]]),
  ...more,
});
const candidate = (sessionId: string, more: Partial<Candidate> = {}): Candidate => ({
  sessionId,
  agent: "greeter",
  version: "1",
  since: 0,
  ...more,
});

describe("the unmet need of a session", () => {
  const gpu = candidate("s1", { demands: { gpu: "a100", os: "linux" } });

  test("no need is unmet when a registered runner fits, even if it has no free slot", () => {
    expect(unmetBy([offer("r1", { free: 0 })], candidate("s1"))).toBeUndefined();
  });

  test("the unmet agent, user or label is named", () => {
    expect(unmetBy([], gpu)).toBe('no registered runner offers the agent "greeter"');
    expect(unmetBy([offer("r1", { owner: "ada" })], candidate("s1", { owner: "bob" }))).toContain(
      "another user",
    );
    expect(unmetBy([offer("r1", { labels: { os: "linux" } })], gpu)).toBe(
      "no registered runner has gpu=a100",
    );
    const apart = [offer("r1", { labels: { os: "linux" } }), offer("r2", { labels: { gpu: "a100" } })];
    expect(unmetBy(apart, gpu)).toBe("no registered runner has all of gpu=a100, os=linux");
  });
});

describe("rules-6: why a session waits beside a suspect", () => {
  const runner = { ...offer("r1"), isFull: false, isDraining: false, isSilent: false, quietMs: 0 };

  test("a suspect is reported to wait for a process that holds nothing else, with its losses", () => {
    const text =
      "it was lost with its runner 3 times in a row, and waits for a process that holds nothing else";
    expect(whyNotTaken([runner], candidate("s1"), 3)).toBe(text);
  });

  test("the session that a runner tries is named to the others", () => {
    const keptFor = { sessionId: "s9", losses: 4, isTried: true };
    const kept = { ...runner, keptFor };
    const text = "the runner tries session s9 alone, which was lost with its runner 4 times in a row";
    expect(whyNotTaken([kept], candidate("s1"))).toBe(text);
    expect(whyNotTaken([{ ...kept, keptFor: { ...keptFor, isTried: false } }], candidate("s1"))).toContain(
      "is about to try session s9",
    );
    expect(whyNotTaken([kept, runner], candidate("s1"))).toContain("has a free slot");
    expect(whyNotTaken([kept, { ...runner, isFull: true }], candidate("s1"))).toBe(text);
  });

  test("a runner for trials is none for other sessions", () => {
    const text = whyNotTaken([{ ...runner, isForTrials: true }], candidate("s1"));
    expect(text).toContain("no registered runner offers the agent");
  });
});
