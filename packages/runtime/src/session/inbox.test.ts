// Inbox: how often it asks storage for the arrivals of a session.

import type { Arrivals } from "@holdfast/core";
import { expect, test } from "vitest";
import { Inbox, type InboxSession } from "./inbox.ts";
import type { Timers } from "../loop/timers.ts";

/** An inbox whose storage answers on demand, and the positions that it asked for. */
function looking(seen: number) {
  const asked: number[] = [];
  const answers: ((inbox: number) => Promise<void>)[] = [];
  const world = {
    timers: { after: () => undefined } as unknown as Timers,
    arrivals: (_sessionId: string, after: number) => {
      asked.push(after);
      const { promise, resolve } = Promise.withResolvers<Arrivals>();
      answers.push(async (at) => {
        resolve({ inbox: at, signals: [], session: { status: "waiting" } });
        await promise;
      });
      return promise;
    },
  };
  const session: InboxSession = {
    sessionId: "s",
    isOver: false,
    receive: () => undefined,
    abandon: (error) => {
      throw error;
    },
  };
  const inbox = new Inbox(world, session, seen);
  return { inbox, asked, answer: (at: number) => answers.shift()!(at) };
}

test("an inbox does not fetch again for a position that was seen or is being fetched", async () => {
  const { inbox, asked, answer } = looking(3);
  inbox.look(3);
  expect(asked).toEqual([]);
  inbox.look();
  inbox.look(4);
  await answer(4);
  expect(asked).toEqual([3]);
  inbox.look(4);
  expect(asked).toEqual([3]);
});

test("an inbox fetches once more for an arrival after the running fetch began", async () => {
  const { inbox, asked, answer } = looking(3);
  inbox.look(4);
  inbox.look(5);
  inbox.look(4);
  await answer(4);
  expect(asked).toEqual([3, 4]);
  inbox.look();
  inbox.look();
  await answer(5);
  expect(asked).toEqual([3, 4, 5]);
  await answer(5);
  expect(asked).toEqual([3, 4, 5]);
});
