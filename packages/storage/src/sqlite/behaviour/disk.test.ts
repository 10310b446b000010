// A disk that is full or read-only: the error is clear, nothing is half-written, and reads still work. Once
// the disk is fixed, everything works without a restart (D1). The tests use a real disk of two megabytes,
// which only root may mount.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { Change } from "@holdfast/core";
import { expect, onTestFinished, test, type TestContext } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

const MIB = 1024 * 1024;

test("D1: a commit on a full disk changes nothing, reads work, and the next commit works once there is room", async (t) => {
  const disk = mountDisk(t);
  const path = `${disk.folder}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const full = await fillWithSessions(async (sessionId) => storage.commit([creating(sessionId)], 1));
  expect(full.error).toMatchObject({ code: "storage_full", at: path, fix: expect.any(String) });

  expect(full.committed).toBeGreaterThan(5);
  expect((await storage.verify()).problems).toEqual([]);
  expect(await storage.reader.sessions({ limit: 1_000 })).toHaveLength(full.committed);
  expect(await storage.load(`ses-${full.committed}`)).toBeUndefined();
  const reader = openSqliteReader({ path });
  expect(await reader.sessions({ limit: 1_000 })).toHaveLength(full.committed);
  reader.close();

  disk.remount("size=8m");
  expect(await storage.commit([creating(`ses-${full.committed}`)], 2)).toEqual([{ status: "created" }]);
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});

// A step's head is kept in memory: it must not remember what the disk did not take.
test("D1: a session whose step failed resumes from the step before", async (t) => {
  const disk = mountDisk(t);
  const storage = await ownSqliteStorage({ path: `${disk.folder}/test.db` });
  const [created] = await storage.commit(
    [{ ...creating("ses-a"), claimFor: { owner: "me", leaseMs: Infinity } }],
    1,
  );
  const token = (created as { token: number }).token;
  const batch = (firstSeq: number): Change => {
    const records = [{ type: "warned", seq: firstSeq, at: 1, payload: LARGE }] as const;
    return { type: "commit_batch", sessionId: "ses-a", token, firstSeq, records, entries: [], consumed: [] };
  };
  let steps = 0;
  const full = await fillWithSessions(async () => {
    expect(await storage.commit([batch(steps)], 1)).toEqual([{ status: "committed", inbox: 0 }]);
    steps++;
  });
  expect(full.error).toMatchObject({ code: "storage_full" });

  disk.remount("size=8m");
  expect(await storage.commit([batch(steps + 1)], 1)).toMatchObject([{ status: "invalid" }]);
  expect(await storage.commit([batch(steps)], 1)).toEqual([{ status: "committed", inbox: 0 }]);
  expect((await storage.load("ses-a"))?.records).toHaveLength(steps + 1);
  await storage.close();
});

test("a database on a full disk can be read, and a new one is refused without a trace of it", async (t) => {
  const disk = mountDisk(t);
  const path = `${disk.folder}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit([creating("ses-1")], 1);
  await storage.close();
  disk.fill();

  const reader = openSqliteReader({ path });
  expect(await reader.sessions({ limit: 10 })).toHaveLength(1);
  reader.close();
  await expect(ownSqliteStorage({ path: `${disk.folder}/new.db` })).rejects.toMatchObject({
    code: "storage_full",
  });
  expect(() => openSqliteReader({ path: `${disk.folder}/new.db` })).toThrow(
    expect.objectContaining({ code: "file_not_found" }),
  );
});

test("a database on a read-only disk is refused to a writer and read by a reader", async (t) => {
  const disk = mountDisk(t);
  const path = `${disk.folder}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit([creating("ses-1")], 1);
  await storage.close();
  disk.remount("ro");

  for (const target of [path, `${disk.folder}/new.db`]) {
    const error = {
      code: "storage_readonly",
      message: expect.stringContaining(target),
      fix: expect.any(String),
    };
    await expect(ownSqliteStorage({ path: target })).rejects.toMatchObject(error);
  }
  const reader = openSqliteReader({ path });
  expect(await reader.session("ses-1")).toMatchObject({ status: "submitted" });
  expect(reader.verify().problems).toEqual([]);
  reader.close();
});

interface Disk {
  readonly folder: string;
  remount(options: string): void;
  fill(): void;
}

function mountDisk(t: TestContext): Disk {
  const folder = newFolder();
  const mount = (...args: string[]) => spawnSync("mount", args, { stdio: "ignore" }).status === 0;
  if (process.platform !== "linux" || !mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)) {
    return t.skip("a small disk can only be mounted by root, on Linux");
  }
  onTestFinished(() => void spawnSync("umount", ["--lazy", folder]));
  return {
    folder,
    remount: (options) => expect(mount("-o", `remount,${options}`, folder)).toBe(true),
    fill: () => {
      // The part that was written before the disk was full stays written.
      expect(() => writeFileSync(`${folder}/filler`, Buffer.alloc(4 * MIB))).toThrow("ENOSPC");
    },
  };
}

const LARGE = JSON.stringify("x".repeat(60_000));

function creating(sessionId: string) {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: LARGE, seed: 1, flags: 0, format: 1 } as const;
}

/** Repeat until it throws. */
async function fillWithSessions(
  commit: (sessionId: string) => Promise<unknown>,
): Promise<{ committed: number; error: unknown }> {
  for (let committed = 0; committed < 1_000; committed++) {
    try {
      await commit(`ses-${committed}`);
    } catch (error) {
      return { committed, error };
    }
  }
  throw new Error("the disk is never full");
}

// A checkpoint that ran out of room leaves a file that is only whole together with its log.
test("D1: a process that ended on a full disk leaves a database that opens again", ofCampaign, async (t) => {
  const disk = mountDisk(t);
  const path = `${disk.folder}/test.db`;
  const script = `
    import { ownSqliteStorage } from ${JSON.stringify(new URL("../index.ts", import.meta.url).href)};
    const storage = await ownSqliteStorage({ path: ${JSON.stringify(path)} });
    const large = JSON.stringify("x".repeat(20_000));
    for (let i = 0; ; i++) await storage.commit([{ type: "create_session", sessionId: "ses-" + i, agent: { name: "a", version: "1" }, input: large, seed: 1, flags: 0, format: 1 }], 1)
      .catch(async (error) => { try { await storage.close(); } catch {} console.log(i, error.code); process.kill(process.pid, "SIGKILL"); });
  `;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const [committed, code] = stdout.trim().split(" ");
  expect(code).toBe("storage_full");

  const reader = openSqliteReader({ path });
  expect(await reader.sessions({ limit: 1_000 })).toHaveLength(Number(committed));
  reader.close();
  disk.remount("size=8m");
  const storage = await ownSqliteStorage({ path });
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});
