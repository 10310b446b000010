// A database whose files are taken away while it is open: soon nothing is acknowledged any more, and all that
// was acknowledged is kept.

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { exitCodeOf, type Change, type HoldfastError } from "@holdfast/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectSqliteStorage, openSqliteReader, ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

function creating(sessionId: string): Change {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

/** A database that is open and holds one session. */
async function openWithSession(path: string) {
  const storage = await ownSqliteStorage({ path });
  onTestFinished(() => storage.close());
  expect(await storage.commit([creating("ses-1")], 1)).toEqual([{ status: "created" }]);
  await delay(20); // A look at the files serves the commits of the next 10 ms.
  return storage;
}

const LOSSES: { readonly [what: string]: (path: string, folder: string) => void } = {
  "is removed": (path) => rmSync(path),
  "is renamed": (path) => renameSync(path, `${path}-elsewhere`),
  "is replaced by a copy of itself": (path) => {
    copyFileSync(path, `${path}-copy`);
    renameSync(`${path}-copy`, path);
  },
  "is moved elsewhere and linked to from its place": (path, folder) => {
    renameSync(path, `${folder}/real.db`);
    symlinkSync("real.db", path);
  },
  "becomes a folder": (path) => {
    rmSync(path);
    mkdirSync(path);
  },
  "loses its write-ahead log": (path) => rmSync(`${path}-wal`),
  "has its write-ahead log replaced": (path) => {
    rmSync(`${path}-wal`);
    writeFileSync(`${path}-wal`, "");
  },
  "has its folder renamed": (_, folder) => renameSync(folder, `${folder}-elsewhere`),
  "has its folder removed": (_, folder) => rmSync(folder, { recursive: true }),
};

describe("a database in use", () => {
  for (const [what, lose] of Object.entries(LOSSES)) {
    test(`it acknowledges nothing more once it ${what}, and its owner still answers reads`, async () => {
      const folder = `${newFolder()}/data`;
      const path = `${folder}/test.db`;
      const storage = await openWithSession(path);
      lose(path, folder);

      const error: HoldfastError = await storage.commit([creating("ses-2")], 2).then(
        () => expect.fail("the commit was acknowledged"),
        (thrown: unknown) => thrown as HoldfastError,
      );
      expect(error).toMatchObject({ code: "storage_lost", at: expect.stringContaining(path) });
      expect(error.fix).toBeDefined();
      expect(exitCodeOf(error)).toBe(10);
      await expect(storage.lost).resolves.toBe(error);
      // The next refusal is the same, whatever file is at the path by then.
      await expect(storage.commit([creating("ses-3")], 3)).rejects.toBe(error);
      await expect(
        storage.claim({ sessionId: "ses-1", owner: "me", now: 3, leaseMs: Infinity }),
      ).rejects.toBe(error);
      expect(await storage.load("ses-1")).toBeDefined();
    });
  }

  test("it acknowledges nothing more once its disk is unmounted", async (t) => {
    const folder = newFolder();
    const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], { stdio: "ignore" });
    if (process.platform !== "linux" || mount.status !== 0) return t.skip("only root may mount, on Linux");
    const storage = await openWithSession(`${folder}/test.db`);
    expect(spawnSync("umount", ["--lazy", folder]).status).toBe(0);
    await expect(storage.commit([creating("ses-2")], 2)).rejects.toMatchObject({ code: "storage_lost" });
  });
});

