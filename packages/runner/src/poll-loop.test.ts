// The loop alone, against a coordinator that answers, is silent, or goes away.

import { HoldfastError, UnavailableError } from "@holdfast/core";
import { countingRandom, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { PollLoop, type Poll } from "./poll-loop.ts";

describe("a poll loop", () => {
  test("acknowledges the answer before, and the commands in it, with the next poll", async () => {
    const stand = open();
    stand.loop.start();
    await stand.answer({ commands: ["c1"] });
    await stand.answer({});
    expect(
      stand.polls.map(({ pollId, ackPollId, ackCommandIds }) => ({ pollId, ackPollId, ackCommandIds })),
    ).toEqual([
      { pollId: "p1", ackPollId: undefined, ackCommandIds: [] },
      { pollId: "p2", ackPollId: "p1", ackCommandIds: ["c1"] },
      { pollId: "p3", ackPollId: "p2", ackCommandIds: [] },
    ]);
    await stand.loop.stop();
  });

  test("sends a poll whose answer was lost again under its id, for as long as it takes", async () => {
    const stand = open();
    stand.loop.start();
    for (let i = 0; i < 50; i++) await stand.fail(away());
    expect(new Set(stand.polls.map(({ pollId }) => pollId))).toEqual(new Set(["p1"]));
    expect(stand.told).toEqual(["lost"]);
    await stand.answer({});
    expect(stand.told).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("leaves a poll that asked for nothing when a slot is free, and does not acknowledge what it never heard", async () => {
    const stand = open();
    stand.free = 0;
    stand.loop.start();
    await turns(5);
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls).toHaveLength(1); // There is none yet.
    stand.free = 2;
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls[1]).toMatchObject({ pollId: "p2", ackPollId: undefined, free: 2 });
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls).toHaveLength(2); // It asks for some already.
    await stand.loop.stop();
  });

  test("leaves a poll that offered slots when the runner takes no more, also while it pauses", async () => {
    for (const pauses of [false, true]) {
      const stand = open();
      stand.free = 2;
      stand.loop.start();
      await turns(5);
      if (pauses) stand.reject(away());
      await turns(5);
      stand.free = 0;
      stand.loop.withdraw();
      await stand.clock.advance(10_000);
      expect(stand.polls.slice(1)).toMatchObject([{ pollId: "p2", ackPollId: undefined, free: 0 }]);
      await stand.loop.stop();
    }
  });

  test("leaves a poll that asked for nothing when a slot becomes free while it pauses", async () => {
    const stand = open();
    stand.free = 0;
    stand.loop.start();
    await turns(5);
    stand.reject(away());
    await turns(5);
    stand.free = 1;
    stand.loop.slotFreed();
    await stand.clock.advance(10_000);
    expect(stand.polls.slice(1)).toMatchObject([{ pollId: "p2", ackPollId: undefined, free: 1 }]);
    await stand.answer({});
    expect(stand.told).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("takes nothing of an answer that came to a poll it had left", async () => {
    const stand = open();
    stand.free = 0;
    stand.heedsAbort = false;
    stand.loop.start();
    await turns(5);
    stand.free = 1;
    stand.loop.slotFreed();
    await stand.answer({ commands: ["c1"] });
    expect(stand.taken).toEqual([]);
    expect(stand.polls[1]).toMatchObject({ pollId: "p2", ackPollId: undefined, ackCommandIds: [] });
    stand.heedsAbort = true;
    await stand.loop.stop();
  });

  test("registers again when it is not known any more, and goes on", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("runner_not_found", "who?"));
    expect(stand.told).toEqual(["registered"]);
    await stand.answer({});
    expect(stand.taken).toHaveLength(1);
    await stand.loop.stop();
  });

  test("does not ask without end a coordinator that takes it in and does not know it all the same", async () => {
    const stand = open();
    stand.loop.start();
    for (let i = 0; i < 3; i++) {
      await turns(5);
      stand.reject(new HoldfastError("runner_not_found", "who?"));
    }
    await turns(5);
    expect({ told: stand.told, polls: stand.polls.length }).toEqual({
      told: ["registered", "registered"],
      polls: 2,
    });
    await stand.clock.advance(10_000);
    expect(stand.polls).toHaveLength(3);
    await stand.loop.stop();
  });

  test("ends when it is refused, and says so once", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("token_revoked", "no"));
    await turns(10);
    expect(stand.told).toEqual(["refused token_revoked"]);
    expect(stand.polls).toHaveLength(1);
    await stand.loop.stop();
  });

  test("waits when it is refused for the name that a proxy calls the coordinator by", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("forbidden_origin", "this host is not one of ours"));
    expect(stand.told).toEqual(["lost"]);
    await stand.answer({});
    expect(stand.told).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("stops while it waits, and while it pauses", async () => {
    const waiting = open();
    waiting.loop.start();
    await turns(5);
    await waiting.loop.stop();
    const pausing = open();
    pausing.loop.start();
    await turns(5);
    pausing.reject(away());
    await turns(5);
    await pausing.loop.stop();
    expect(pausing.clock.armed).toBe(0);
  });
});

interface Answer {
  readonly commands?: readonly string[];
}

function away(): UnavailableError {
  return new UnavailableError("storage_unavailable", "away");
}

function open() {
  const clock = new TestClock();
  let ids = 0;
  let underWay: PromiseWithResolvers<Answer> = Promise.withResolvers();
  const stand = {
    clock,
    free: 3,
    heedsAbort: true,
    polls: [] as Poll[],
    taken: [] as Answer[],
    told: [] as string[],
    reject: (error: HoldfastError) => underWay.reject(error),
    async answer(answer: Answer) {
      await turns(5);
      underWay.resolve(answer);
      await turns(5);
    },
    /** Fails, and lets the pause after it pass. */
    async fail(error: HoldfastError) {
      await turns(5);
      underWay.reject(error);
      await turns(5);
      await clock.advance(10_000);
    },
    loop: undefined as unknown as PollLoop<Answer>,
  };
  stand.loop = new PollLoop<Answer>({
    clock,
    random: countingRandom(),
    newId: () => `p${++ids}`,
    free: () => stand.free,
    poll: (poll, signal) => {
      stand.polls.push(poll);
      underWay = Promise.withResolvers();
      const { reject } = underWay;
      signal.addEventListener("abort", () => {
        if (stand.heedsAbort) reject(away());
      });
      return underWay.promise;
    },
    take: (answer) => {
      stand.taken.push(answer);
      return answer.commands ?? [];
    },
    register: async () => void stand.told.push("registered"),
    lost: () => stand.told.push("lost"),
    back: () => stand.told.push("back"),
    refused: ({ code }) => stand.told.push(`refused ${code}`),
  });
  return stand;
}
