import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { EmptiedSchema } from "./testing/emptied.ts";

const emptied = new EmptiedSchema();

storageConformance({
  name: "postgres",
  follows: true,
  open: () => emptied.open(),
  reopen: async (storage) => {
    await storage.close();
    return emptied.reopen();
  },
});
