// One owner, and everybody else through it.

import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Arrival, Change, CreateSession } from "@holdfast/core";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { connectToOwner } from "../socket/client.ts";
import { connectSqliteStorage, openSqliteReader, ownSqliteStorage, withSqliteStorage } from "../index.ts";
import { isOurFolder, makeSocketFolder, resolvePaths } from "./paths.ts";
import { newFolder } from "../testing/folder.ts";
import { startProcess } from "../testing/spawn.ts";

const creating: CreateSession = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};

function signalling(signalId: string): Change {
  return { type: "send_signal", sessionId: "ses-1", signalId, name: "go", payload: '{"n":1}' };
}

async function ownerOf(path: string) {
  const owner = await ownSqliteStorage({ path });
  onTestFinished(() => owner.close());
  return owner;
}

describe("one owner", () => {
  test(
    "O13: a second process is refused with the pid of the owner; afterwards it may own the file",
    ofCampaign,
    async () => {
      const path = `${newFolder()}/test.db`;
      const child = startProcess("hold", path);
      await child.said(1);
      const message = expect.stringContaining(`process ${child.pid} `);
      await expect(ownSqliteStorage({ path })).rejects.toMatchObject({
        name: "ConflictError",
        code: "locked",
        at: path,
        message,
      });
      await child.finish();
      await (await ownSqliteStorage({ path })).close();
    },
  );

  test("a reader reads beside a live owner, and sees what was committed since it was opened", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    const reader = openSqliteReader({ path });
    expect(await reader.session("ses-1")).toBeUndefined();
    await owner.commit([creating], 5);
    expect(await reader.session("ses-1")).toMatchObject({ status: "submitted", createdAt: 5 });
    reader.close();
  });

  // A reader that kept its snapshot would keep the log from being folded into the file, so the log would only
  // grow.
  test("a reader that stays open holds no transaction", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    await owner.commit([creating, signalling("sig-1")], 1);
    const reader = openSqliteReader({ path });
    expect(await reader.sessions({ limit: 10 })).toHaveLength(1);
    expect(await reader.session("ses-1")).toBeDefined();
    expect(await reader.journal("ses-1", 0, 10)).toEqual([]);
    expect(await reader.entries("ses-1", 0, 10)).toEqual([]);
    expect(await reader.pendingSignals("ses-1")).toHaveLength(1);
    expect(reader.verify().problems).toEqual([]);
    expect(foldLog(path)).toMatchObject({ busy: 0 });

    // The negative space: this is what a reader with a transaction does.
    const greedy = new DatabaseSync(path, { readOnly: true });
    greedy.exec("BEGIN; SELECT count(*) FROM session");
    await owner.commit([signalling("sig-2")], 2);
    expect(foldLog(path)).toMatchObject({ busy: 1 });
    greedy.close();
    reader.close();
  });
});

// POSIX locks go when any descriptor of the file is closed in the process. An outside SQLite then believes
// that it is the last connection: it folds the log into the file and deletes the log. The owner's later
// commits go to a nameless file.
describe("acts of the owner's own process leave its locks alone", () => {
  const acts: { readonly [what: string]: (path: string) => Promise<unknown> } = {
    "a reader is opened and closed": async (path) => openSqliteReader({ path }).close(),
    "a second owner is refused": async (path) => {
      await expect(ownSqliteStorage({ path })).rejects.toMatchObject({ code: "locked" });
    },
    "a client comes and goes": async (path) => (await connectSqliteStorage({ path }))?.close(),
    "a second owner's place is asked for": (path) => withSqliteStorage({ path }, async ({ role }) => role),
  };
  for (const [what, act] of Object.entries(acts)) {
    test(`H1: ${what}`, async (t) => {
      if (process.platform !== "linux") return t.skip("only Linux tells which locks a process holds");
      const path = `${newFolder()}/test.db`;
      const owner = await ownerOf(path);
      await owner.commit([creating], 1);
      const before = locksOn(path);
      expect(before.map((locks) => locks.length > 0)).toEqual([true, true]);
      await act(path);
      expect(locksOn(path)).toEqual(before);
    });
  }
});

describe("a lock that is gone while its owner lives makes no second owner", () => {
  test("O13: its file was deleted", ofCampaign, async () => {
    const path = `${newFolder()}/test.db`;
    const child = startProcess("hold", path);
    await child.said(1);
    rmSync(`${path}-lock`);
    await expect(ownSqliteStorage({ path })).rejects.toMatchObject({
      code: "locked",
      message: expect.stringContaining(`process ${child.pid} `),
    });
    expect(existsSync(`${path}-socket`)).toBe(true);
    await child.finish();
    await (await ownSqliteStorage({ path })).close();
  });

  test("O13: something in the owner's process has read it", ofCampaign, async () => {
    const path = `${newFolder()}/test.db`;
    await ownerOf(path);
    readFileSync(`${path}-lock`);
    const child = startProcess("own", path);
    await child.said(1);
    expect(child.lines).toEqual(["locked"]);
  });

  test("O13: everything beside the database was deleted", ofCampaign, async (t) => {
    if (process.platform !== "linux") return t.skip("only Linux has names that cannot be deleted");
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    for (const suffix of ["lock", "socket", "owner"]) rmSync(`${path}-${suffix}`);
    const child = startProcess("own", path);
    await child.said(1);
    expect(child.lines).toEqual(["locked"]);
    await owner.close();
    await (await ownSqliteStorage({ path })).close();
  });

  test("O13: its owner is killed, and the next one comes at once", ofCampaign, async () => {
    const path = `${newFolder()}/test.db`;
    for (let i = 0; i < 3; i++) {
      const child = startProcess("hold", path);
      await child.said(1);
      process.kill(child.pid, "SIGKILL");
      await withSqliteStorage({ path }, async () => {});
    }
  });
});

