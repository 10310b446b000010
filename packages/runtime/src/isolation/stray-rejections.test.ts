// Whose a stray rejection is: known while a runtime is open, and of no cost to anybody afterwards.

import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test } from "vitest";
import type { RunningCode } from "../session/driver-environment.ts";
import { watchStrayRejections } from "./stray-rejections.ts";

// What stays in use is handed on with every promise of the process, in Node 22 by all that were ever opened.
test("who stops watching leaves neither a listener nor a context in use", () => {
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
