import { storageWith } from "@holdfast/testkit/test-runtime";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, MemoryStorage, Watchdog } from "../index.ts";

test("a start answers although another process has claimed the new session before this one", async () => {
  const shared = new MemoryStorage();
  const storage = storageWith(shared, {
    claim: async (claim) => {
      await shared.claim({ ...claim, owner: "a faster process", unlessHeld: true });
      return shared.claim(claim);
    },
  });
  const watchdog = new Watchdog(); // With one, the session is stored before it is claimed.
  const runtime = createRuntime({ storage, watchdog });
  onTestFinished(() => Promise.all([runtime.close(), watchdog.close()]).then(() => {}));
  const { created } = await runtime.start(defineAgent({ name: "agent", run: async () => "done" }));
  expect(created).toBe(true);
  expect(runtime.live).toBe(0);
});
