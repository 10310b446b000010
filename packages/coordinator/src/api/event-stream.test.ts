// Server-sent events to a reader that reads nothing, and when its connection is cut.

import { create } from "@bufbuild/protobuf";
import { WatchResponseSchema } from "@holdfast/proto";
import { afterEach, expect, test } from "vitest";
import { startStubApi, type StubApi } from "./testing/stub-api.ts";
import { openSocket, requestText } from "./testing/wire.ts";

let api: StubApi;
afterEach(() => api.close());

// The timer runs in the process that cuts: where the machine is busy, both are late.
test("a reader that reads nothing is cut after the time that is configured, not after twice as much", async () => {
  const stalledMs = 1_000;
  const ended = Promise.withResolvers<string>();
  api = await startStubApi(
    async function* () {
      try {
        for (;;) {
          const value = Buffer.from(`"${"x".repeat(1_000_000)}"`);
          yield create(WatchResponseSchema, { event: { case: "record", value } });
          late.refresh();
        }
      } finally {
        ended.resolve("cut");
      }
    },
    { limits: { stalledMs } },
  );
  const late = setTimeout(() => ended.resolve("late"), 1.6 * stalledMs);
  const socket = await openSocket(api.port);
  socket.pause().write(requestText(api.port, "GET /v1/sessions/a1/watch", ["Authorization: Bearer admin"]));
  expect(await ended.promise).toBe("cut");
  clearTimeout(late);
  socket.destroy();
});
