// Misbehaving clients: a client's mistake harms the client alone, and the owner and the other clients do not
// notice.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Change, DRAFT_CHARS_MAX } from "@holdfast/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { askSqliteOwner, connectSqliteStorage, ownSqliteStorage, watchSqliteDrafts } from "../index.ts";
import type { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";
import { LINE_BYTES_MAX } from "./wire.ts";

let owner: SqliteStorage;
let sockets: Socket[];

beforeEach(async () => {
  owner = await ownSqliteStorage({ path: `${newFolder()}/test.db` });
  sockets = [];
  const created = await owner.commit([creating("ses-1")], 1);
  expect(created).toEqual([{ status: "created" }]);
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await owner.close();
});

function creating(sessionId: string, input?: string): Change {
  return {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input,
    seed: 1,
    flags: 0,
    format: 1,
  };
}

/** A connection by hand, behind the owner's hello. */
async function raw(): Promise<Socket> {
  const socket = connect(`${owner.path}-socket`);
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "data");
  return socket;
}

function lines(socket: Socket, count: number): Promise<unknown[]> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const complete = text.split("\n").slice(0, -1);
      if (complete.length >= count) resolve(complete.map((line) => JSON.parse(line) as unknown));
    });
  });
}

async function expectUnharmed(): Promise<void> {
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  expect(await client.load("ses-1")).toMatchObject({
    session: { status: "submitted", nextSeq: 0, inbox: 0 },
  });
  await client.close();
  expect((await owner.verify()).problems).toEqual([]);
}

const NO_REQUESTS: { readonly [what: string]: string | Buffer } = {
  text: "GET / HTTP/1.1\n",
  bytes: Buffer.from([0, 255, 10, 254, 10]),
  "half a line of JSON": '{"id":1,"method":"load"\n',
  "a list": "[1,2,3]\n",
  "a number": "7\n",
  "no id": '{"method":"load","params":{"sessionId":"ses-1"}}\n',
  "an id that is no number": '{"id":"1","method":"load","params":{"sessionId":"ses-1"}}\n',
  "deep nesting": `${"[".repeat(100_000)}\n`,
};

for (const [what, bytes] of Object.entries(NO_REQUESTS)) {
  test(`${what} closes the connection that sent it, and nothing else`, async () => {
    const socket = await raw();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(bytes);
    await closed;
    await expectUnharmed();
  });
}

const batch = {
  type: "commit_batch",
  sessionId: "ses-1",
  token: 1,
  firstSeq: 0,
  records: [],
  entries: [],
  consumed: [],
};
const WRONG: { readonly [what: string]: { readonly method: string; readonly params?: unknown } } = {
  "an unknown method": { method: "drop", params: {} },
  "a method of every object": { method: "constructor", params: {} },
  "no params": { method: "load" },
  "params of another type": { method: "load", params: { sessionId: 7 } },
  "changes that are no list": { method: "commit", params: { changes: {}, now: 1 } },
  "an unknown change": {
    method: "commit",
    params: { changes: [{ type: "toString", sessionId: "ses-1" }], now: 1 },
  },
  "a time that is no number": { method: "commit", params: { changes: [], now: "1" } },
  "a record without a position": {
    method: "commit",
    params: { changes: [{ ...batch, records: [{ type: "started" }] }], now: 1 },
  },
  "an entry whose content is an object": {
    method: "commit",
    params: {
      changes: [{ ...batch, entries: [{ id: 0, index: 0, role: "user", turn: 0, content: {} }] }],
      now: 1,
    },
  },
  "a status that is none": {
    method: "commit",
    params: { changes: [{ ...batch, session: { status: "sleeping" } }], now: 1 },
  },
  "an effect that is none": {
    method: "commit",
    params: { changes: [{ ...batch, effects: [{ ...batch }] }], now: 1 },
  },
  "a charge of half a token": {
    method: "commit",
    params: {
      changes: [
        {
          ...batch,
          charges: [
            { type: "reserve", task: 0, amount: { tokens: 0.5, costMicroUsd: 0, steps: 0, turns: 0 } },
          ],
        },
      ],
      now: 1,
    },
  },
  "a limit of nothing": {
    method: "commit",
    params: { changes: [{ type: "set_budget", sessionId: "ses-1", limits: { maxTokens: 0 } }], now: 1 },
  },
  "a session to import that is none": {
    method: "commit",
    params: {
      changes: [
        {
          type: "import_session",
          sessionId: "ses-2",
          session: { sessionId: "ses-2" },
          records: [],
          entries: [],
        },
      ],
      now: 1,
    },
  },
  "a schedule without an action": {
    method: "commit",
    params: {
      changes: [
        {
          type: "put_schedule",
          schedule: { scheduleId: "s", cron: "* * * * *", timeZone: "UTC", nextAt: 1, createdAt: 1 },
        },
      ],
      now: 1,
    },
  },
  "agents that are no list": { method: "due", params: { now: 1, limit: 1, agents: "agent" } },
  "a limit that is not finite": { method: "due", params: { now: 1, limit: null } },
};

