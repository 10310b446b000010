// Connection: one client of the owner, as the owner sees it. Bytes come in, requests go out, answers go back.
//
//   - A line that is no request ends the connection. A request that is not of the port is answered with a
//     usage error.
//   - Nothing piles up. While a long answer may be under way, no further request is handled and none is read
//     from the socket. The same holds while the client has unread answers.
//   - It keeps no process alive.

import { randomInt } from "node:crypto";
import type { Socket } from "node:net";
import { type Arrival, Fifo, MIB, toError, type WireError } from "@holdfast/core";
import { LineSplitter } from "./lines.ts";
import { LINE_BYTES_MAX, parseRequest, type Hello, type Message, type Request } from "./wire.ts";

/** A client with more than this unread is not read from until it has caught up. */
const OUTPUT_BYTES_HIGH = MIB;
const OUTPUT_BYTES_MAX = 64 * MIB;
const NOT_OF_THE_PORT: WireError = {
  code: "usage",
  message: "the owner of the database received a request that the storage port does not have",
  expected: "a method of the port, with all its fields and nothing of another type",
  fix: "use the same version of Holdfast for both processes",
};

export interface ConnectionEvents {
  request(request: Request): void;
  /** Called once or more often; no request comes after it. */
  closed(): void;
}

export class Connection {
  /** The number of its process (socket-server-3). */
  client = clientNumber();
  isSubscribed = false;
  /**
   * A request is under way whose answer may be long: the next one waits, or answers would pile up unseen.
   */
  isAsking = false;
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #splitter = new LineSplitter(LINE_BYTES_MAX);
  readonly #lines = new Fifo<string>();

  constructor(socket: Socket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.unref(); // It keeps no process alive.
    socket.on("data", (chunk: Buffer) => {
      const lines = this.#splitter.push(chunk);
      if (lines === "too_long") return void socket.destroy();
      for (const line of lines) this.#lines.push(line);
      this.#pump();
    });
    socket.on("drain", () => this.#pump());
    // At the client's end of the stream, not at the socket's: so a claim is free when the client's `close` is
    // done.
    socket.on("end", () => this.#closed());
    socket.on("close", () => this.#closed());
    socket.on("error", () => socket.destroy());
  }

  #closed(): void {
    this.#lines.drain();
    this.#events.closed();
  }

  write(message: Message | Hello): void {
    if (!this.#socket.writable) return;
    // A long answer is a client's right; a second one that it does not read is not.
    if (this.#socket.writableLength > OUTPUT_BYTES_MAX) return void this.#socket.destroy();
    this.#socket.write(`${stringify(message)}\n`);
  }

  /** Answers the request that is under way. */
  answer(message: Message): void {
    this.isAsking = false;
    this.write(message);
    this.#pump();
  }

  notify(arrival: Arrival): void {
    if (this.isSubscribed) this.write({ arrival });
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Handles what was read, until the client is behind with reading. */
  #pump(): void {
    while (this.#lines.size > 0 && !this.isAsking && !this.#isBehind()) {
      const request = parseRequest(this.#lines.shift()!);
      if (request === undefined) {
        this.#lines.drain();
        this.#socket.destroy();
        return;
      }
      if ("method" in request) this.#events.request(request);
      else this.write({ id: request.id, error: NOT_OF_THE_PORT });
    }
    if (this.#lines.size > 0) this.#socket.pause();
    else this.#socket.resume();
  }

  #isBehind(): boolean {
    return this.#socket.writableLength > OUTPUT_BYTES_HIGH;
  }
}

/** A number that no other process has. */
export function clientNumber(): number {
  return randomInt(2, 2 ** 47);
}

/** An answer that is longer than a text can be is an error of its own, not of the process. */
function stringify(message: Message | Hello): string {
  try {
    return JSON.stringify(message);
  } catch (error) {
    const code = "limit_exceeded" as const;
    const reason = `the answer is too long for the socket: ${toError(error).message}`;
    return JSON.stringify({
      id: "id" in message ? message.id : 0,
      error: { code, message: reason },
    } satisfies Message);
  }
}
