// News of sessions, from storages that tell of what changes and from one that does not.

import { type AgentStorage, type Change, SteadyClock } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { beforeEach, describe, expect, test } from "vitest";
import { News, noticing, type FollowedStorage } from "./notices.ts";

const LOOK_MS = 250;

const CREATING: Change = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};

const SIGNALLING: Change = {
  type: "send_signal",
  sessionId: "ses-1",
  signalId: "sig-1",
  name: "go",
  payload: undefined,
};

let inner: AgentStorage;
let clock: TestClock;
beforeEach(() => {
  inner = new MemoryStorage();
  clock = new TestClock();
});

describe("V4: waits for news of a session", () => {
  test("with a storage that can be followed, a wait gets every commit at once and polls nothing", async () => {
    const storage = noticing(inner, new SteadyClock(clock), () => {});
    const news = follow(storage);
    await clock.advance(10 * LOOK_MS);
    expect(news.count).toBe(0);
    await inner.commit([CREATING], 1);
    await turns(1);
    expect(news.count).toBe(1);
    news.end();
    await storage.commit([{ type: "pause_session", sessionId: "ses-1" }], 1);
    await turns(1);
    expect(news.count).toBe(1);
  });

  test("with a storage that cannot be followed, a wait gets local commits at once and polls for others", async () => {
    const { follow: _follow, ...silent } = storageWith(inner, {});
    const storage = noticing(silent, new SteadyClock(clock), () => {});
    const news = follow(storage);
    await storage.commit([CREATING], 1);
    await turns(1);
    expect(news.count).toBe(1);
    await clock.advance(LOOK_MS);
    await turns(1);
    expect(news.count).toBe(2);
    news.end();
    await clock.advance(LOOK_MS);
    await turns(1);
    expect(news.count).toBe(2);
  });

  test("notices-5: for the end alone has none of what goes on", async () => {
    const storage = noticing(inner, new SteadyClock(clock), () => {});
    await storage.commit([CREATING], 1);
    const news = follow(storage, "end");
    await storage.commit([SIGNALLING], 1);
    await turns(1);
    expect(news.count).toBe(0);
    await storage.commit([{ type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 }], 1);
    await turns(1);
    expect(news.count).toBe(1);
    news.end();
  });

  test("news that comes during a look is not missed, and wakes the wait once", async () => {
    const storage = noticing(inner, new SteadyClock(clock), () => {});
    const gone = new AbortController();
    const news = new News(storage, "ses-1", gone.signal, "news");
    await storage.commit([CREATING], 1);
    await storage.commit([{ type: "pause_session", sessionId: "ses-1" }], 1);
    await news.next();
    const next = news.next();
    gone.abort(); // The caller has gone and needs no more news.
    await next;
    news.end();
  });
});

/** Counts how often it was woken. */
function follow(
  storage: FollowedStorage,
  wants: "news" | "end" = "news",
): { readonly count: number; end(): void } {
  const news = new News(storage, "ses-1", new AbortController().signal, wants);
  let isOver = false;
  const woken = {
    count: 0,
    end(): void {
      isOver = true;
      news.end();
    },
  };
  void (async () => {
    for (;;) {
      await news.next();
      if (isOver) return;
      woken.count++;
    }
  })();
  return woken;
}

test("optional properties of a storage are passed on", () => {
  const has = storageWith(inner, { groupsMax: 3, now: () => 7 });
  const storage = noticing(has, new SteadyClock(clock), () => {});
  expect({ ...storage, now: storage.now?.() }).toMatchObject({ groupsMax: 3, now: 7 });
});
