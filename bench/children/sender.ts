// Another process that sends signals to sessions, as `holdfast signal` does: over the socket of a file's
// owner, or to the server.

import { mintId } from "@holdfast/core";
import { openPostgresStorage } from "@holdfast/storage/postgres";
import { connectSqliteStorage } from "@holdfast/storage/sqlite";
import { nowMs } from "../measure.ts";
import { readPlace } from "../postgres.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { place } = optionsOf<{ place: string }>();
const database = readPlace(place);
const storage =
  database === undefined ? await connectSqliteStorage({ path: place }) : await openPostgresStorage(database);
if (storage === undefined) throw new Error(`nobody owns ${place}`);

process.on("message", (message) => {
  const { sessionId, payload } = message as { sessionId: string; payload: unknown };
  const sentAt = nowMs();
  const signalId = mintId("sig", Date.now(), () => Math.trunc(Math.random() * 2 ** 32));
  const change = {
    type: "send_signal",
    sessionId,
    signalId,
    name: "go",
    payload: JSON.stringify(payload),
  } as const;
  void storage.commit([change], Date.now()).then(([result]) => {
    if (result?.status !== "stored") throw new Error(`the signal was ${result?.status}`);
    notifyParent("sent", { at: sentAt });
  });
});
process.once("disconnect", () => void storage.close());
notifyParent("ready");
