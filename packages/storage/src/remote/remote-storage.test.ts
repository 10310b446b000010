import { isCampaign } from "@holdfast/testkit/campaign";
import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { openRemoteStorage } from "./index.ts";
import { serveStorage, TOKEN } from "./testing/storage-server.ts";

// The same promises over a network. Storing content, and keeping it, is the coordinator's affair. In
// `npm test` HTTP/2 runs the parts with streams and groups of requests, and HTTP/1.1 one part. In the
// conformance campaign both run all parts, with more random sequences.
const PARTS = {
  "2": ["batches", "groups", "claims", "signals", "followers", "what is due"],
  "1.1": ["batches"],
} as const;

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
  storageConformance(subject, isCampaign ? undefined : PARTS[httpVersion]);
}
