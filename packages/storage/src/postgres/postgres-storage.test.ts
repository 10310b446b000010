// Every part of the suite. `npm test` plays fewer random sequences than the samples campaign does (`HOLDFAST_CAMPAIGN`).

import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { EmptiedSchema } from "./testing/emptied.ts";

const emptied = new EmptiedSchema();
/** Polling may repeat an arrival (arrival-poll-3), and these tests expect each arrival once. */
const NEVER_LOOKING = { notices: false, pollMs: 2 ** 30 };

storageConformance({
  name: "postgres",
  follows: true,
  sequences: process.env["HOLDFAST_CAMPAIGN"] === undefined ? 40 : 300,
  open: () => emptied.open(NEVER_LOOKING),
  reopen: async (storage) => {
    await storage.close();
    return emptied.reopen(NEVER_LOOKING);
  },
});
