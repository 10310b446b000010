import { expect, test } from "vitest";
import { viewCall } from "./call.ts";
import type { JournalEvent } from "../journal-event.ts";
import { foldOutput, replyOf, viewResult } from "./reply.ts";
import { WorkItems } from "./work-items.ts";
import { WorkProgress } from "./work-progress.ts";

function workOf(...entries: readonly (readonly [role: string, content: unknown])[]): WorkItems {
  const work = new WorkItems();
  entries.forEach(([role, content], id) => work.add({ id, role, content, createdAt: id }));
  return work;
}

const edit = { id: "a", name: "edit_file", input: { path: "a.ts", oldText: "1", newText: "2" } };
const run = { id: "b", name: "shell", input: { command: "npm test" } };

test("a call and its result are one item, in the order of the calls", () => {
  const work = workOf(
    ["user", "mend it"],
    ["assistant", { text: "I look.", toolCalls: [edit, run] }],
    ["tool", { toolCallId: "b", name: "shell", text: "exit code 1\nboom" }],
  );
  expect(work.openCall?.name).toBe("edit_file");
  work.add({ id: 9, role: "tool", content: { toolCallId: "a", text: "edited" }, createdAt: 9 });
  expect(work.openCall).toBeUndefined();
  expect(work.items.map((item) => [item.type, item.key])).toEqual([
    ["said", "0"],
    ["said", "1"],
    ["call", "1.0"],
    ["call", "1.1"],
  ]);
  expect(work.items[2]).toMatchObject({ name: "edit_file", result: { at: 9 } });
});

test("a result without a known call is shown under its tool, and calls of code agents are calls", () => {
  const work = workOf(
    ["tool", { name: "shell", text: "late" }],
    ["assistant", { type: "tool-call", toolCallId: "x", toolName: "search", input: { query: "q" } }],
    ["tool", { type: "tool-result", toolCallId: "x", toolName: "search", output: { hits: 2 } }],
  );
  expect(work.items.map((item) => item.type === "call" && item.name)).toEqual(["shell", "search"]);
  const [, search] = work.items;
  expect(search?.type === "call" && viewResult(undefined, search.result?.content).output).toEqual([
    '{"hits":2}',
  ]);
  expect(replyOf("plain text").text).toBe("plain text");
});

test("an output that the agent has said last is known", () => {
  const work = workOf(["assistant", { text: "Done.", toolCalls: [] }], ["user", "Thanks"]);
  expect([
    work.said("Done."),
    work.said({ text: "Done." }),
    work.said("Thanks"),
    work.said(undefined),
  ]).toEqual([true, true, false, false]);
});

test("a plan replaces the plan before it of the same author", () => {
  const step = (text: string) => ({ steps: [{ text, status: "pending" }] });
  const work = workOf(
    ["plan", step("old")],
    ["plan", { ...step("of a sub-agent"), parentCallId: "t" }],
    ["user", { text: "go on", delivery: "steer" }],
    ["plan", step("new")],
  );
  expect(work.items.map((item) => (item.type === "plan" ? item.steps[0]?.text : item.type))).toEqual([
    "of a sub-agent",
    "receipt",
    "new",
  ]);
});

test("an output is folded to its beginning, and that of a failure to its end", () => {
  const call = viewCall("shell", run.input);
  const lines = Array.from({ length: 20 }, (_, n) => `line ${n}`);
  const good = viewResult(call, { text: ["exit code 0", "stdout:", ...lines].join("\n") });
  expect([good.hasFailed, foldOutput(call, good)]).toEqual([false, lines.slice(0, 3)]);
  const bad = viewResult(call, { text: ["exit code 2", ...lines].join("\n") });
  expect([bad.hasFailed, foldOutput(call, bad)]).toEqual([true, lines.slice(-8)]);
  const patched = viewResult(viewCall("apply_patch", {}), { text: "@@ -1 +1 @@\n-a\n+b" });
  expect(patched.change).toEqual([
    { type: "deleted", text: "a" },
    { type: "added", text: "b" },
  ]);
});

test("the steps that run are known until they end, are withdrawn, or their turn ends", () => {
  const progress = new WorkProgress();
  const usage = { model: "m", inputTokens: 5, outputTokens: 1, costMicroUsd: 10 };
  const event = (one: Partial<JournalEvent>): void => progress.event(one as JournalEvent);
  event({ type: "schedule_task", id: 1, kind: "build", at: 10 });
  event({ type: "schedule_task", id: 2, kind: "lint", at: 20 });
  event({ type: "schedule_task", id: 3, kind: "deploy" });
  expect([progress.steps, progress.since]).toEqual([["build", "lint", "deploy"], 10]);
  event({ type: "task_completed", task: 1, usage });
  event({ type: "withdraw", withdrawn: [{ task: 2, taskId: "s-2" }] });
  expect([progress.steps, progress.spent.costMicroUsd]).toEqual([["deploy"], 10]);
  event({ type: "checkpoint" });
  expect([progress.steps, progress.since]).toEqual([[], undefined]);
});
