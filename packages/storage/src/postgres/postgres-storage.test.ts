import type { AgentStorage } from "@holdfast/core";
import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { openPostgresStorage } from "./index.ts";
import { newSchema, sharedServerUrl } from "./testing/shared-server.ts";

const schemas = new WeakMap<AgentStorage, string>();

async function open(schema: string): Promise<AgentStorage> {
  const storage = await openPostgresStorage({ url: await sharedServerUrl(), schema });
  schemas.set(storage, schema);
  return storage;
}

storageConformance({
  name: "postgres",
  open: () => open(newSchema()),
  reopen: async (storage) => {
    await storage.close();
    return open(schemas.get(storage)!);
  },
});
