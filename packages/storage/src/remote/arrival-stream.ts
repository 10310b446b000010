// ArrivalStream: arrivals as they happen, over a stream that is opened again whenever it ends.
//
//   arrival-stream-1. Arrivals of changes that are made after `subscribe` are received: `ready` resolves once
//       the coordinator has begun to send.
//   arrival-stream-2. Arrivals may be missed while no stream is open. When a stream is opened again, the
//       listener therefore gets an arrival for every session that it holds.
//   arrival-stream-3. A stream that does not begin in time is closed and opened again. The same happens to a
//       stream that receives nothing for `SILENT_MS`, not even the coordinator's time. Its connection may be
//       cut without a message, or a proxy may hold the messages back.

import type { Arrival, Clock } from "@holdfast/core";

const RETRY_MS = [100, 200, 500, 1_000, 2_000, 5_000];
/** A coordinator sends its time three times as often. */
const SILENT_MS = 30_000;

export interface ArrivalStreamHost {
  /** How long the stream may take to begin. */
  readonly openMs: number;
  /**
   * Open the stream. `onReceived` is called at each message; after the first one, every later arrival is
   * sent.
   */
  open(signal: AbortSignal, onReceived: () => void): AsyncIterable<Arrival>;
  /** Sessions this process holds. */
  held(): Iterable<string>;
  readonly setTimer: Clock["setTimer"];
}

export class ArrivalStream {
  readonly #host: ArrivalStreamHost;
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #controller = new AbortController();
  #reading: Promise<void> | undefined;
  readonly #opened = Promise.withResolvers<void>();

  constructor(host: ArrivalStreamHost) {
    this.#host = host;
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is called twice and unsubscribed once.
    const notify = (arrival: Arrival): void => listener(arrival);
    this.#listeners.add(notify);
    this.#reading ??= this.#read();
    return () => void this.#listeners.delete(notify);
  }

  /** arrival-stream-1. Resolves at once when nobody listens, and when the first attempt has failed. */
  get ready(): Promise<void> | undefined {
    return this.#reading === undefined ? undefined : this.#opened.promise;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#controller.abort();
    this.#opened.resolve();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { signal } = this.#controller;
    let failures = 0;
    let isFirst = true;
    while (!signal.aborted) {
      const attempt = new AbortController();
      const giveUp = (): void => attempt.abort();
      signal.addEventListener("abort", giveUp);
      let isOpen = false;
      let cancelTimer = this.#host.setTimer(giveUp, this.#host.openMs); // arrival-stream-3.
      const onReceived = (): void => {
        cancelTimer();
        cancelTimer = this.#host.setTimer(giveUp, SILENT_MS);
        if (isOpen) return;
        isOpen = true;
        failures = 0;
        this.#opened.resolve();
        if (!isFirst) this.#lookAtAll();
        isFirst = false;
      };
      try {
        for await (const arrival of this.#host.open(attempt.signal, onReceived)) this.#announce(arrival);
      } catch {
        // The next call reports the reason; the stream only tries again later.
      }
      cancelTimer();
      signal.removeEventListener("abort", giveUp);
      this.#opened.resolve();
      isFirst = false;
      if (!signal.aborted) await this.#pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!);
    }
  }

  /**
   * A random time between half of `ms` and `ms`, so that clients that were cut off together do not return
   * together.
   */
  #pause(ms: number): Promise<void> {
    const { signal } = this.#controller;
    return new Promise((resolve) => {
      const done = (): void => {
        cancelTimer();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancelTimer = this.#host.setTimer(done, ms / 2 + (Math.random() * ms) / 2);
      signal.addEventListener("abort", done);
    });
  }

  /** arrival-stream-2. */
  #lookAtAll(): void {
    for (const sessionId of this.#host.held()) this.#announce({ sessionId, awaited: false });
  }

  #announce(arrival: Arrival): void {
    for (const listener of this.#listeners) listener(arrival);
  }
}
