// The order in which a turn's text and its events leave it.

import type { TaskContext } from "@holdfast/runtime";
import { expect, test } from "vitest";
import type { BudgetFence } from "./limits/budget-fence.ts";
import { TurnEvents, type StoredReport } from "./turn-reports.ts";

test("a piece of text is streamed when all that came before it is stored, and before what comes after it", async () => {
  const order: string[] = [];
  const stored = Promise.withResolvers<void>();
  const task = {
    taskId: "t",
    attempt: 1,
    streamToken: (text: string) => void order.push(text),
    signalSession: async (_name: string, { events }: StoredReport) => {
      await stored.promise;
      order.push(events.map(({ type }) => type).join("+"));
      return undefined;
    },
  } as unknown as TaskContext;
  const events = new TurnEvents({
    task,
    turn: 1,
    fence: { charged: () => {} } as unknown as BudgetFence,
    boundId: null,
    note: () => {},
    onError: () => {},
  });
  events.add({ type: "tool_result", id: "c", text: "x", isError: false });
  events.add({ type: "text_delta", text: "Fin" });
  events.add({ type: "text_delta", text: "ished" });
  events.add({ type: "text", text: "Finished" });
  events.add({ type: "notice", text: "n" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([]);
  stored.resolve();
  expect(await events.end()).toBe(2);
  expect(order).toEqual(["tool_result", "Fin", "ished", "text+notice"]);
});
