// Registration of runners: each token is one process's, and a registration makes one runner, however often
// its answer is lost.

import { VERSION } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeRunner, openFleet, Person, pollWaits, type Fleet } from "../testing/fleet.ts";

const LEASE_MS = 15_000;
const [FIRST, SECOND] = ["1".repeat(32), "2".repeat(32)] as const;

let fleet: Fleet;
let clock: TestClock;
beforeEach(async () => {
  clock = new TestClock();
  fleet = await openFleet({ clock, storage: new MemoryStorage() });
});
afterEach(() => fleet.close());

const registration = () => fleet.coordinator.createToken({ kind: "registration", name: "box" });

describe("registering", () => {
  test("the purpose and the input of an agent are in the list of agents", async () => {
    const inputSchema = { type: "object", properties: { repo: { type: "string" } } };
    const answer = await new Person(fleet.url, await registration()).post("/v1/runners/register", {
      protocol: 1,
      hostname: "box",
      maxRuns: 1,
      agents: [
        { name: "reviewer", version: "2", description: "Reviews a repository", inputSchema, tags: ["git"] },
        { name: "silent" },
      ],
    });
    expect(answer.status).toBe(200);
    const user = await fleet.user("ada");
    expect((await user.get("/v1/agents")).body).toEqual({
      agents: [
        {
          name: "reviewer",
          versions: ["2"],
          runners: 1,
          description: "Reviews a repository",
          inputSchema,
          tags: ["git"],
        },
        { name: "silent", versions: [], runners: 1, tags: [] },
      ],
    });
  });

  test("asked again by the same process it is the same runner with the same token, as the answer may have been lost", async () => {
    const token = await registration();
    const answers = await Promise.all(
      [1, 2, 3].map(() => new FakeRunner(fleet.url, { process: FIRST }).register(token)),
    );
    expect(new Set(answers.map(({ body }) => `${body.runnerId} ${body.token}`)).size).toBe(1);
    expect((await fleet.admin.get("/v1/runners")).body.runners).toHaveLength(1);
    const runner = new FakeRunner(fleet.url, { process: FIRST });
    await runner.register(token);
    expect((await runner.poll({ waitMs: 0 })).claims).toEqual([]);
  });

  test.each([
    ["name", { name: "box\u001b[31m" }],
    ["hostname", { hostname: "host\nrnr_forged" }],
    ["labels/zone", { labels: { zone: "eu\u2028us" } }],
  ])("a runner whose %s has a control character is refused", async (pointer, options) => {
    const refused = await new FakeRunner(fleet.url, { process: FIRST, ...options }).register(
      await registration(),
    );
    expect(refused.body).toMatchObject({
      status: 422,
      errors: [{ pointer: `/${pointer}`, message: expect.stringContaining("must match") }],
    });
    expect((await fleet.admin.get("/v1/runners")).body.runners).toHaveLength(0);
  });

  test("a runner of a later minor version is told to upgrade the coordinators first, and its token stays unused", async () => {
    const token = await registration();
    const [major = 0, minor = 0] = VERSION.split(".").map(Number);
    const by = (version: string) => new FakeRunner(fleet.url, { process: FIRST, version }).register(token);
    for (const later of [`${major}.${minor + 1}.0`, `${major}.${minor + 1}.0-rc.1`, `${major + 1}.0.0`])
      expect((await by(later)).body).toMatchObject({
        status: 409,
        code: "unsupported_protocol",
        at: "version",
        detail: `the runner has Holdfast ${later}, and this coordinator ${VERSION}`,
        fix: `upgrade the coordinators first: restart each of them with ${later}, and then start the runner`,
      });
    expect((await fleet.admin.get("/v1/runners")).body.runners).toEqual([]);
    for (const fitting of [`${major}.${minor}.99`, "0.0.9", "of our own"])
      expect((await by(fitting)).status, fitting).toBe(200);
  });

  test("a registration token is no use to another process, and expires", async () => {
    const token = await registration();
    const guessed = await new FakeRunner(fleet.url, { process: "1" }).register(token);
    expect(guessed.body).toMatchObject({ status: 422, at: "process" });
    await new FakeRunner(fleet.url, { process: FIRST }).register(token);
    for (const options of [{ process: SECOND }, {}])
      expect((await new FakeRunner(fleet.url, options).register(token)).body).toMatchObject({
        status: 401,
        code: "token_revoked",
      });
    expect((await fleet.admin.get("/v1/runners")).body.runners).toHaveLength(1);
    await clock.advance(10 * 60_000);
    const late = await new FakeRunner(fleet.url, { process: FIRST }).register(token);
    expect(late.body).toMatchObject({ status: 401, code: "token_revoked" });
  });
});

