// Entries that an agent appends to its conversation: each has a parent, and is in the batch that asks for it.

import { KernelStand } from "@holdfast/testkit/kernel-stand";
import { expect, test } from "vitest";

test("a model's tool call and the tool's result are entries, each under the one before it", async () => {
  const call = { toolCallId: "c1", toolName: "search" };
  let ids: readonly string[] = [];
  const stand = new KernelStand(async (ctx) => {
    ids = [
      ctx.appendEntry({ role: "user", content: "find it" }),
      ctx.appendToolCall({ ...call, input: { for: "it" } }),
      ctx.appendToolResult({ ...call, output: "found", isError: false }),
    ];
    return "done";
  });
  await stand.start();
  const { entries } = stand.seal();
  expect(new Set(ids).size).toBe(3);
  expect(entries.map(({ id, parent, role }) => [id, parent, role])).toEqual([
    [0, undefined, "user"],
    [1, 0, "assistant"],
    [2, 1, "tool"],
  ]);
  expect(entries.slice(1).map(({ content }) => JSON.parse(content) as unknown)).toEqual([
    { type: "tool-call", ...call, input: { for: "it" } },
    { type: "tool-result", ...call, output: "found", isError: false },
  ]);
});

test("an entry without a parent begins a new conversation, and the earlier one can still be passed to a task", async () => {
  let refs: readonly unknown[] = [];
  const stand = new KernelStand(async (ctx) => {
    const first = ctx.appendEntry({ role: "user", content: "first" });
    ctx.appendEntry({ role: "user", content: "second" });
    ctx.appendEntry({ role: "user", content: "summary", parentId: null });
    ctx.appendEntry({ role: "user", content: "third" });
    refs = [ctx.conversation(), ctx.conversation(first)].map((ref) => ref.toJSON());
    return "done";
  });
  await stand.start();
  expect(stand.seal().entries.map(({ id, parent }) => [id, parent])).toEqual([
    [0, undefined],
    [1, 0],
    [2, undefined],
    [3, 2],
  ]);
  expect(refs).toEqual([{ $conversation: 3 }, { $conversation: 0 }]);
});

test("a conversation of another session faults the segment", async () => {
  const stand = new KernelStand(async (ctx) => ctx.conversation("ses_other-0"));
  expect(await stand.start()).toMatchObject({ type: "faulted", fault: { code: "usage" } });
});
