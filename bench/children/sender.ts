// Another process that sends signals to sessions, as `holdfast signal` does: over the socket of the database's owner.

import { mintId } from "@holdfast/core";
import { connectSqliteStorage } from "@holdfast/storage/sqlite";
import { nowMs } from "../measure.ts";
import { optionsOf, tell } from "./parent.ts";

const { file } = optionsOf<{ file: string }>();
const storage = await connectSqliteStorage({ path: file });
if (storage === undefined) throw new Error(`nobody owns ${file}`);

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
    tell("sent", { at: sentAt });
  });
});
process.once("disconnect", () => void storage.close());
tell("ready");