describe("one runner's token in two processes", () => {
  test("the second is refused while the first polls, with its host and since when", async () => {
    const first = await fleet.runner({ process: FIRST, hostname: "host-1" });
    const since = new Date(clock.now()).toISOString();
    const waiting = first.poll();
    await pollWaits(fleet);
    await clock.advance(LEASE_MS); // It waits for longer than a lease.
    const second = first.at(fleet.url, SECOND);
    const { body } = await second.register(first.person.token);
    expect(body).toMatchObject({ status: 409, code: "duplicate_runner" });
    expect(body.detail).toContain(`on host-1, since ${since}`);
    await expect(second.poll({ waitMs: 0 })).rejects.toThrow("duplicate_runner");

    const sessionId = await fleet.admin.start();
    const [claim] = (await waiting).claims;
    expect(claim!.sessionId).toBe(sessionId);
    expect((await first.complete(claim!)).status).toBe("committed");
    expect((await first.register(first.person.token)).status).toBe(200);
  });

  test("the successor of a killed runner waits for a lease at most, and the first process learns of it when it returns", async () => {
    const first = await fleet.runner({ process: FIRST });
    await fleet.admin.start();
    const [claim] = (await first.poll()).claims;
    await clock.advance(LEASE_MS - 1);
    const second = first.at(fleet.url, SECOND);
    const register = async () => (await second.register(first.person.token)).status;
    expect(await register()).toBe(409);
    await clock.advance(1);
    expect(await register()).toBe(200);
    expect((await second.poll()).claims).toMatchObject([{ sessionId: claim!.sessionId }]);
    await expect(first.poll({ waitMs: 0 })).rejects.toThrow("duplicate_runner");
    expect((await first.complete(claim!)).status).toBe("fenced");
  });

  test("the successor of a runner that left does not wait", async () => {
    const first = await fleet.runner({ process: FIRST });
    await first.poll({ waitMs: 0 });
    await first.person.post(`/v1/runners/${first.runnerId}/deregister`);
    expect((await first.at(fleet.url, SECOND).register(first.person.token)).status).toBe(200);
  });

  test("another coordinator refuses it as well while the first holds anything, and the first is told by any", async () => {
    const other = await openFleet({ clock, storage: fleet.storage, seed: 1_000 });
    try {
      const first = await fleet.runner({ process: FIRST });
      await fleet.admin.start();
      await first.poll();
      const second = first.at(other.url, SECOND);
      expect((await second.register(first.person.token)).status).toBe(409);
      await clock.advance(LEASE_MS);
      expect((await second.register(first.person.token)).status).toBe(200);
      expect((await second.at(fleet.url, SECOND).poll({ waitMs: 0 })).commands).toEqual([]);
      await expect(first.at(other.url).poll({ waitMs: 0 })).rejects.toThrow("duplicate_runner");
    } finally {
      await other.close();
    }
  });
});

