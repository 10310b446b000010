import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { openRemoteStorage } from "./index.ts";
import { serveStorage, TOKEN } from "./testing/storage-server.ts";

// The same promises over a network, by either version of HTTP. What is kept, and survives, is the coordinator's affair.
for (const httpVersion of ["2", "1.1"] as const) {
  storageConformance({
    name: `remote, over HTTP/${httpVersion}, a coordinator on memory`,
    open: async () => {
      const server = await serveStorage(new MemoryStorage(), { httpVersion });
      const storage = openRemoteStorage({ url: server.url, token: TOKEN, httpVersion });
      const close = storage.close.bind(storage);
      return Object.assign(storage, {
        close: async () => {
          await close();
          await server.close();
        },
      });
    },
  });
}
