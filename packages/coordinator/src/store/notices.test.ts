// News of sessions, from storages that tell of what changes and from one that does not.

import type { AgentStorage, Change } from "@holdfast/core";
import { SteadyClock } from "@holdfast/core/internal";
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

describe("V4: who waits for news", () => {
  test("of a storage that tells has it at once, whoever committed it, and looks at nothing by the clock", async () => {
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

  test("of a storage that does not tell has it when it is committed here, and looks for what others committed", async () => {
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

  test("misses nothing that comes while it looks, and is woken once for all of it", async () => {
    const storage = noticing(inner, new SteadyClock(clock), () => {});
    const gone = new AbortController();
    const news = new News(storage, "ses-1", gone.signal, "news");
    await storage.commit([CREATING], 1);
    await storage.commit([{ type: "pause_session", sessionId: "ses-1" }], 1);
    await news.next();
    const next = news.next();
    gone.abort(); // Its caller has gone: it need not be told more.
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

test("what a storage need not have is passed on when it has it", () => {
  const has = storageWith(inner, { groupsMax: 3, now: () => 7 });
  const storage = noticing(has, new SteadyClock(clock), () => {});
  expect({ ...storage, now: storage.now?.() }).toMatchObject({ groupsMax: 3, now: 7 });
});