describe("a runner that goes", () => {
  test("a late request to leave takes nothing from the process that is the runner now", async () => {
    const first = await fleet.runner({ process: FIRST });
    await first.poll({ waitMs: 0 });
    await clock.advance(LEASE_MS);
    const second = first.at(fleet.url, SECOND);
    expect((await second.register(first.person.token)).status).toBe(200);
    await fleet.admin.start();
    const claimed = await second.poll();
    const [claim] = claimed.claims;
    const leave = (process: string) =>
      first.person.post(`/v1/runners/${first.runnerId}/deregister`, { process });
    expect((await leave(FIRST)).status).toBe(200);
    expect((await second.poll({ pollId: claimed.pollId })).claims).toEqual([claim]); // The poll is still known.
    expect((await second.say(claim!, { status: "working" })).status).toBe("committed");
    const sessionId = await fleet.admin.start();
    expect((await second.poll({ ackPollId: claimed.pollId })).claims).toMatchObject([{ sessionId }]);
    expect(await heldBy(second)).toEqual([claim!.sessionId, sessionId].sort());
    await leave(SECOND);
    expect(await heldBy(second)).toEqual([]);
    await expect(second.poll({ waitMs: 0 })).rejects.toThrow("runner_not_found");
  });

  // The machine may be stolen just then, and its token would make it a runner again.
  test("a runner that left can still be deleted by its id, so that it cannot return", async () => {
    const runner = await fleet.runner({ process: FIRST });
    await runner.person.post(`/v1/runners/${runner.runnerId}/deregister`);
    const erase = () => fleet.admin.call("DELETE", `/v1/runners/${runner.runnerId}`);
    expect((await erase()).status).toBe(200);
    expect((await runner.at(fleet.url, SECOND).register(runner.person.token)).body).toMatchObject({
      status: 401,
      code: "token_revoked",
    });
    expect((await erase()).body).toMatchObject({ status: 404, code: "runner_not_found" });
  });

  test("a runner that left holds nothing, not even claims that never reached it", async () => {
    const other = await openFleet({ clock, storage: fleet.storage, seed: 1_000 });
    try {
      const runner = await fleet.runner({ process: FIRST });
      const ids = [await fleet.admin.start(), await fleet.admin.start()].sort();
      const [used] = (await runner.poll({ free: 1 })).claims;
      await runner.say(used!, { status: "working" });
      await runner.at(other.url).poll({ free: 1 });
      expect(await heldBy(runner)).toEqual(ids);
      await runner.person.post(`/v1/runners/${runner.runnerId}/deregister`);
      expect(await heldBy(runner)).toEqual([]);
      expect((await runner.complete(used!)).status).not.toBe("committed");
      await clock.advance(1_000);
      const { claims } = await (await other.runner()).poll({ waitMs: 0 });
      expect(claims.map(({ sessionId }) => sessionId).sort()).toEqual(ids);
    } finally {
      await other.close();
    }
  });
});

// Requests take ways on which they are delayed, or sent twice.
describe("H3: a poll that is repeated receives no claim that it did not receive before", () => {
  const erase = ({ runnerId }: FakeRunner) =>
    fleet.admin.call("DELETE", `/v1/runners/${runnerId}?processEnded=true`);
  const replace = (runner: FakeRunner) => runner.at(fleet.url, SECOND).register(runner.person.token);

  test.each([
    ["leaves", ({ person, runnerId }: FakeRunner) => person.post(`/v1/runners/${runnerId}/deregister`)],
    ["was seen to end", erase],
    ["is replaced by the next one", replace],
  ] as const)("while its process %s", async (_, end) => {
    const changes = await holdChanges();
    const runner = await fleet.runner({ process: FIRST });
    expect((await runner.poll({ pollId: "p1", waitMs: 0 })).claims).toEqual([]);
    await clock.advance(LEASE_MS);
    const [ending] = await changes.held(() => end(runner));
    await fleet.admin.start();
    const again = await runner.poll({ pollId: "p1", waitMs: 0 });
    changes.pass();
    expect(again.claims).toEqual([]);
    expect((await ending!).status).toBe(200);
    expect(await heldBy(runner)).toEqual([]);
  });

  test("when its process has sent its registration twice", async () => {
    const changes = await holdChanges();
    const first = await fleet.runner({ process: FIRST });
    const asked = await changes.held(
      () => replace(first),
      () => replace(first),
    );
    changes.pass();
    await Promise.race(asked);
    const runner = first.at(fleet.url, SECOND);
    await fleet.admin.start();
    const { claims } = await runner.poll({ pollId: "p1", free: 1 });
    expect(claims).toHaveLength(1);
    await fleet.admin.start();
    changes.pass();
    await Promise.all(asked);
    expect((await runner.poll({ pollId: "p1", free: 1, waitMs: 0 })).claims).toEqual(claims);
  });
});

