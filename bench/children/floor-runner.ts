// The floor of a runner. The rows of one turn of the event loop are one request, and one request is in flight
// at a time.

import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import type { FloorWork } from "../fleet.ts";
import { Floor, keepInOrder } from "../floors.ts";
import { eachOf, gaps, nowMs } from "../measure.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { url, index } = optionsOf<{ url: string; index: number }>();
const connection = connect(url);
const floor = new Floor(async (rows) => {
  const stream = connection.request({ ":method": "POST", ":path": "/" });
  stream.end(JSON.stringify(rows));
  await text(stream);
});

/** Sessions of earlier work and of other runners have other numbers. */
let used = 0;

process.on("message", (message) => void work(message as FloorWork));
process.once("disconnect", () => process.exit());
notifyParent("ready");

async function work({ sessions, steps, width }: FloorWork): Promise<void> {
  const first = index * 1_000_000 + used;
  used += sessions;
  const stepMs: number[] = [];
  await eachOf(sessions, width, async (session) => {
    const marks = [nowMs()];
    await keepInOrder(floor, first + session, steps, () => marks.push(nowMs()));
    stepMs.push(...gaps(marks));
  });
  notifyParent("done", { stepMs });
}
