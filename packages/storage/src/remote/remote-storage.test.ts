import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { openRemoteStorage } from "./index.ts";
import { serveStorage, TOKEN } from "./testing/storage-server.ts";

// The same promises over a network. Storing content, and keeping it, is the coordinator's affair. HTTP/2 runs
// the whole suite. In `npm test` HTTP/1.1 runs the parts with streams, groups of requests and large bodies. In the conformance
// campaign it runs all parts, and both play more random sequences (`HOLDFAST_CAMPAIGN`).
const isCampaign = process.env["HOLDFAST_CAMPAIGN"] !== undefined;
const OVER_HTTP_1 = isCampaign
  ? undefined
  : (["batches", "groups", "signals", "followers", "what is due", "what is kept"] as const);

for (const httpVersion of ["2", "1.1"] as const) {
  const subject: StorageSubject = {
    name: `remote, over HTTP/${httpVersion}, a coordinator on memory`,
    sequences: isCampaign ? 300 : 40,
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
