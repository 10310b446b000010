// Server-sent events: the answers of a stream for whoever reads it by REST.
//
//   event-stream-1. An event's id is the field the contract marks; a reader that comes back with it as `Last-Event-ID`
//       misses nothing.
//   event-stream-2. When more than `unreadBytes` wait in memory for a reader, nothing is made for it until it has read
//       them; so it is these, and the event that came last. What waits is bytes, and counted as such: a text has one or
//       two bytes a character here, and up to three on its way. If nothing of them moves for `stalledMs`, its
//       connection is cut, which no reader takes for the end. A stream that has nothing more to say to this reader is
//       answered with 204, by which an `EventSource` stops.
//   event-stream-3. What ends a stream before its time is an event `error` with the problem: readers would take a plain
//       end for a broken line.

import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { isFieldSet, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { HoldfastError } from "@holdfast/core";
import type { Exchange } from "./exchange.ts";
import { findField, valueOf } from "./fields.ts";
import { writeMessage } from "./json-write.ts";
import type { ApiLimits } from "./limits.ts";
import { NO_CONTENT } from "../call/caller.ts";
import { Refusal, toProblem } from "../call/refusal.ts";
import { taken } from "../store/taken.ts";

/** Sends each answer as it comes, until there are no more or the reader is gone. Throws only before anything was sent. */
export async function sendEvents(
  exchange: Exchange,
  desc: DescMessage,
  answers: AsyncGenerator<Message>,
  limits: ApiLimits,
  toError: (thrown: unknown) => HoldfastError,
  statusOf: () => number | undefined,
): Promise<void> {
  const { response, requestId } = exchange;
  // A stream that is refused is answered with a status: only then is there one.
  let next = answers.next();
  await Promise.race([next, wait(limits.silentMs, undefined, { ref: false })]);
  if (statusOf() === NO_CONTENT) {
    response.writeHead(NO_CONTENT).end();
    void answers.return(undefined);
    return;
  }
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write(":\n\n");
  const heartbeat = setInterval(() => {
    if (response.writableLength === 0) response.write(":\n\n");
  }, limits.heartbeatMs);
  try {
    for (;;) {
      const result = await next;
      if (result.done === true || response.destroyed) break;
      response.write(eventOf(desc, taken(result)));
      if (response.writableLength > limits.unreadBytes && !(await isRead(exchange, limits.stalledMs))) break;
      next = answers.next();
    }
    if (response.writableLength > limits.unreadBytes) response.destroy();
  } catch (thrown) {
    response.write(`event: error\ndata: ${JSON.stringify(toProblem(toError(thrown), requestId))}\n\n`);
  } finally {
    clearInterval(heartbeat);
    void answers.return(undefined);
    response.end();
  }
}

/** One event; its name is that of the member of the message's `oneof` that is set. */
function eventOf(desc: DescMessage, message: Message): Buffer {
  const id = findField(desc, ({ isEventId }) => isEventId);
  const name = desc.fields.find((field) => field.oneof !== undefined && isFieldSet(message, field))?.name;
  const lines = [
    ...(id !== undefined && isFieldSet(message, id) ? [`id: ${String(valueOf(id, message))}`] : []),
    ...(name === undefined ? [] : [`event: ${name}`]),
    // A user's JSON may have been given over several lines.
    ...writeMessage(desc, message)
      .split(/\r\n|\n|\r/)
      .map((line) => `data: ${line}`),
    "\n",
  ];
  return Buffer.from(lines.join("\n"));
}

/** `Last-Event-ID` as the field of the request that the contract marks. @throws Refusal `bad_event_id`. */
export function applyLastEventId(desc: DescMessage, message: Message, header: string | undefined): void {
  const field = findField(desc, ({ isLastEventId }) => isLastEventId);
  if (header === undefined || field === undefined) return;
  if (!/^\d{1,15}$/.test(header)) {
    throw new Refusal("bad_event_id", "this is not the id of an event of this stream", {
      at: "Last-Event-ID",
      expected: "the id of the last event that the client read, or no such header",
    });
  }
  (message as unknown as Record<string, unknown>)[field.localName] = BigInt(header);
}

/**
 * Whether the reader takes what waits for it (event-stream-2). A slow one does: Node tells of a time without any movement. It passes over the first such
 * time after a write, so that one is made short.
 */
async function isRead({ response }: Exchange, stalledMs: number): Promise<boolean> {
  const over = new AbortController();
  const { signal } = over;
  const comes = async (name: string): Promise<string> => {
    await once(response, name, { signal });
    return name;
  };
  const end = Promise.race([comes("drain"), comes("close")]);
  try {
    for (const quietMs of [1, stalledMs]) {
      response.setTimeout(quietMs);
      const came = await Promise.race([end, comes("timeout")]);
      if (came !== "timeout") return came === "drain";
    }
    return false;
  } finally {
    response.setTimeout(0);
    over.abort(); // Those that did not happen are waited for no longer.
  }
}
