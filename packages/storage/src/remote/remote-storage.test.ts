import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { openRemoteStorage } from "./index.ts";
import { serveStorage, TOKEN } from "./testing/storage-server.ts";

// The same promises over a network. Storing content, and keeping it, is the coordinator's affair. HTTP/2 runs
// the whole suite. In `npm test` HTTP/1.1 runs the parts with streams, groups of requests and large bodies;
// in the conformance campaign it runs all parts (`HOLDFAST_CAMPAIGN`).
const OVER_HTTP_1 =
  process.env["HOLDFAST_CAMPAIGN"] === undefined
    ? (["batches", "groups", "signals", "followers", "what is due", "what is kept"] as const)
    : undefined;

for (const httpVersion of ["2", "1.1"] as const) {
  const subject: StorageSubject = {
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
  };
  storageConformance(subject, httpVersion === "1.1" ? OVER_HTTP_1 : undefined);
}