for (const [what, request] of Object.entries(WRONG)) {
  test(`${what} is answered with a usage error, and the connection stays open`, async () => {
    const socket = await raw();
    const answers = lines(socket, 2);
    socket.write(
      `${JSON.stringify({ id: 1, ...request })}\n{"id":2,"method":"reader.session","params":{"sessionId":"ses-1"}}\n`,
    );
    const [first, second] = await answers;
    expect(first).toMatchObject({ id: 1, error: { code: "usage", fix: expect.any(String) } });
    expect(second).toMatchObject({ id: 2, result: { status: "submitted" } });
    await expectUnharmed();
  });
}

test("a line without end is cut off at its limit", ofCampaign, async () => {
  const socket = await raw();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const piece = Buffer.alloc(4 * 1024 * 1024, "x");
  for (let sent = 0; sent <= LINE_BYTES_MAX && !socket.destroyed; sent += piece.length) {
    await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
  }
  await closed;
  await expectUnharmed();
});

test("requests in any pieces are the same requests", async () => {
  const socket = await raw();
  const answers = lines(socket, 3);
  const text = [1, 2, 3]
    .map((id) => `{"id":${id},"method":"reader.session","params":{"sessionId":"ses-1"}}\n`)
    .join("");
  for (let i = 0; i < text.length; i += 7) {
    await new Promise<void>((resolve) => socket.write(text.slice(i, i + 7), () => resolve()));
  }
  expect(await answers).toMatchObject([{ id: 1 }, { id: 2 }, { id: 3 }]);
});

// It asks for a hundred megabytes and reads nothing: the owner must neither wait for it nor pile all of it
// up.
test("socket-server-2: a client that does not read is not served further, and the other clients are", async () => {
  await owner.commit([creating("ses-large", JSON.stringify("x".repeat(1024 * 1024)))], 1);
  const slow = await raw();
  slow.pause();
  const rss = process.memoryUsage().rss;
  for (let id = 1; id <= 100; id++)
    slow.write(`{"id":${id},"method":"reader.session","params":{"sessionId":"ses-large"}}\n`);

  const client = (await connectSqliteStorage({ path: owner.path }))!;
  for (let i = 0; i < 50; i++) {
    const sent = await client.commit(
      [{ type: "send_signal", sessionId: "ses-1", signalId: `sig-${i}`, name: "go", payload: "1" }],
      2,
    );
    expect(sent).toMatchObject([{ status: "stored" }]);
  }
  await client.close();
  expect(process.memoryUsage().rss - rss).toBeLessThan(64 * 1024 * 1024);

  // It was only kept waiting: when it reads, it gets all of it.
  let answered = 0;
  await new Promise<void>((resolve) => {
    slow.on("data", (chunk: Buffer) => {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1))
        if (++answered === 100) resolve();
    });
    slow.resume();
  });
});

test("socket-server-3: a claim that a client ended is not released when the client disconnects", async () => {
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  const claimed = { ...creating("ses-2"), claimFor: { owner: "client", leaseMs: Infinity } };
  const [made] = await client.commit([claimed], 1);
  const other = await client.claim({ sessionId: "ses-1", owner: "client", now: 1, leaseMs: Infinity });
  const ends = [
    ["ses-2", made],
    ["ses-1", other],
  ].map(([sessionId, result]) => {
    const { token } = result as { readonly token: number };
    const nothing = { firstSeq: 0, records: [], entries: [], consumed: [] };
    const session = { status: "completed", waits: [] } as const;
    return { type: "commit_batch", sessionId: sessionId as string, token, ...nothing, session } as const;
  });
  expect(await client.commit(ends, 2)).toMatchObject([{ status: "committed" }, { status: "committed" }]);
  const commit = vi.spyOn(owner, "commit");
  await client.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(commit).not.toHaveBeenCalled();
});

