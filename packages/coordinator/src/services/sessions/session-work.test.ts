import type { Change } from "@holdfast/core";
import { expect, test } from "vitest";
import { Unanswered } from "../runners/command-answers.ts";
import { auditedMerge } from "./session-work.ts";

/** The rows of the audit that a merge leaves. */
async function rowsOf(merge: () => Promise<object>): Promise<readonly unknown[]> {
  const rows: unknown[] = [];
  const commit = async (changes: readonly Change[]) => {
    for (const change of changes) if (change.type === "audited") rows.push(rowOf(change.audit));
  };
  await auditedMerge(commit, { sessionId: "ses_a" }, "admin:a", merge).catch(() => {});
  return rows;
}

type Audited = Extract<Change, { type: "audited" }>;

const rowOf = ({ outcome, details }: Audited["audit"]) => [outcome, details && JSON.parse(details)];

test("the audit keeps of an answer what git could have said, and nothing else", async () => {
  const commit = "a".repeat(40);
  expect(await rowsOf(async () => ({ into: "main", commit, isNew: true, more: "x" }))).toEqual([
    ["asked", undefined],
    ["done", { into: "main", commit, isNew: true }],
  ]);
  const made = { into: ["main"], commit: "not one", isNew: "yes" };
  expect(await rowsOf(async () => made)).toEqual([
    ["asked", undefined],
    ["done", undefined],
  ]);
  const [, done] = await rowsOf(async () => ({ into: "b".repeat(100_000) }));
  expect(JSON.stringify(done).length).toBeLessThan(300);
});

test("a merge whose answer did not arrive has an unknown outcome", async () => {
  const silent = new Unanswered("unavailable", "the runner has not answered");
  expect(await rowsOf(() => Promise.reject(silent))).toEqual([
    ["asked", undefined],
    ["unknown", undefined],
  ]);
});
