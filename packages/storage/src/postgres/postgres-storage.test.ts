import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { EmptiedSchema } from "./testing/emptied.ts";

const emptied = new EmptiedSchema();
/** Polling may repeat an arrival (arrival-poll-3), and these tests expect each arrival once. */
const NEVER_LOOKING = { notices: false, pollMs: 2 ** 30 };

storageConformance({
  name: "postgres",
  follows: true,
  open: () => emptied.open(NEVER_LOOKING),
  reopen: async (storage) => {
    await storage.close();
    return emptied.reopen(NEVER_LOOKING);
  },
});
