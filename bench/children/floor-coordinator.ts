// The floor of a coordinator: rows that come over HTTP/2 are kept in groups, and that is answered. No tokens,
// checks or sessions.

import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { withFloor, type Floor, type Row } from "../floors.ts";
import type { StorageKind } from "../storages.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { storage: kind, folder } = optionsOf<{ storage: StorageKind; folder: string }>();

await withFloor(kind, folder, async (floor) => {
  const server = createServer();
  server.on("stream", (stream) => void answer(floor, stream));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  notifyParent("listening", { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  process.on("message", () => notifyParent("report", { rows: floor.count }));
  await once(process, "disconnect");
  process.exit();
});

async function answer(floor: Floor, stream: ServerHttp2Stream): Promise<void> {
  const rows = JSON.parse(await text(stream)) as readonly Row[];
  await Promise.all(rows.map((row) => floor.keep(row.session, row.seq, row.text)));
  stream.respond({ ":status": 200 });
  stream.end("{}");
}
