// H9 on a real file: every scenario, a fault at commit and task boundaries, the file as a dead process left
// it.
//
// `npm test` plays every twelfth point of 16 scenarios. The scenarios begin at different points, so together
// they meet every kind of crash. The crash-points campaign plays all points (`HOLDFAST_CAMPAIGN`).

import { copyFileSync, existsSync, statSync, truncateSync } from "node:fs";
import type { AgentStorage } from "@holdfast/core";
import { crashEverywhere, crashScenarios, type CrashKind, type CrashSubject } from "@holdfast/testkit";
import { isCampaign, sampled } from "@holdfast/testkit/campaign";
import { describe, expect, test } from "vitest";
import { ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

const EVERY = isCampaign ? 1 : 12;

/** Cuts into the last frame of the log, which is the commit of the last transaction. */
const TORN_BYTES = 1_000;

function sqliteSubject(): CrashSubject {
  const paths = new WeakMap<AgentStorage, string>();
  const torn = new WeakSet<AgentStorage>();
  let folders = 0;
  const folder = newFolder();
  const nextPath = (): string => `${folder}/${folders++}.db`;
  const open = async (path: string): Promise<AgentStorage> => {
    const storage = await ownSqliteStorage({ path });
    paths.set(storage, path);
    return storage;
  };
  return {
    name: "sqlite",
    open: () => open(nextPath()),
    tear: async (storage) => void torn.add(storage),
    // A copy of the file and its log, as a dead process leaves them. Closing the storage would tidy up.
    async reopen(storage) {
      const from = paths.get(storage)!;
      const to = nextPath();
      copyFileSync(from, to);
      if (existsSync(`${from}-wal`)) {
        copyFileSync(`${from}-wal`, `${to}-wal`);
        if (torn.has(storage))
          truncateSync(`${to}-wal`, Math.max(0, statSync(`${to}-wal`).size - TORN_BYTES));
      }
      await storage.close();
      return open(to);
    },
  };
}

describe("H9: a crash at any point, and a resume, is the same as no crash (SQLite)", () => {
  const kinds = new Set<CrashKind>();

  test.each(
    sampled(
      crashScenarios.map((scenario, from) => ({ name: scenario.name, scenario, from })),
      16,
    ),
  )("$name", async ({ scenario, from }) => {
    const report = await crashEverywhere(scenario, sqliteSubject(), { every: EVERY, from });
    expect(report.failures).toEqual([]);
    expect(report.commits).toBeGreaterThan(1);
    for (const { kind } of report.points) kinds.add(kind);
  });

  test("the scenarios together meet every kind of point", ({ skip }) => {
    if (kinds.size === 0) skip("the scenarios were filtered out");
    expect([...kinds].sort()).toEqual([
      "before",
      "crash_after",
      "crash_before",
      "reply_lost",
      "task_end",
      "task_start",
      "torn",
    ]);
  });
});
