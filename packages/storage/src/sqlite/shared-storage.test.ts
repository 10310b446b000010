// Several processes share a database, and its owner ends.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { connectSqliteStorage, openSqliteStorage, ownSqliteStorage } from "./index.ts";
import { resolvePaths } from "./file/paths.ts";
import { connectToOwner } from "./socket/client.ts";
import { newFolder } from "./testing/folder.ts";
import { startProcess, type Watched } from "./testing/spawn.ts";

async function sharer(path: string): Promise<Watched> {
  const process = startProcess("share", path);
  await process.said(1);
  return process;
}

const ENDS: { readonly [what: string]: (owner: Watched) => Promise<void> } = {
  "is killed": (owner) => owner.kill(),
  ends: (owner) => owner.finish(),
};

describe("O15: the end of the owner touches nothing that other processes run", () => {
  for (const [what, end] of Object.entries(ENDS)) {
    test(`the owner ${what}, and so does the next one`, ofCampaign, async () => {
      const path = `${newFolder()}/test.db`;
      const [first, second, third] = [await sharer(path), await sharer(path), await sharer(path)];
      expect(await first.ask("create ses-1")).toBe("created");
      expect(await second.ask("create ses-2")).toBe("created");
      expect(await third.ask("create ses-3")).toBe("created");
      await end(first);
      expect(await second.ask("step ses-2")).toBe("committed");
      expect(await third.ask("step ses-3")).toBe("committed");
      expect(await third.ask("claim ses-2")).toBe("busy");
      expect(await third.ask("claim ses-1")).toBe("claimed"); // Its process is gone.
      const owner = Number(await second.ask("owner"));
      expect(await third.ask("owner")).toBe(String(owner));
      const [next, last] = owner === second.pid ? [second, third] : [third, second];
      await end(next);
      const own = last === third ? "ses-3" : "ses-2";
      expect(await last.ask(`step ${own}`)).toBe("committed");
      expect(await last.ask("owner")).toBe(String(last.pid));
    });
  }

  test(
    "a process that is stopped keeps its claims, and goes on when it is continued",
    ofCampaign,
    async (t) => {
      if (process.platform !== "linux") return t.skip("elsewhere a stopped process may lose them in time");
      const path = `${newFolder()}/test.db`;
      const [owner, stopped, other] = [await sharer(path), await sharer(path), await sharer(path)];
      expect(await stopped.ask("create ses-1")).toBe("created");
      process.kill(stopped.pid, "SIGSTOP");
      await owner.kill();
      expect(await other.ask("claim ses-1")).toBe("busy");
      process.kill(stopped.pid, "SIGCONT");
      expect(await stopped.ask("step ses-1")).toBe("committed");
    },
  );

  test("a process that dies with the owner leaves no claim", async () => {
    const path = `${newFolder()}/test.db`;
    const [owner, client] = [await sharer(path), await sharer(path)];
    expect(await client.ask("create ses-1")).toBe("created");
    await Promise.all([owner.kill(), client.kill()]);
    const next = await openSqliteStorage({ path });
    onTestFinished(() => next.close());
    expect(await next.claim(claimOf("ses-1"))).toMatchObject({ status: "claimed" });
  });

  test("a process that dies as the second owner leaves no claim to the third", async () => {
    const path = `${newFolder()}/test.db`;
    const [first, second] = [await sharer(path), await sharer(path)];
    expect(await second.ask("create ses-1")).toBe("created");
    await first.finish();
    expect(await second.ask("step ses-1")).toBe("committed");
    expect(await second.ask("owner")).toBe(String(second.pid));
    await second.kill();
    const third = await openSqliteStorage({ path });
    onTestFinished(() => third.close());
    expect(await third.claim(claimOf("ses-1"))).toMatchObject({ status: "claimed" });
  });

  test("the owner is told of the sessions of a process that dies", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownSqliteStorage({ path });
    onTestFinished(() => owner.close());
    const client = await sharer(path);
    expect(await client.ask("create ses-1")).toBe("created");
    const arrived = vi.fn();
    owner.subscribe(arrived);
    await client.kill();
    await vi.waitFor(() => expect(arrived).toHaveBeenCalledWith({ sessionId: "ses-1", awaited: true }));
    expect(await owner.claim(claimOf("ses-1"))).toMatchObject({ status: "claimed" });
  });

  test("a process that closes while nobody owns the database leaves no claim", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownSqliteStorage({ path });
    const client = (await connectSqliteStorage({ path }))!;
    await client.commit([creating("ses-1")], 1);
    await owner.close();
    await client.close();
    const next = await ownSqliteStorage({ path });
    expect(await next.claim(claimOf("ses-1"))).toMatchObject({ status: "claimed" });
    expect([...next.clients.known()]).toEqual([]);
    await next.close();
  });

  test("ST3: a batch that ended a session is answered by the next owner as well", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownSqliteStorage({ path });
    const client = (await connectToOwner(resolvePaths(path, false), 1_000))!;
    const claims = [] as const;
    await client.hold({ client: 4_711, claims });
    const [made] = await client.commit([creating("ses-1")], 1);
    const { token } = made as { readonly token: number };
    const ending = {
      type: "commit_batch",
      sessionId: "ses-1",
      token,
      firstSeq: 0,
      records: [{ type: "start_timer", seq: 0, id: 0, fireAt: 1 }],
      entries: [],
      consumed: [],
      session: { status: "completed" },
    } as const;
    expect(await client.commit([ending], 2)).toMatchObject([{ status: "committed" }]);
    await owner.close();
    const next = await ownSqliteStorage({ path });
    onTestFinished(() => next.close());
    const again = (await connectToOwner(resolvePaths(path, false), 1_000))!;
    await again.hold({ client: 4_711, claims: [{ sessionId: "ses-1", token }] });
    expect(await again.commit([ending], 3)).toMatchObject([{ status: "committed" }]);
    await again.close();
  });
});