test("the owner closes although a client reads nothing", ofCampaign, async () => {
  await owner.commit([creating("ses-large", JSON.stringify("x".repeat(4 * 1024 * 1024)))], 1);
  const slow = await raw();
  slow.pause();
  slow.write('{"id":1,"method":"reader.session","params":{"sessionId":"ses-large"}}\n');
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  await client.load("ses-1");
  await owner.close();
  expect(await client.load("ses-1")).toBeDefined(); // As the next owner.
  await client.close();
});

test("a request that arrives before the owner closes is answered, by it or by the next one", async () => {
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  await client.load("ses-1");
  const sent = client.commit(
    [{ type: "send_signal", sessionId: "ses-1", signalId: "sig-1", name: "go", payload: "1" }],
    2,
  );
  // Until the owner has read it, it has not been asked.
  await new Promise((resolve) => setImmediate(resolve));
  const closing = owner.close();
  expect(["stored", "duplicate"]).toContain((await sent)[0]?.status);
  await closing;
  await client.close();
});

test("socket-server-3: a connection does not release the claims of sessions that it ended", async () => {
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  const claimFor = { owner: "me", leaseMs: Infinity };
  const session = { status: "completed" } as const;
  const first = { records: [], entries: [], session };
  const [made] = await client.commit(
    [
      { ...creating("ses-2"), claimFor },
      { ...creating("ses-3"), claimFor, first },
      { ...creating("ses-4"), claimFor },
    ] as Change[],
    1,
  );
  const { token } = made as { readonly token: number };
  const ending = {
    type: "commit_batch",
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    session,
  } as const;
  expect(await client.commit([{ ...ending, sessionId: "ses-2", token }], 2)).toMatchObject([
    { status: "committed" },
  ]);
  const released = vi.spyOn(owner, "commitGroups");
  await client.close();
  const changes = released.mock.calls.flatMap(([groups]) => groups.flatMap((group) => group.changes));
  expect(changes).toMatchObject([{ type: "release_claim", sessionId: "ses-4" }]);
});

test("the owner answers which sessions a process holds, be it the owner or another one", async () => {
  await owner.commit([creating("ses-2"), creating("ses-3")], 1);
  const client = (await connectSqliteStorage({ path: owner.path }))!;
  const held = { owner: "o", now: 2, leaseMs: Infinity };
  await owner.claim({ sessionId: "ses-1", ...held });
  await client.claim({ sessionId: "ses-2", ...held });
  const asked = ["ses-1", "ses-2", "ses-3", "none"];
  expect(await askSqliteOwner(owner, asked)).toMatchObject({
    owner: { pid: process.pid },
    claimed: ["ses-1", "ses-2"],
  });
  await client.close();
  await vi.waitFor(async () => expect((await askSqliteOwner(owner, asked))?.claimed).toEqual(["ses-1"]));
  await owner.close();
  expect(await askSqliteOwner(owner, asked)).toBeUndefined();
});

test("drafts pass between two processes through the owner, and a wrong one is refused", async () => {
  const [runs, shows] = await Promise.all(
    [1, 2].map(async () => (await connectSqliteStorage({ path: owner.path }))!),
  );
  const draft = { task: 2, text: "so far" };
  expect(await runs!.drafts.show([{ sessionId: "ses-1", draft }])).toEqual([]);
  expect(await shows!.drafts.watch(["ses-1"], 0)).toEqual({ drafts: [], next: 0 });
  expect(await runs!.drafts.show([{ sessionId: "ses-1", draft }])).toEqual(["ses-1"]);
  const drafts = [{ sessionId: "ses-1", draft }];
  expect(await watchSqliteDrafts({ path: owner.path }, ["ses-1"], 0)).toEqual({ drafts, next: 1 });
  expect(await shows!.drafts.watch(["ses-1"], 1)).toEqual({ drafts: [], next: 1 });
  const long = { task: 2, text: "x".repeat(DRAFT_CHARS_MAX + 1) };
  await expect(runs!.drafts.show([{ sessionId: "ses-1", draft: long }])).rejects.toMatchObject({
    code: "usage",
  });
  await Promise.all([runs!.close(), shows!.close()]);
  await expectUnharmed();
});
