// One database under two names. Owners are processes of their own.

import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Change, CreateSession } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { connectSqliteStorage, openSqliteReader, ownSqliteStorage, withSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";
import { SESSIONS } from "../testing/process.ts";
import { startProcess, type Watched } from "../testing/spawn.ts";

const creating: CreateSession = {
  type: "create_session",
  sessionId: "ses-9",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};
const signalling: Change = {
  type: "send_signal",
  sessionId: "ses-9",
  signalId: "sig-1",
  name: "go",
  payload: "1",
};

interface Names {
  readonly first: string;
  readonly second: string;
}

/** Two paths for one database, of which the second is made by `link`. */
function names(where: "beside" | "elsewhere"): Names {
  const folder = newFolder();
  if (where === "elsewhere") mkdirSync(`${folder}/other`);
  return { first: `${folder}/a.db`, second: `${folder}/${where === "beside" ? "b.db" : "other/b.db"}` };
}

async function closedDatabase(path: string): Promise<void> {
  await withSqliteStorage({ path }, ({ storage }) => storage.commit([creating, signalling], 1));
}

/** Commit in a process that is killed. Answers how many groups were acknowledged to it. */
async function crash(path: string): Promise<number> {
  const child = startProcess("commit", path);
  await child.said(20);
  await child.kill();
  return child.lines.length;
}

async function storedGroups(path: string): Promise<number> {
  const storage = await ownSqliteStorage({ path });
  try {
    const counts = await Promise.all(
      SESSIONS.map(async (sessionId) => (await storage.reader.entries(sessionId, 0, 100_000)).length),
    );
    return Math.min(...counts);
  } finally {
    await storage.close();
  }
}

function runSql(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

describe.each(["beside", "elsewhere"] as const)("a hard link %s", (where) => {
  async function owned(): Promise<Names & { readonly owner: Watched }> {
    const { first, second } = names(where);
    const owner = startProcess("hold", first);
    await owner.said(1);
    linkSync(first, second);
    return { first, second, owner };
  }

  test(
    "O13: a second owner is refused with the owner's pid and the name that the owner uses",
    ofCampaign,
    async () => {
      const { first, second, owner } = await owned();
      await expect(ownSqliteStorage({ path: second })).rejects.toMatchObject({
        code: "locked",
        at: first,
        message: expect.stringContaining(`process ${owner.pid} `),
      });
      await owner.finish();
      await (await ownSqliteStorage({ path: second })).close();
    },
  );

  test("O13: a signal under the other name is stored by the owner", async () => {
    const { first, second, owner } = await owned();
    const client = (await connectSqliteStorage({ path: second }))!;
    expect(await client.commit([creating, signalling], 1)).toMatchObject([
      { status: "created" },
      { status: "stored" },
    ]);
    await client.close();
    const reader = openSqliteReader({ path: second });
    expect(await reader.pendingSignals("ses-9")).toHaveLength(1);
    reader.close();
    await owner.finish();
    await withSqliteStorage({ path: first }, async ({ storage }) =>
      expect(await storage.reader.pendingSignals("ses-9")).toHaveLength(1),
    );
  });

  test("H1: everything acknowledged before a kill is there under the other name", ofCampaign, async () => {
    const { first, second } = names(where);
    await closedDatabase(first);
    linkSync(first, second);
    const acknowledged = await crash(first);
    // A restart of the machine, or a person, may remove all that only helps to find an owner.
    for (const suffix of ["lock", "socket", "owner"]) rmSync(`${first}-${suffix}`, { force: true });
    const reader = openSqliteReader({ path: second });
    expect((await reader.entries("ses-1", 0, 100_000)).length).toBeGreaterThanOrEqual(acknowledged);
    reader.close();
    expect(await storedGroups(second)).toBeGreaterThanOrEqual(acknowledged);
    expect(existsSync(`${second}-wal`)).toBe(false);
  });

  test(
    "H1: a name is refused if the log of a removed name stayed behind, and the error names the log",
    ofCampaign,
    async () => {
      const { first, second } = names(where);
      await closedDatabase(first);
      linkSync(first, second);
      const acknowledged = await crash(first);
      rmSync(first);
      await expect(ownSqliteStorage({ path: second })).rejects.toMatchObject({
        code: "storage_unavailable",
        fix: expect.stringContaining(`${first}-wal`),
      });
      renameSync(`${first}-wal`, `${second}-wal`);
      expect(await storedGroups(second)).toBeGreaterThanOrEqual(acknowledged);
    },
  );

  test("a backup of a closed database opens, also after the first name is gone", async () => {
    const { first, second } = names(where);
    await closedDatabase(first);
    linkSync(first, second);
    await withSqliteStorage({ path: second }, async ({ storage }) =>
      expect(await storage.load("ses-9")).toBeDefined(),
    );
    rmSync(first);
    await withSqliteStorage({ path: second }, async ({ storage }) =>
      expect(await storage.load("ses-9")).toBeDefined(),
    );
  });

  test("O13: an owner whose name was removed keeps its file from a second owner", ofCampaign, async (t) => {
    if (process.platform !== "linux") return t.skip("only Linux has names that cannot be deleted");
    const { first, second } = await owned();
    rmSync(first);
    await expect(ownSqliteStorage({ path: second })).rejects.toMatchObject({ code: "locked", at: second });
  });
});

test(
  "H1: the owner and the log of a database without a noted name are found in the same folder",
  ofCampaign,
  async () => {
    const { first, second } = names("beside");
    await closedDatabase(first);
    const owner = startProcess("hold", first);
    await owner.said(1);
    runSql(first, "DELETE FROM meta WHERE key = 'path'; PRAGMA wal_checkpoint(TRUNCATE)");
    const client = (await connectSqliteStorage({ path: first }))!;
    expect(await client.commit([{ ...creating, sessionId: "ses-10" }], 2)).toEqual([{ status: "created" }]);
    await client.close();
    linkSync(first, second);
    await expect(ownSqliteStorage({ path: second })).rejects.toMatchObject({ code: "locked", at: first });
    await owner.kill();
    await withSqliteStorage({ path: second }, async ({ storage }) =>
      expect(await storage.load("ses-10")).toBeDefined(),
    );
  },
);

test("two names that each have a log are refused", async () => {
  const { first, second } = names("beside");
  await closedDatabase(first);
  linkSync(first, second);
  writeFileSync(`${first}-wal`, "log");
  writeFileSync(`${second}-wal`, "log");
  await expect(ownSqliteStorage({ path: second })).rejects.toMatchObject({
    code: "storage_unavailable",
    got: expect.stringContaining(first),
  });
});

test("a copy of a database that is in use is a database of its own", ofCampaign, async () => {
  const { first, second } = names("beside");
  await closedDatabase(first);
  const owner = startProcess("hold", first);
  await owner.said(1);
  copyFileSync(first, second);
  linkSync(second, `${second}-backup`);
  const storage = await ownSqliteStorage({ path: second });
  expect(await storage.load("ses-9")).toBeDefined();
  await storage.close();
});

test("a symbolic link to a database with a hard link leads to its owner", ofCampaign, async () => {
  const { first, second } = names("beside");
  const owner = startProcess("hold", first);
  await owner.said(1);
  linkSync(first, second);
  symlinkSync(second, `${second}-symbolic`);
  await expect(ownSqliteStorage({ path: `${second}-symbolic` })).rejects.toMatchObject({
    code: "locked",
    at: first,
  });
});

test("one folder under two names is one name of the database", ofCampaign, async () => {
  const folder = newFolder();
  mkdirSync(`${folder}/real`);
  const path = `${folder}/real/a.db`;
  await closedDatabase(path);
  linkSync(path, `${folder}/real/b.db`);
  const acknowledged = await crash(path);
  renameSync(`${folder}/real`, `${folder}/moved`);
  symlinkSync(`${folder}/moved`, `${folder}/real`);
  expect(await storedGroups(`${folder}/moved/b.db`)).toBeGreaterThanOrEqual(acknowledged);
});
