import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { MemoryStorage } from "./memory-storage.ts";

storageConformance({ name: "memory", open: async () => new MemoryStorage() });