describe("the content of a database that was taken away", () => {
  for (const what of ["is removed", "is replaced by a copy of itself"] as const) {
    test(`it is saved to a copy beside the database when the database ${what}`, async () => {
      const folder = newFolder();
      const path = `${folder}/test.db`;
      const storage = await openWithSession(path);
      LOSSES[what]!(path, folder);
      const committing = storage.commit([creating("ses-2")], 2);
      const error = await committing.catch((thrown: HoldfastError) => thrown);
      const [name] = readdirSync(folder).filter((each) => each.includes("-saved-"));
      expect(statSync(`${folder}/${name}`).mode & 0o777).toBe(0o600);
      expect(error).toMatchObject({ fix: expect.stringContaining(`${folder}/${name}`) });
      const reader = openSqliteReader({ path: `${folder}/${name}` });
      expect(await reader.session("ses-1")).toBeDefined();
      expect(reader.verify().problems).toEqual([]);
      reader.close();
    });
  }

  test("it has all that was acknowledged after the removal", async () => {
    const folder = newFolder();
    const path = `${folder}/test.db`;
    const storage = await openWithSession(path);
    await storage.commit([creating("ses-2")], 2);
    rmSync(path);
    const acknowledged = ["ses-1", "ses-2"];
    for (let i = 0; ; i++) {
      const sessionId = `ses-after-${i}`;
      const answer = await storage.commit([creating(sessionId)], 3).catch((thrown: HoldfastError) => thrown);
      if (!Array.isArray(answer)) break;
      acknowledged.push(sessionId);
    }
    const [name] = readdirSync(folder).filter((each) => each.includes("-saved-"));
    const reader = openSqliteReader({ path: `${folder}/${name}` });
    for (const sessionId of acknowledged) expect(await reader.session(sessionId)).toBeDefined();
    reader.close();
  });

  test("it is saved to the temporary folder when the database's own folder is gone", async () => {
    const folder = `${newFolder()}/data`;
    const storage = await openWithSession(`${folder}/test.db`);
    rmSync(folder, { recursive: true });
    const error = await storage.commit([creating("ses-2")], 2).catch((thrown: HoldfastError) => thrown);
    const [copy = ""] = /\/\S+-saved-[^\s/,]+/.exec((error as HoldfastError).fix ?? "") ?? [];
    const reader = openSqliteReader({ path: copy });
    onTestFinished(() => rmSync(copy.slice(0, copy.lastIndexOf("/")), { recursive: true }));
    expect(await reader.session("ses-1")).toBeDefined();
    reader.close();
  });

  test("it is written into the database itself when only the log was lost, before the storage is closed", async () => {
    const path = `${newFolder()}/test.db`;
    const storage = await openWithSession(path);
    rmSync(`${path}-wal`);
    rmSync(`${path}-shm`);
    await expect(storage.commit([creating("ses-2")], 2)).rejects.toMatchObject({ code: "storage_lost" });
    copyFileSync(path, `${path}-copy`); // As a kill would leave it.
    await storage.close();
    for (const each of [path, `${path}-copy`]) {
      const reader = openSqliteReader({ path: each });
      expect(await reader.session("ses-1")).toBeDefined();
      expect(reader.verify().problems).toEqual([]);
      reader.close();
    }
  });

  // SQLite applies a log to whatever database it lies beside.
  test("the saved copy, or the renamed file, can be put back at once", async () => {
    for (const from of ["saved", "renamed"] as const) {
      const folder = newFolder();
      const path = `${folder}/test.db`;
      const storage = await openWithSession(path);
      renameSync(path, `${folder}/renamed`);
      await expect(storage.commit([creating("ses-2")], 2)).rejects.toMatchObject({ code: "storage_lost" });
      await storage.close();
      const name = readdirSync(folder).find((each) => each.includes(from));
      renameSync(`${folder}/${name}`, path);
      const reopened = await ownSqliteStorage({ path });
      expect(await reopened.load("ses-1")).toBeDefined();
      expect((await reopened.verify()).problems).toEqual([]);
      await reopened.close();
    }
  });
});

test("a client that subscribed is disconnected from a lost database, and its next commit is refused", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await openWithSession(path);
  const client = (await connectSqliteStorage({ path }))!;
  onTestFinished(() => client.close());
  client.subscribe(() => {});
  await client.load("ses-1");
  rmSync(path);
  await expect(storage.commit([creating("ses-2")], 2)).rejects.toThrow();
  await expect(client.commit([creating("ses-3")], 2)).rejects.toThrow();
  const second = (await connectSqliteStorage({ path }))!;
  expect(await second.load("ses-1")).toBeDefined();
  await expect(second.commit([creating("ses-3")], 2)).rejects.toMatchObject({ code: "storage_lost" });
  await second.close();
});

describe("a database that nobody writes to", () => {
  for (const suffix of ["", "-wal", "-shm"])
    test(`it notices that its file *${suffix} is gone`, async () => {
      const path = `${newFolder()}/test.db`;
      const storage = await openWithSession(path);
      rmSync(path + suffix);
      await expect(storage.lost).resolves.toMatchObject({ code: "storage_lost", at: path + suffix });
    });
});

test("a hard link, a second reader and a checkpoint are no loss", async () => {
  const folder = newFolder();
  const path = `${folder}/test.db`;
  const storage = await openWithSession(path);
  spawnSync("ln", [path, `${folder}/backup.db`]);
  const reader = openSqliteReader({ path });
  await reader.session("ses-1");
  reader.close();
  spawnSync(process.execPath, [
    "--no-warnings",
    "-e",
    `new (require("node:sqlite").DatabaseSync)(${JSON.stringify(path)}).exec("PRAGMA wal_checkpoint(TRUNCATE)")`,
  ]);
  expect(await storage.commit([creating("ses-2")], 2)).toEqual([{ status: "created" }]);
});
