// `watchStrayRejections` attributes rejections while a runtime is open, and costs nothing afterwards.

import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test } from "vitest";
import type { RunningCode } from "../tasks/task-session.ts";
import { watchStrayRejections } from "./stray-rejections.ts";

// A context in use is passed on with every promise of the process, and in Node 22 by every context that was
// ever opened.
test("the stop function leaves neither a listener nor a context in use", () => {
  const context = new AsyncLocalStorage<RunningCode>();
  const listeners = process.listenerCount("unhandledRejection");
  const stop = watchStrayRejections(context, () => {});
  const code = { sessionId: "ses_1" } as RunningCode;
  context.run(code, () => {
    expect(context.getStore()).toBe(code);
    stop();
    expect(context.getStore()).toBeUndefined();
  });
  expect(process.listenerCount("unhandledRejection")).toBe(listeners);
});
