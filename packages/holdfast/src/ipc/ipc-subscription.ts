// `IpcSubscription`: the committed events of one session, sent to a host as they are committed.
//
//   - Each event after `afterSeq` is sent once and in order, whichever process committed it. A place that is
//     opened again in between changes nothing.
//   - The session's row is sent after the events that led to it. A row with an ended status is therefore the
//     last message before `unsubscribed`.
//   - It reads only as fast as the host does (ipc-output-1).

import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, isEnded, type Session } from "@holdfast/core";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { sessionJson } from "@holdfast/terminal/view/session-json";
import { ipcError } from "./ipc-error.ts";
import type { IpcMessage } from "./ipc-messages.ts";
import type { IpcPlace } from "./ipc-place.ts";

export interface SubscriptionOptions {
  readonly sessionId: string;
  readonly afterSeq: number;
  /** Resolves with the place when it is open. */
  readonly place: () => Promise<IpcPlace>;
  readonly send: (message: IpcMessage) => Promise<void>;
  /** Called once, after the last message. */
  readonly over: () => void;
}

/** How long a place that is away is waited for before it is asked again. */
const AWAY_MS = 1_000;
const PASSING: ReadonlySet<string> = new Set([
  "storage_unavailable",
  "unavailable",
  "rate_limited",
  "locked",
]);

export class IpcSubscription {
  readonly #options: SubscriptionOptions;
  readonly #stopping = new AbortController();
  #lastSeq: number;
  #shown = "";

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.#lastSeq = options.afterSeq;
    void this.#run();
  }

  /** Ends it. Nothing more is sent after the message that is being written. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { sessionId, send, over } = this.#options;
    const { signal } = this.#stopping;
    let last: IpcMessage | undefined;
    while (last === undefined && !signal.aborted) {
      const place = await this.#options.place();
      try {
        last = await this.#follow(place);
      } catch (error) {
        if (place.closed.aborted) continue;
        const isPassing = HoldfastError.is(error) && PASSING.has(error.code);
        if (isPassing) await delay(AWAY_MS, undefined, { signal }).catch(() => undefined);
        else last = { type: "unsubscribed", sessionId, reason: "failed", error: ipcError(error) };
      }
    }
    if (last !== undefined && !signal.aborted) await send(last);
    over();
  }

  /**
   * Over one opened place. @returns the last message; nothing when the place was closed.
   *
   * @throws HoldfastError of its reader.
   */
  async #follow(place: IpcPlace): Promise<IpcMessage | undefined> {
    const { sessionId, send } = this.#options;
    const { signal } = this.#stopping;
    let news = Promise.withResolvers<void>();
    const stop = place.watch(sessionId, () => news.resolve());
    const over = AbortSignal.any([signal, place.closed]);
    over.addEventListener("abort", () => news.resolve(), { once: true });
    try {
      let tail: JournalTail | undefined;
      for (;;) {
        news = Promise.withResolvers<void>();
        if (over.aborted) return undefined;
        // The row is read before the journal, so that nothing that was committed before an end is missed.
        const session = await place.reader.session(sessionId);
        if (session === undefined) return { type: "unsubscribed", sessionId, reason: "deleted" };
        tail ??= new JournalTail(place.reader, sessionId, this.#from(session));
        await tail.advance(async (event) => {
          if (event.seq <= this.#lastSeq || signal.aborted) return;
          await send({ type: "event", sessionId, event });
          this.#lastSeq = event.seq;
        });
        await this.#show(session);
        if (isEnded(session.status)) return { type: "unsubscribed", sessionId, reason: "ended" };
        if (session.move?.isDone === true) return { type: "unsubscribed", sessionId, reason: "moved" };
        await news.promise;
      }
    } finally {
      stop();
    }
  }

  /** Events name what earlier records asked for, and a checkpoint closes all of that. */
  #from({ checkpointSeq }: Session): number {
    return checkpointSeq !== undefined && this.#lastSeq >= checkpointSeq ? checkpointSeq : 0;
  }

  async #show(session: Session): Promise<void> {
    const { sessionId, send } = this.#options;
    const { status, pauseReason, waits, move, error } = session;
    const shown = JSON.stringify([status, pauseReason, waits, move, error]);
    if (shown === this.#shown || this.#stopping.signal.aborted) return;
    this.#shown = shown;
    await send({
      type: "session",
      sessionId,
      session: sessionJson(session) as { sessionId: string; status: typeof status },
    });
  }
}
