import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { EmptiedSchema } from "./testing/emptied.ts";

const emptied = new EmptiedSchema();
/** What is found by looking may be told once more (arrival-poll-3), and listeners are to hear just what was done. */
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