/** Opens the fleet over a storage that holds changes of runners back. */
async function holdChanges() {
  await fleet.close();
  const memory = new MemoryStorage();
  const waiting: (() => void)[] = [];
  let isHolding = false;
  const storage = storageWith(memory, {
    async commit(changes, now) {
      if (isHolding && changes.some(({ type }) => type === "audited"))
        await new Promise<void>((resolve) => void waiting.push(resolve));
      return memory.commit(changes, now);
    },
  });
  fleet = await openFleet({ clock, storage });
  return {
    /** Makes requests. @returns them when the change of each is held back. */
    async held<T>(...requests: readonly (() => Promise<T>)[]): Promise<readonly Promise<T>[]> {
      isHolding = true;
      const asked = requests.map((ask) => ask());
      await until(() => waiting.length === asked.length, "the changes are held back");
      isHolding = false;
      return asked;
    },
    /** Lets the first change pass that is held back. */
    pass: () => waiting.shift()?.(),
  };
}

describe("a runner whose process was seen to end", () => {
  const erase = ({ runnerId }: FakeRunner, query: string) =>
    fleet.admin.call("DELETE", `/v1/runners/${runnerId}${query}`);

  test("the runner loses its claims at once, and the loss counts for each session", async () => {
    const dead = await fleet.runner({ process: FIRST });
    const sessionId = await fleet.admin.start();
    await dead.poll({ free: 1 });
    expect((await erase(dead, "?processEnded=true")).status).toBe(200);
    const [given] = (await (await fleet.runner()).poll({ free: 1 })).claims;
    expect(given).toMatchObject({ sessionId });
    expect(await fleet.storage.heldClaims({ now: clock.now(), sessionId, limit: 1 })).toMatchObject([
      { losses: 1 },
    ]);
  });

  test("a deleted runner keeps its claims until their leases pass when nobody says that it ended", async () => {
    const runner = await fleet.runner({ process: FIRST });
    const sessionId = await fleet.admin.start();
    await runner.poll({ free: 1 });
    expect((await erase(runner, "")).status).toBe(200);
    expect(await heldBy(runner)).toEqual([sessionId]);
  });

  // The answer to the first call was lost with the coordinator.
  test("the end of a runner can be reported a second time", async () => {
    const dead = await fleet.runner({ process: FIRST });
    await erase(dead, "?processEnded=true");
    expect((await erase(dead, "?processEnded=true")).body).toMatchObject({ code: "runner_not_found" });
  });

  test("only an admin can report the end of a runner", async () => {
    const [dead, other] = [await fleet.runner(), await fleet.runner()];
    const path = `/v1/runners/${dead.runnerId}?processEnded=true`;
    for (const person of [other.person, dead.person, await fleet.user("ann")])
      expect((await person.call("DELETE", path)).status).toBe(403);
  });
});

async function heldBy({ runnerId }: FakeRunner): Promise<readonly string[]> {
  const held = await fleet.storage.heldClaims({ now: clock.now(), owner: runnerId, limit: 9 });
  return held.map(({ sessionId }) => sessionId).sort();
}
