// Readers of event streams: a connection of HTTP/1.1 each. Says when each event came. Some read nothing, if
// they are asked for.

import { get, type IncomingMessage } from "node:http";
import type { ReadersOptions } from "../workloads/streams.ts";
import { nowMs } from "../measure.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { url, token, sessionIds } = optionsOf<ReadersOptions>();
const seen: [key: string, at: number][] = [];
let open = 0;

for (const sessionId of sessionIds) watch(sessionId);
process.on("message", (message: { readonly stuck?: number; readonly sessionId?: string }) => {
  const { stuck, sessionId } = message;
  if (stuck === undefined || sessionId === undefined) return notifyParent("seen", { seen: seen.splice(0) });
  for (let i = 0; i < stuck; i++)
    connect(sessionId, (response) => void response.pause().on("error", () => {}));
});
process.once("disconnect", () => process.exit());

function watch(sessionId: string): void {
  connect(sessionId, (response) => {
    if (response.statusCode !== 200) throw new Error(`a reader was answered ${response.statusCode}`);
    if (++open === sessionIds.length) notifyParent("open");
    let rest = "";
    response.setEncoding("utf8").on("data", (text: string) => {
      const at = nowMs();
      const events = (rest + text).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        const seq = /^id: (\d+)\nevent: record$/m.exec(event)?.[1];
        if (seq !== undefined) seen.push([`${sessionId} ${seq}`, at]);
      }
    });
  });
}

function connect(sessionId: string, onResponse: (response: IncomingMessage) => void): void {
  const headers = { authorization: `Bearer ${token}` };
  get(`${url}/v1/sessions/${sessionId}/watch`, { agent: false, headers }, onResponse);
}
