import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { connectSqliteStorage, openSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

// The same promises over the owner's socket. There is nothing to reopen: what is kept is the owner's affair.
storageConformance({
  name: "sqlite over the owner's socket",
  open: async () => {
    const path = `${newFolder()}/test.db`;
    const owner = await openSqliteStorage({ path });
    const client = (await connectSqliteStorage({ path }))!;
    const close = client.close.bind(client);
    return Object.assign(client, {
      close: async () => {
        await close();
        await owner.close();
      },
    });
  },
});
