// `npm test` plays the parts that depend on statements of PostgreSQL. The postgres campaign plays the whole
// suite, with more random sequences.

import { isCampaign } from "@holdfast/testkit/campaign";
import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { EmptiedSchema } from "./testing/emptied.ts";

const emptied = new EmptiedSchema();
/** Polling may repeat an arrival (arrival-poll-3), and these tests expect each arrival once. */
const NEVER_LOOKING = { notices: false, pollMs: 2 ** 30 };

const PARTS = [
  "batches",
  "claims",
  "signals",
  "what is due",
  "removal of the ended",
  "any sequence",
] as const;

const subject: StorageSubject = {
  name: "postgres",
  follows: true,
  sequences: isCampaign ? 300 : 15,
  open: () => emptied.open(NEVER_LOOKING),
  reopen: async (storage) => {
    await storage.close();
    return emptied.reopen(NEVER_LOOKING);
  },
};
storageConformance(subject, isCampaign ? undefined : PARTS);
