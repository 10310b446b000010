// `sendEvents` sends the answers of a stream as server-sent events, for readers over REST and of protocols
// beside the contract.
//
//   - Over REST, an event's id is the field that the contract marks. A reader that returns with it as
//     `Last-Event-ID` misses nothing.
//   - When more than `unreadBytes` wait for a slow reader, no further event is made until it has read them.
//     The memory then holds these bytes and the last event. Bytes are counted, because a character takes one
//     or two in memory and up to three on the wire. If none of them moves for `stalledMs`, the connection is
//     cut, which no reader mistakes for the end. A stream with nothing more for this reader is answered with
//     204, at which an `EventSource` stops.
//   - A stream that ends early sends an event `error` with the problem. Readers would mistake a plain end for
//     a broken connection.

import { once } from "node:events";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as wait } from "node:timers/promises";
import { isFieldSet, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Exchange } from "./exchange.ts";
import { findField, valueOf } from "./fields.ts";
import { writeMessage } from "./json-write.ts";
import type { ApiLimits } from "./limits.ts";
import { NO_CONTENT } from "../call/caller.ts";
import { Refusal } from "../call/refusal.ts";
import { taken } from "../store/taken.ts";

export interface Events<T> {
  readonly answers: AsyncGenerator<T>;
  readonly eventOf: (answer: T) => Buffer;
  /** The data of the event `error`, with which a stream ends early. */
  readonly errorOf: (thrown: unknown) => unknown;
  /** The status that the stream has instead of events, once its first answer was asked for. */
  readonly statusOf?: () => number | undefined;
}

/**
 * Sends each answer as it comes, until there are no more or the reader is gone. Throws only before the first
 * byte was sent.
 */
export async function sendEvents<T>(
  exchange: Exchange,
  { answers, eventOf, errorOf, statusOf }: Events<T>,
  limits: ApiLimits,
): Promise<void> {
  const { response } = exchange;
  // A stream that is refused is answered with a status, which is possible only before it begins.
  let next = answers.next();
  await Promise.race([next, wait(limits.silentMs, undefined, { ref: false })]);
  if (statusOf?.() === NO_CONTENT) {
    response.writeHead(NO_CONTENT).end();
    void answers.return(undefined);
    return;
  }
  // A proxy such as nginx would collect events before it passes them on.
  response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" });
  response.write(":\n\n");
  const heartbeat = setInterval(() => {
    if (response.writableLength === 0) response.write(":\n\n");
  }, limits.heartbeatMs);
  try {
    for (;;) {
      const result = await next;
      if (result.done === true || response.destroyed) break;
      response.write(eventOf(taken(result)));
      // mutant: unread-output-unlimited
      if (response.writableLength > limits.unreadBytes && !(await isRead(exchange, limits.stalledMs))) break;
      next = answers.next();
    }
    if (response.writableLength > limits.unreadBytes) response.destroy();
  } catch (thrown) {
    response.write(`event: error\ndata: ${JSON.stringify(errorOf(thrown))}\n\n`);
  } finally {
    clearInterval(heartbeat);
    void answers.return(undefined);
    response.end();
  }
}

/** One event. Its name is that of the member that is set in the message's `oneof`. */
export function messageEvent(desc: DescMessage, message: Message): Buffer {
  const id = findField(desc, ({ isEventId }) => isEventId);
  const name = desc.fields.find((field) => field.oneof !== undefined && isFieldSet(message, field))?.name;
  const lines = [
    ...(id !== undefined && isFieldSet(message, id) ? [`id: ${String(valueOf(id, message))}`] : []),
    ...(name === undefined ? [] : [`event: ${name}`]),
    // A user's JSON may have several lines.
    ...writeMessage(desc, message)
      .split(/\r\n|\n|\r/)
      .map((line) => `data: ${line}`),
    "\n",
  ];
  return Buffer.from(lines.join("\n"));
}

/** Sets the request's field that the contract marks from `Last-Event-ID`. @throws Refusal `bad_event_id`. */
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
 * Whether the reader takes the waiting bytes. A slow reader does: Node's timeout needs a time without any
 * progress. Node ignores the first such time after a write, so that one is made short.
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
    over.abort(); // Ends the waits for the other events.
  }
}
