// Acknowledged commits survive, whatever ended the process and whatever that left of the write-ahead log.

import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";
import { SESSIONS } from "../testing/process.ts";
import { startProcess } from "../testing/spawn.ts";

const KILLS = isCampaign ? 20 : 4;
/** For a busy machine, where starting this many processes takes long. */
const LONG = { timeout: 180_000 };

describe("kill -9", () => {
  // The process cannot know that it is about to die, and a reader of its acknowledgement relies on the
  // commit.
  test(
    `H1: everything acknowledged before ${KILLS} kills at random moments is there, and whole`,
    LONG,
    async () => {
      const killAt = async (moment: number) => {
        const path = `${folder}/${moment}.db`;
        const child = startProcess("commit", path);
        await child.said(1);
        await sleep(moment);
        await child.kill();
        const acknowledged = child.lines.filter((line) => line.startsWith("ack ")).length;
        expect(acknowledged).toBeGreaterThan(0);
        // One group may have been committed without the process living to say so.
        expect((await readGroups(path)) - acknowledged).toBeOneOf([0, 1]);
      };
      const folder = newFolder();
      for (let i = 0; i < KILLS; i += 4) await Promise.all([i, i + 1, i + 2, i + 3].map(killAt));
    },
  );

  test("O1: a killed owner's lock is free at once, and its socket is replaced", async () => {
    const path = `${newFolder()}/test.db`;
    const child = startProcess("hold", path);
    await child.said(1);
    await expect(ownSqliteStorage({ path })).rejects.toMatchObject({ code: "locked" });
    await child.kill();
    expect(existsSync(`${path}-socket`)).toBe(true);

    const storage = await ownSqliteStorage({ path });
    expect(storage.warnings).toEqual([]);
    await storage.close();
    expect(existsSync(`${path}-socket`)).toBe(false);
  });

  test(
    "H1: a write-ahead log that was deleted after a crash is reported, and the content of the file is whole",
    ofCampaign,
    async () => {
      const folder = newFolder();
      const path = `${folder}/test.db`;
      const child = startProcess("commit", path);
      await child.said(20);
      await child.kill();
      copyFileSync(path, `${folder}/copy.db`);
      copyFileSync(`${path}-owner`, `${folder}/copy.db-owner`);

      const storage = await ownSqliteStorage({ path: `${folder}/copy.db` });
      expect(storage.warnings).toEqual([expect.stringContaining("write-ahead log")]);
      expect((await storage.verify()).problems).toEqual([]);
      await storage.close();

      // The negative space: with its log nothing is lost and nothing is said.
      const intact = await ownSqliteStorage({ path });
      expect(intact.warnings).toEqual([]);
      await intact.close();
      expect(await readGroups(path)).toBeGreaterThanOrEqual(19);
    },
  );
});

describe("a torn end of the write-ahead log", () => {
  // A machine that loses power may have written any part of what was not synced yet.
  test(
    "H2: cut or garbled anywhere, the database opens and shows a prefix of the groups, each whole",
    ofCampaign,
    async () => {
      const folder = newFolder();
      const path = `${folder}/test.db`;
      // Few groups, so that the log is not folded into the file. A log that is written again from its start
      // ends before its file does.
      await startProcess("die", path, 60).ended;
      const whole = await readGroups(path);
      const wal = readFileSync(`${path}-wal`);
      expect(wal.length).toBeGreaterThan(40_000);

      let longest = 0;
      for (let i = 0; i < 24; i++) {
        const copy = `${folder}/torn-${i}.db`;
        copyFileSync(path, copy);
        const keep = 32 + Math.floor(((wal.length - 32) * (i + 1)) / 25);
        const torn = i % 2 === 0 ? wal.subarray(0, keep) : garbled(wal, keep);
        writeFileSync(`${copy}-wal`, torn);
        const groups = await readGroups(copy);
        expect(groups).toBeGreaterThanOrEqual(longest);
        expect(groups).toBeLessThanOrEqual(whole);
        longest = groups;
      }
      expect(longest).toBeGreaterThan(0);
      expect(longest).toBeLessThan(whole);
      expect(statSync(`${path}-wal`).size).toBe(wal.length);
    },
  );
});

function garbled(bytes: Buffer, from: number): Buffer {
  const copy = Buffer.from(bytes);
  for (let i = from; i < Math.min(from + 64, copy.length); i++) copy[i] = copy[i]! ^ 0xa5;
  return copy;
}

/**
 * How many groups of `testing/process.ts` a database holds: the same number for every session, and each
 * complete.
 */
async function readGroups(path: string): Promise<number> {
  const reader = openSqliteReader({ path });
  try {
    expect(reader.verify().problems).toEqual([]);
    const counts = new Set<number>();
    for (const sessionId of SESSIONS) {
      const session = await reader.session(sessionId);
      const entries = await reader.entries(sessionId, 0, 1_000_000);
      const records = await reader.journal(sessionId, 0, 1_000_000);
      expect(entries.map(({ content }) => (JSON.parse(content) as { n: number }).n)).toEqual([
        ...entries.keys(),
      ]);
      expect(records).toHaveLength(entries.length * 2);
      expect(session?.nextSeq ?? 0).toBe(records.length);
      counts.add(entries.length);
    }
    expect(counts.size).toBe(1);
    return [...counts][0]!;
  } finally {
    reader.close();
  }
}