/** The locks that this process holds on the database and on its lock. */
function locksOn(path: string): string[][] {
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  return [path, `${path}-lock`].map((file) => {
    const ours = new RegExp(` ${process.pid} [0-9a-f]+:[0-9a-f]+:${statSync(file).ino} `);
    return lines.filter((line) => ours.test(line)).map((line) => line.replace(/^\d+: /, ""));
  });
}

function foldLog(path: string): unknown {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    return database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  } finally {
    database.close();
  }
}

describe("through the owner", () => {
  test("a database without an owner gives no client", async () => {
    const folder = newFolder();
    expect(await connectSqliteStorage({ path: `${folder}/test.db` })).toBeUndefined();
    expect(await connectSqliteStorage({ path: `${folder}/missing/test.db` })).toBeUndefined();
  });

  test("an owner that ends before it has accepted the connection gives no client", async () => {
    const path = `${newFolder()}/test.db`;
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(resolvePaths(path, false).socket, resolve));
    const connecting = connectSqliteStorage({ path });
    server.close();
    expect(await connecting).toBeUndefined();
  });

  // This is how an approval from another terminal reaches a running agent.
  test("ST22: the owner's listeners are notified of a signal from another process", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    await owner.commit([creating], 1);
    const received: Arrival[] = [];
    owner.subscribe((arrival) => received.push(arrival));
    const client = (await connectSqliteStorage({ path }))!;
    expect(await client.commit([signalling("sig-1")], 2)).toEqual([
      { status: "stored", order: 1, awaited: true },
    ]);
    expect(received).toEqual([{ sessionId: "ses-1", awaited: true }]);
    await client.close();
  });

  test("ST7: claims of a connection are free when it is closed, and when its process dies", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    await owner.commit([creating], 1);
    const claim = { sessionId: "ses-1", now: 1, leaseMs: Infinity };
    const client = (await connectSqliteStorage({ path }))!;
    expect(await client.claim({ ...claim, owner: "client" })).toMatchObject({ status: "claimed" });
    expect(await owner.claim({ ...claim, owner: "owner" })).toEqual({ status: "busy", owner: "client" });
    await client.close();
    expect(await owner.claim({ ...claim, owner: "owner" })).toMatchObject({ status: "claimed" });
  });

  test("many clients commit at once, and each gets its own answers", async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownerOf(path);
    await owner.commit([creating], 1);
    const clients = await Promise.all(Array.from({ length: 8 }, () => connectSqliteStorage({ path })));
    const sent = clients.flatMap((client, c) =>
      Array.from({ length: 25 }, (_, i) =>
        client!.commit([signalling(`sig-${c}-${i}`), signalling(`sig-${c}-${i}`)], 2),
      ),
    );
    const results = await Promise.all(sent);
    expect(
      results.every(([first, second]) => first?.status === "stored" && second?.status === "duplicate"),
    ).toBe(true);
    const orders = results.map(([first]) => (first as { order: number }).order);
    expect(orders.sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    await Promise.all(clients.map((client) => client!.close()));
  });

  test("H1: a request whose owner was killed is made by its process, as the next owner", async () => {
    const path = `${newFolder()}/test.db`;
    const child = startProcess("hold", path);
    await child.said(1);
    const client = (await connectSqliteStorage({ path }))!;
    expect(await client.commit([creating, signalling("sig-1")], 1)).toMatchObject([
      { status: "created" },
      { status: "stored" },
    ]);
    await child.kill();
    expect(await client.commit([signalling("sig-1")], 2)).toEqual([{ status: "duplicate" }]);
    await client.close();
  });

  test(
    "a request that is too long is refused before it is sent, and the next one works",
    ofCampaign,
    async () => {
      const path = `${newFolder()}/test.db`;
      await ownerOf(path);
      const client = (await connectSqliteStorage({ path }))!;
      const input = `"${"ü".repeat(34 * 1024 * 1024)}"`;
      await expect(client.commit([{ ...creating, input }], 1)).rejects.toMatchObject({
        code: "limit_exceeded",
      });
      expect(await client.commit([creating], 1)).toEqual([{ status: "created" }]);
      await client.close();
    },
  );

  test("a database deep in the file system is reached all the same", async () => {
    const path = `${newFolder()}/${"deep/".repeat(24)}test.db`;
    const owner = await ownerOf(path);
    const { socket, socketFolder } = resolvePaths(path, false);
    expect(existsSync(`${path}-socket`)).toBe(false);
    expect(statSync(socketFolder!).mode & 0o777).toBe(0o700);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    // A terminal of its own may have a temporary folder of its own.
    vi.stubEnv("TMPDIR", newFolder());
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(resolvePaths(path, false).socket).not.toBe(socket);
    const client = (await connectSqliteStorage({ path }))!;
    expect(await client.commit([creating], 1)).toEqual([{ status: "created" }]);
    await client.close();
    await owner.close();
    expect(existsSync(socketFolder!)).toBe(false);
  });

  // Anyone may make a folder of that name in the system's temporary folder, before we do.
  test("a socket's folder that others can write is not trusted", () => {
    const folder = `${newFolder()}/sockets`;
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    expect(isOurFolder(folder)).toBe(false);
    expect(() => makeSocketFolder(folder)).toThrow(expect.objectContaining({ code: "storage_unavailable" }));
    chmodSync(folder, 0o755);
    makeSocketFolder(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(isOurFolder(`${dirname(folder)}/missing`)).toBe(false);
    expect(isOurFolder(tmpdir())).toBe(false);
  });
});