function claimOf(sessionId: string) {
  return { sessionId, owner: "next", now: 1, leaseMs: Infinity };
}

function creating(sessionId: string) {
  return {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    claimFor: { owner: "client", leaseMs: Infinity },
  } as const;
}

test("shared-storage-2: arrivals that came while the owner changed are announced", async () => {
  const path = `${newFolder()}/test.db`;
  const owner = await ownSqliteStorage({ path });
  const client = (await connectSqliteStorage({ path }))!;
  onTestFinished(() => client.close());
  await client.commit([creating("ses-1")], 1);
  const { claimFor: _, ...free } = creating("ses-2");
  await client.commit([free], 1);
  const arrived = vi.fn();
  client.subscribe(arrived);
  await owner.close();
  await vi.waitFor(() => expect(arrived).toHaveBeenCalledWith({ sessionId: "ses-2", awaited: true }));
  expect(arrived).toHaveBeenCalledWith({ sessionId: "ses-1", awaited: false });
});

/** Random acts of several processes, whose owner is killed or ends. The rounds are the ends of owners. */
const ROUNDS = isCampaign ? 30 : 6;
const SESSIONS = ["ses-0", "ses-1", "ses-2", "ses-3"];

test(
  `O15: ${ROUNDS} owners end at random, and no process loses a claim`,
  { ...ofCampaign, timeout: 600_000 },
  async () => {
    const path = `${newFolder()}/test.db`;
    let seed = 1;
    const dice = (sides: number) => (seed = (seed * 48_271) % 2_147_483_647) % sides;
    let alive = await Promise.all(Array.from({ length: 4 }, () => sharer(path)));
    for (const sessionId of SESSIONS) await alive[0]!.ask(`create ${sessionId}`);
    for (const sessionId of SESSIONS) await alive[0]!.ask(`release ${sessionId}`);
    const holders = new Map<string, Watched>();
    let ending: Watched | undefined;
    const act = async (process: Watched, sessionId: string): Promise<void> => {
      const holder = holders.get(sessionId);
      if (holder !== process) {
        const status = await process.ask(`claim ${sessionId}`);
        if (status === undefined) return;
        // A process that has just died may hold it for a moment.
        if (holder === undefined || holder === ending) expect(["claimed", "busy"]).toContain(status);
        else expect(status).toBe("busy");
        if (status === "claimed") holders.set(sessionId, process);
      } else if (dice(4) === 0) {
        // An owner that released it may have been killed before it said so.
        expect([undefined, "released", "fenced"]).toContain(await process.ask(`release ${sessionId}`));
        holders.delete(sessionId);
      } else expect([undefined, "committed"]).toContain(await process.ask(`step ${sessionId}`));
    };
    for (let round = 0; round < ROUNDS; round++) {
      const pid = Number(await alive[0]!.ask("owner"));
      const owner = alive.find((process) => process.pid === pid)!;
      ending = owner;
      const others = alive.filter((process) => process !== owner);
      const ended = dice(2) === 0 ? owner.kill() : owner.finish();
      // Each session is asked for by one process at a time.
      for (let n = 0; n < 8; n++)
        await Promise.all(others.map((process, i) => act(process, SESSIONS[(i + n) % SESSIONS.length]!)));
      await ended;
      for (const [sessionId, holder] of holders) if (holder === owner) holders.delete(sessionId);
      alive = [...others, await sharer(path)];
    }
  },
);
