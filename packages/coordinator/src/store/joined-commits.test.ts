import type { AgentStorage, Change, ChangeResult } from "@holdfast/core";
import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { joinCommits } from "./joined-commits.ts";

const release = (sessionId: string): Change => ({ type: "release_claim", sessionId, token: 1 });

/** A storage that answers each change with its session's name. */
function open(refused = "") {
  const groups: string[][] = [];
  const storage = {
    async commit(changes: readonly Change[]) {
      const ids = changes.map((change) => ("sessionId" in change ? change.sessionId : ""));
      groups.push(ids);
      if (ids.includes(refused)) throw new Error(`no ${refused}`);
      return ids.map((reason): ChangeResult => ({ status: "invalid", reason }));
    },
  } as unknown as AgentStorage;
  const clock = new TestClock();
  const immediate = (callback: () => void): void => void setImmediate(callback);
  return { groups, commit: joinCommits({ storage, clock, immediate }) };
}

test("joined-commits-1: commits of one turn are one transaction in their order, and each gets its own results", async () => {
  const { groups, commit } = open();
  const asked = [["a", "b"], [], ["c"]].map((ids) => commit(ids.map(release)));
  expect(groups).toEqual([]);
  const results = await Promise.all(asked);
  expect(groups).toEqual([["a", "b", "c"]]);
  expect(results.map((each) => each.map((result) => "reason" in result && result.reason))).toEqual([
    ["a", "b"],
    [],
    ["c"],
  ]);
  await commit([release("d")]);
  expect(groups).toEqual([["a", "b", "c"], ["d"]]);
});

test("joined-commits-2: a transaction with an unknown result rejects the commits in it, and no others", async () => {
  const { commit } = open("b");
  const together = Promise.allSettled(["a", "b"].map((id) => commit([release(id)])));
  await turns(1);
  const later = commit([release("c")]);
  expect((await together).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await later).toHaveLength(1);
});
