// The loop alone, against a coordinator that answers, is silent, or goes away.

import { HoldfastError, UnavailableError } from "@holdfast/core";
import { countingRandom, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { PollLoop, type Poll } from "./poll-loop.ts";

describe("a poll loop", () => {
  test("the next poll acknowledges the last answer and its commands", async () => {
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

  test("a poll whose answer was lost is sent again under its id until it is answered", async () => {
    const stand = open();
    stand.loop.start();
    for (let i = 0; i < 50; i++) await stand.fail(away());
    expect(new Set(stand.polls.map(({ pollId }) => pollId))).toEqual(new Set(["p1"]));
    expect(stand.reported).toEqual(["lost"]);
    await stand.answer({});
    expect(stand.reported).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("a poll that asked for nothing is replaced when a slot is free, and its answer is not acknowledged", async () => {
    const stand = open();
    stand.free = 0;
    stand.loop.start();
    await turns(5);
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls).toHaveLength(1); // No slot is free yet.
    stand.free = 2;
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls[1]).toMatchObject({ pollId: "p2", ackPollId: undefined, free: 2 });
    stand.loop.slotFreed();
    await turns(5);
    expect(stand.polls).toHaveLength(2); // The poll under way asks for sessions already.
    await stand.loop.stop();
  });

  test("a poll that offered slots is replaced when the runner takes no more, also during a pause", async () => {
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

  test("a poll that asked for nothing is replaced when a slot becomes free during a pause", async () => {
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
    expect(stand.reported).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("the answer to a poll that was replaced is ignored", async () => {
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

  test("the loop registers again when the coordinator no longer knows the runner, and continues", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("runner_not_found", "who?"));
    expect(stand.reported).toEqual(["registered"]);
    await stand.answer({});
    expect(stand.taken).toHaveLength(1);
    await stand.loop.stop();
  });

  test("the loop pauses when the coordinator registers the runner and still does not know it", async () => {
    const stand = open();
    stand.loop.start();
    for (let i = 0; i < 3; i++) {
      await turns(5);
      stand.reject(new HoldfastError("runner_not_found", "who?"));
    }
    await turns(5);
    expect({ reported: stand.reported, polls: stand.polls.length }).toEqual({
      reported: ["registered", "registered"],
      polls: 2,
    });
    await stand.clock.advance(10_000);
    expect(stand.polls).toHaveLength(3);
    await stand.loop.stop();
  });

  test("the loop ends when it is refused, and reports that once", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("token_revoked", "no"));
    await turns(10);
    expect(stand.reported).toEqual(["refused token_revoked"]);
    expect(stand.polls).toHaveLength(1);
    await stand.loop.stop();
  });

  test("the loop waits when the coordinator refuses the host name that a proxy uses", async () => {
    const stand = open();
    stand.loop.start();
    await stand.fail(new HoldfastError("forbidden_origin", "this host is not one of ours"));
    expect(stand.reported).toEqual(["lost"]);
    await stand.answer({});
    expect(stand.reported).toEqual(["lost", "back"]);
    await stand.loop.stop();
  });

  test("the loop stops during a poll and during a pause", async () => {
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
    reported: [] as string[],
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
    register: async () => void stand.reported.push("registered"),
    lost: () => stand.reported.push("lost"),
    back: () => stand.reported.push("back"),
    refused: ({ code }) => stand.reported.push(`refused ${code}`),
  });
  return stand;
}
