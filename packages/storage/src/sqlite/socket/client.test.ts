import { isCampaign } from "@holdfast/testkit/campaign";
import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { connectSqliteStorage, ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

// The same promises over the owner's socket. There is nothing to reopen: what is kept is the owner's affair.
//
// The owner's storage passes the whole suite itself. In `npm test` the socket runs the parts with every kind
// of message, and in the tests campaign all parts (`HOLDFAST_CAMPAIGN`).
const OVER_SOCKET = isCampaign
  ? undefined
  : (["batches", "groups", "claims", "signals", "what is due"] as const);

const subject: StorageSubject = {
  name: "sqlite over the owner's socket",
  open: async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await ownSqliteStorage({ path });
    const client = (await connectSqliteStorage({ path }))!;
    const close = client.close.bind(client);
    return Object.assign(client, {
      close: async () => {
        await close();
        await owner.close();
      },
    });
  },
};
storageConformance(subject, OVER_SOCKET);
