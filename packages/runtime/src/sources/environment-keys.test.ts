// Keys of the environment that nobody declares.

import { expect, test, vi } from "vitest";
import { createRuntime, defineAgent, defineTask, MemoryStorage } from "../index.ts";

test("a key of the environment is recorded nowhere, also where nobody declares it", async () => {
  vi.stubEnv("SERVICE_OF_TEST_TOKEN", "tok-0123456789abcdef");
  const leak = defineTask({ name: "leak", run: () => ({ sent: "Bearer tok-0123456789abcdef" }) });
  const agent = defineAgent({ name: "leaky", tasks: [leak], run: (ctx) => ctx.scheduleTask(leak, null) });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  expect(await (await runtime.start(agent)).result()).toEqual({ sent: "Bearer [secret]" });
  await runtime.close();
  vi.unstubAllEnvs();
});
