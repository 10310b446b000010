import {
  defined,
  HoldfastError,
  UnavailableError,
  type AgentStorage,
  type Change,
  type ChangeResult,
} from "@holdfast/core";
import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { GroupCommitter } from "./group-committer.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";

const release = (sessionId: string): Change => ({ type: "release_claim", sessionId, token: 1 });

describe("a group", () => {
  test("a group has all changes of one turn of the loop, and changes during its flight form the next", async () => {
    const { committer, groups, answer } = scripted();
    const order: string[] = [];
    const submit = (name: string) =>
      committer.submit({
        change: release(name),
        onResult: () => order.push(name),
        onError: () => order.push(`${name}!`),
      });
    for (const name of ["a", "b", "c"]) submit(name);
    expect(groups).toEqual([]);
    await turns(1);
    expect(groups).toEqual([["a", "b", "c"]]);
    for (const name of ["d", "e"]) submit(name);
    committer.flush();
    await turns(5);
    expect(groups).toHaveLength(1); // group-committer-2.
    answer();
    await turns(1);
    expect(groups).toEqual([
      ["a", "b", "c"],
      ["d", "e"],
    ]);
    expect(order).toEqual(["a", "b", "c"]);
    answer();
    await committer.idle();
    expect(order).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("a refused change of a group does not affect the others", async () => {
    const storage = new MemoryStorage();
    const committer = new GroupCommitter(storage, new TestClock());
    const create = (sessionId: string): Change => ({
      type: "create_session",
      sessionId,
      agent: { name: "a", version: "1" },
      input: undefined,
      seed: 1,
      flags: 0,
      format: 1,
    });
    const results = await Promise.all(
      [create("x"), create("x"), release("nobody"), create("y")].map((change) => committer.commit(change)),
    );
    expect(results.map(({ status }) => status)).toEqual(["created", "exists", "not_found", "created"]);
  });

  test("a group with an unknown result is sent again unchanged, and later groups wait for it", async () => {
    const { committer, clock, groups, answer, fail } = scripted();
    const done = Promise.all([committer.commit(release("a")), committer.commit(release("b"))]);
    await turns(1);
    fail(new UnavailableError("storage_unavailable", "busy"));
    await turns(1);
    const later = committer.commit(release("c"));
    await clock.advance(5);
    expect(groups).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
    fail(new UnavailableError("storage_unavailable", "busy"));
    await clock.advance(9);
    expect(groups).toHaveLength(2);
    await clock.advance(1);
    expect(groups).toHaveLength(3);
    answer();
    expect((await done).map(({ status }) => status)).toEqual(["released", "released"]);
    answer();
    await later;
    expect(groups[3]).toEqual(["c"]);
  });

  test("every change of a group that storage refuses gets the error, and the next group is sent", async () => {
    for (const code of ["storage_full", "storage_readonly", "corrupt_record"] as const) {
      const { committer, answer, fail } = scripted();
      const refused = Promise.allSettled([committer.commit(release("a")), committer.commit(release("b"))]);
      await turns(1);
      fail(new HoldfastError(code, "no"));
      expect((await refused).map((each) => (each as PromiseRejectedResult).reason.code)).toEqual([
        code,
        code,
      ]);
      const next = committer.commit(release("c"));
      await turns(1);
      answer();
      expect((await next).status).toBe("released");
    }
  });

  test("a group is given up after the last retry delay", async () => {
    const clock = new TestClock();
    let calls = 0;
    const storage = {
      commit: () => (calls++, Promise.reject(new UnavailableError("storage_unavailable", "gone"))),
    } as unknown as AgentStorage;
    const committer = new GroupCommitter(storage, clock);
    const outcome = committer.commit(release("a")).catch((error: HoldfastError) => error.code);
    await turns(1);
    await clock.advance(120_000);
    expect(await outcome).toBe("storage_unavailable");
    expect(calls).toBe(15);
    expect(clock.armed).toBe(0);
  });

  test.each([
    ["is away", () => Promise.reject(new UnavailableError("storage_unavailable", "gone"))],
    ["does not answer", () => new Promise<never>(() => {})],
  ])("a group in a hurry is given up soon where storage %s, and so are later groups", async (_, commit) => {
    const clock = new TestClock();
    const given: string[] = [];
    const storage = {
      commit: (changes: readonly { readonly sessionId: string }[]) => {
        given.push(...changes.map(({ sessionId }) => sessionId));
        return commit();
      },
    };
    const committer = new GroupCommitter(storage as unknown as AgentStorage, clock);
    const codes: string[] = [];
    const submit = (sessionId: string): void =>
      void committer.commit(release(sessionId)).catch(({ code }: HoldfastError) => codes.push(code));
    submit("before");
    await turns(1);
    committer.hurry();
    submit("after");
    let isIdle = false;
    void committer.idle().then(() => (isIdle = true));
    await clock.advance(3_999);
    expect([codes, isIdle]).toEqual([[], false]);
    await clock.advance(1);
    expect([codes, isIdle]).toEqual([["storage_unavailable", "storage_unavailable"], true]);
    expect(clock.armed).toBe(0);
    expect(given, "what was not given to it yet is not done later").not.toContain("after");
  });

  test("changes without an answer get an error when storage answers too few", async () => {
    const storage = { commit: async () => [{ status: "released" }] } as unknown as AgentStorage;
    const committer = new GroupCommitter(storage, new TestClock());
    const [first, second] = await Promise.allSettled([
      committer.commit(release("a")),
      committer.commit(release("b")),
    ]);
    expect(first.status).toBe("fulfilled");
    expect(second).toMatchObject({ status: "rejected", reason: { code: "internal" } });
  });
});

describe("a storage that takes several groups at once", () => {
  test("groups without common names are sent at once, and each session's changes stay in order", async () => {
    const { committer, groups, answer } = scripted(2);
    const order: string[] = [];
    const submit = (name: string) =>
      committer.submit({
        change: release(name),
        onResult: () => order.push(name),
        onError: () => order.push(`${name}!`),
      });
    for (const name of ["a", "b"]) submit(name);
    await turns(1);
    for (const name of ["a", "c"]) submit(name);
    await turns(1);
    submit("d");
    await turns(5);
    // The second "a" waits for the first one, and no group is free for "d".
    expect(groups).toEqual([["a", "b"], ["c"]]);
    answer(1);
    await turns(1);
    expect(groups[2]).toEqual(["d"]);
    answer(0);
    await turns(1);
    expect(groups[3]).toEqual(["a"]);
    expect(order).toEqual(["c", "a", "b"]);
    answer(2);
    answer(3);
    await committer.idle();
    expect(order).toEqual(["c", "a", "b", "d", "a"]);
  });

  test("a change waits for an earlier one with a common name, such as a parent or the audit", async () => {
    const { committer, groups, answer } = scripted(4);
    const create = (sessionId: string, parent: string): Change => ({
      type: "create_session",
      sessionId,
      agent: { name: "a", version: "1" },
      input: undefined,
      seed: 1,
      flags: 0,
      format: 1,
      parent: { sessionId: parent, child: 0, onEnd: "cancel" },
    });
    const audited: Change = { type: "audited", audit: { actor: "a", action: "look", object: "it" } };
    for (const change of [create("child", "parent"), audited]) void committer.commit(change);
    await turns(1);
    for (const change of [release("parent"), release("child"), audited, release("other")])
      void committer.commit(change);
    await turns(1);
    expect(groups).toEqual([["child", "audited"], ["other"]]);
    answer(0);
    await turns(1);
    expect(groups[2]).toEqual(["parent", "child", "audited"]);
  });

  test("the cost of a submission while storage is away does not depend on how many changes wait", async () => {
    const waiting = 300;
    const { committer, clock, groups, answer, fail } = scripted(4);
    let looks = 0;
    const counted = (): Change => {
      const change = { type: "release_claim", token: 1 };
      const sessionId = { enumerable: true, get: () => (looks++, "a") };
      return Object.defineProperty(change, "sessionId", sessionId) as unknown as Change;
    };
    void committer.commit(release("a"));
    await turns(1);
    for (let n = 0; n < waiting; n++) {
      void committer.commit(counted());
      await turns(1); // Each would be sent now, if it were alone.
      if (n % 100 > 0) continue;
      fail(new UnavailableError("storage_unavailable", "away"));
      await clock.advance(1_000);
    }
    expect(looks).toBe(waiting);
    answer();
    await turns(1);
    expect(groups.at(-1)).toEqual(Array.from({ length: waiting }, () => "a"));
  });
});

test("`idle` resolves at once with nothing to do", async () => {
  await new GroupCommitter(new MemoryStorage(), new TestClock()).idle();
});

/** A storage that answers when told to: the newest group, or the one of this number. */
function scripted(groupsMax?: number) {
  const clock = new TestClock();
  const groups: string[][] = [];
  const asked: PromiseWithResolvers<readonly ChangeResult[]>[] = [];
  const storage = {
    ...defined({ groupsMax }),
    commit(changes: readonly Change[]) {
      groups.push(changes.map((change) => ("sessionId" in change ? change.sessionId : change.type)));
      asked.push(Promise.withResolvers());
      return asked.at(-1)!.promise;
    },
  } as unknown as AgentStorage;
  return {
    committer: new GroupCommitter(storage, clock),
    clock,
    groups,
    answer: (n = groups.length - 1) => asked[n]!.resolve(groups[n]!.map(() => ({ status: "released" }))),
    fail: (error: Error) => asked.at(-1)!.reject(error),
  };
}