describe("withSqliteStorage", () => {
  test("it goes through the owner of the file, or owns the file while its work runs", async () => {
    const path = `${newFolder()}/test.db`;
    const first = await withSqliteStorage({ path }, async ({ role, storage }) => {
      expect(await storage.commit([creating], 1)).toEqual([{ status: "created" }]);
      return role;
    });
    expect(first).toBe("owner");

    const owner = await ownerOf(path);
    const second = await withSqliteStorage({ path }, async (access) => {
      expect(await access.storage.load("ses-1")).toBeDefined();
      return access.role === "client" ? access.owner.pid : undefined;
    });
    expect(second).toBe(process.pid);
    await owner.close();
  });

  test("each of many processes that race for the file gets to do its work", async () => {
    const path = `${newFolder()}/test.db`;
    await withSqliteStorage({ path }, ({ storage }) => storage.commit([creating], 1));
    const ids = Array.from({ length: 12 }, (_, i) => `sig-${i}`);
    const results = await Promise.all(
      ids.map((id) => withSqliteStorage({ path }, ({ storage }) => storage.commit([signalling(id)], 2))),
    );
    expect(results.every(([result]) => result?.status === "stored")).toBe(true);
  });

  test(
    "it waits while owners take turns, and not for one owner that cannot be reached",
    ofCampaign,
    async () => {
      const path = `${newFolder()}/test.db`;
      await withSqliteStorage({ path }, ({ storage }) => storage.commit([creating], 1));
      const { lock, owner } = resolvePaths(path, false);
      const holder = new DatabaseSync(lock);
      onTestFinished(() => {
        if (holder.isOpen) holder.close();
      });
      holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      const turn = (since: number) => writeFileSync(owner, JSON.stringify({ pid: 1, since }));
      turn(0);
      await expect(withSqliteStorage({ path }, async () => 1)).rejects.toMatchObject({ code: "locked" });
      let turns = 0;
      const turning = setInterval(() => turn(++turns), 200);
      const patient = withSqliteStorage({ path }, async () => 2);
      await vi.waitFor(() => expect(turns).toBeGreaterThan(12), { timeout: 10_000 });
      clearInterval(turning);
      rmSync(owner);
      holder.close();
      expect(await patient).toBe(2);
    },
  );

  test("it makes no database where one must be", async () => {
    const path = `${newFolder()}/test.db`;
    const work = withSqliteStorage({ path, create: false }, async () => 1);
    await expect(work).rejects.toMatchObject({ code: "file_not_found" });
    expect(existsSync(`${path}-lock`)).toBe(false);
  });
});

describe("a foreign process on the owner's socket", () => {
  async function impostor(greeting: string | undefined): Promise<string> {
    const path = `${newFolder()}/test.db`;
    const server: Server = createServer((socket) => {
      socket.on("error", () => {});
      if (greeting !== undefined) socket.write(greeting);
    });
    await new Promise<void>((resolve) => server.listen(resolvePaths(path, false).socket, resolve));
    onTestFinished(() => void server.close());
    return path;
  }

  test("another version is refused, naming both", async () => {
    const path = await impostor('{"holdfast":"storage","protocol":99,"pid":4711,"since":1,"database":"x"}\n');
    await expect(connectSqliteStorage({ path })).rejects.toMatchObject({
      code: "version_unsupported",
      got: "protocol 99",
      message: expect.stringContaining("4711"),
    });
  });

  test("a listener with an unknown greeting is distinguished from an owner", async () => {
    const path = await impostor("HTTP/1.1 400 Bad Request\r\n\r\n");
    await expect(connectSqliteStorage({ path })).rejects.toMatchObject({ code: "storage_unavailable" });
    const other = await impostor('{"hello":"world"}\n');
    await expect(connectSqliteStorage({ path: other })).rejects.toThrow("another program listens");
  });

  test("an owner that does not answer is not waited for without end", async () => {
    const path = await impostor(undefined);
    await expect(connectToOwner(resolvePaths(path, false), 30)).rejects.toMatchObject({
      code: "storage_unavailable",
    });
  });
});
