// PendingDeliveries: the order in which outcomes and notes reach the kernel, and which of them are dropped.

import { KernelStand } from "@holdfast/testkit/kernel-stand";
import { expect, test } from "vitest";
import type { EventDraft } from "../tasks/drafts.ts";
import { PendingDeliveries } from "./pending-deliveries.ts";

const AT = 2_000;

/** A kernel whose agent waits for two tasks, the ids of those tasks, and an empty queue. */
async function withTwoTasks() {
  const stand = new KernelStand(async (ctx) =>
    Promise.all([ctx.scheduleTask("work"), ctx.scheduleTask("other")]),
  );
  await stand.start();
  stand.seal();
  const [first, second] = stand.kernel.open.tasks().map(({ id }) => id) as [number, number];
  return { stand, kernel: stand.kernel, first, second, pending: new PendingDeliveries() };
}

function completed(task: number): EventDraft {
  return { type: "task_completed", task, attempt: 1, at: AT, payload: "1" };
}

function cancelRequested(): EventDraft {
  return { type: "cancel_requested", at: AT, deadlineAt: AT + 1_000 };
}

test("outcomes are delivered in the order in which they came, and a cancel before all of them", async () => {
  const { kernel, first, second, pending } = await withTwoTasks();
  expect(pending.isEmpty).toBe(true);
  pending.add(completed(second));
  pending.add(completed(first));
  pending.addFirst(cancelRequested());
  expect(pending.isEmpty).toBe(false);
  expect(pending.next(kernel)).toEqual(cancelRequested());
  expect(pending.next(kernel)).toEqual(completed(second));
  expect(pending.next(kernel)).toEqual(completed(first));
  expect(pending.next(kernel)).toBeUndefined();
  expect(pending.isEmpty).toBe(true);
});

test("a second outcome of a task and a second cancel are dropped", async () => {
  const { stand, kernel, first, second, pending } = await withTwoTasks();
  await stand.completeTask(first);
  await stand.cancel();
  pending.add(cancelRequested());
  pending.add(completed(first));
  pending.add(completed(second));
  expect(pending.next(kernel)).toEqual(completed(second));
  expect(pending.next(kernel)).toBeUndefined();
});

test("notes are added to the kernel once, when that is asked for", async () => {
  const { stand, kernel, pending } = await withTwoTasks();
  pending.note({ type: "warned", at: AT, payload: '"one"' });
  pending.note({ type: "warned", at: AT, payload: '"two"' });
  expect(pending.isEmpty).toBe(false);
  expect(pending.next(kernel)).toBeUndefined();
  expect(stand.seal().records).toEqual([]);
  pending.addNotes(kernel);
  expect(pending.isEmpty).toBe(true);
  pending.addNotes(kernel);
  expect(stand.seal().records).toMatchObject([{ payload: '"one"' }, { payload: '"two"' }]);
});

test("a drain stores each outcome of an open task once, and delivers none", async () => {
  const { stand, kernel, first, second, pending } = await withTwoTasks();
  await stand.completeTask(first);
  stand.seal();
  pending.add(completed(first));
  pending.add(completed(second));
  pending.add(cancelRequested());
  pending.keep(kernel);
  expect(pending.isEmpty).toBe(true);
  expect(stand.seal().records).toMatchObject([
    { type: "outcome_kept", task: second, outcome: "task_completed" },
  ]);
  pending.add(completed(second));
  pending.keep(kernel);
  expect(stand.seal().records).toEqual([]);
});

test("after a checkpoint only cancels are left", async () => {
  const { kernel, first, pending } = await withTwoTasks();
  pending.add(completed(first));
  pending.add(cancelRequested());
  pending.keepCancels();
  expect(pending.next(kernel)).toEqual(cancelRequested());
  expect(pending.isEmpty).toBe(true);
});
