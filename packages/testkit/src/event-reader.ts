// A reader of a session's events over server-sent events, that can be cut off at any moment and continue
// where it was.
//
//   - Only whole events count: an event that was cut in the middle is dropped.
//   - Each event has the number that follows the one before, also over connections; any other event is an
//     error at once.
//
// It reads the bytes of a socket directly, so that a test can also stop reading.

import { toError } from "@holdfast/core";
import { get, type ClientRequest, type IncomingMessage } from "node:http";

/** How a connection came to its end: the stream said so, it was cut, or there was none. */
export type ReadEnd = "ended" | "cut" | "refused";

export interface EventReaderOptions {
  readonly url: string;
  readonly token: string;
  readonly sessionId: string;
  /** Told of each record's position, as it has come. */
  readonly onRecord?: (seq: number) => void;
}

export class EventReader {
  readonly #options: EventReaderOptions;
  /** The records that were told, as JSON, by their position. */
  readonly records: string[] = [];
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #isPaused = false;
  /** The stream ended early, with an error event or without one: there are more events to come. */
  #isBroken = false;

  constructor(options: EventReaderOptions) {
    this.#options = options;
  }

  /**
   * Connect and read on from what was seen last, to the end of the connection.
   *
   * @param through the port of a proxy on this machine.
   */
  read(through?: number): Promise<ReadEnd> {
    const { url, token, sessionId } = this.#options;
    const last = this.records.length === 0 ? {} : { "last-event-id": String(this.records.length - 1) };
    const { host, port } = new URL(url);
    const headers = { host, authorization: `Bearer ${token}`, ...last };
    const where = { host: "127.0.0.1", port: through ?? port, agent: false, headers };
    this.#response = undefined;
    return new Promise((resolve, reject) => {
      const request = get({ ...where, path: `/v1/sessions/${sessionId}/watch` }, (response) => {
        this.#response = response;
        if (response.statusCode !== 200) {
          response.resume();
          return resolve("refused");
        }
        let rest = "";
        this.#isBroken = false;
        response.setEncoding("utf8").on("data", (text: string) => {
          try {
            rest = this.#take(rest + text);
          } catch (error) {
            reject(toError(error));
            request.destroy();
          }
        });
        response.on("error", () => {}); // It closes, too.
        response.once("close", () => resolve(response.complete && !this.#isBroken ? "ended" : "cut"));
        if (this.#isPaused) response.pause();
      });
      this.#request = request;
      request.once("error", () => resolve(this.#response === undefined ? "refused" : "cut"));
      request.once("close", () => resolve("cut"));
    });
  }

  /** Read nothing from here on, not even an end. */
  pause(): void {
    this.#isPaused = true;
    this.#response?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#response?.resume();
  }

  /** Close the connection, in the middle of whatever is under way. */
  cut(): void {
    this.#isBroken = true;
    this.#request?.destroy();
  }

  /** @returns what is not a whole event yet. */
  #take(text: string): string {
    const events = text.split("\n\n");
    for (const event of events.slice(0, -1)) {
      if (event.startsWith("event: error\n")) this.#isBroken = true;
      const [, id, record] = /^id: (\d+)\nevent: record\ndata: (.*)$/s.exec(event) ?? [];
      if (id === undefined) continue;
      const expected = this.records.length;
      if (Number(id) !== expected)
        throw new Error(`${this.#options.sessionId}: event ${id} came where ${expected} was to come`);
      const parsed = JSON.parse(record!) as { readonly record: unknown };
      this.records.push(JSON.stringify(parsed.record));
      this.#options.onRecord?.(expected);
    }
    return events.at(-1) ?? "";
  }
}
