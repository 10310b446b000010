// Inbox: how often it asks storage for the arrivals of a session.

import type { Arrivals, Clock } from "@holdfast/core";
import { expect, test } from "vitest";
import { Inbox } from "./inbox.ts";
import type { Timers } from "../loop/timers.ts";

/** An inbox whose storage answers on demand, and the positions that it asked for. */
function looking(seen: number) {
  const asked: number[] = [];
  const answers: ((inbox: number) => Promise<void>)[] = [];
  const inbox = new Inbox(
    {
      timers: { after: () => undefined } as unknown as Timers,
      clock: {} as Clock,
      arrivals: (after) => {
        asked.push(after);
        const { promise, resolve } = Promise.withResolvers<Arrivals>();
        answers.push(async (at) => {
          resolve({ inbox: at, signals: [], session: { status: "waiting" } });
          await promise;
        });
        return promise;
      },
      isOver: () => false,
      receive: () => undefined,
      fail: (error) => {
        throw error;
      },
    },
    seen,
  );
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
