import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "./memory-storage.ts";

storageConformance({ name: "memory", follows: true, open: async () => new MemoryStorage() });
