// CommitNotices: a process that stores a change for others sends a notice, and the others poll at once.
//
//   - A notice is only a reason to poll, and has no content. It decides nothing, and may be lost or come
//     twice. The regular poll finds any change that was missed (`arrival-poll.ts`).
//   - A notice is sent after the transaction, and nobody waits for it. The first is sent at once; further
//     ones within `COALESCE_MS` are sent as one.
//   - A process polls once when it has begun to listen, because it has missed any earlier notice.
//   - A database without notices answers an error, and is not asked again. A pooler may lose notices. A
//     process finds that out by a notice to itself that does not come back, and warns once. It keeps
//     listening, in case the notice was only late. A new connection is listened to in the same way.
//
// LISTEN and NOTIFY are the only statements here that only PostgreSQL has.

import { randomUUID } from "node:crypto";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { crc32 } from "node:zlib";
import type { ListenHandlers, Listening, Row, Statement } from "../database/database.ts";
import { sqlState } from "../database/pg-errors.ts";

/** The least time between two notices. */
const COALESCE_MS = 5;
/** How long the first notice of a process may take to come back to it. */
const ECHO_MS = 10_000;
/** The time before the next try after a lost connection. It doubles with each failed try. */
const AGAIN_MS = { least: 100, most: 10_000 };

/** A notice need not survive anything, so it waits for no sync. */
const SEND: Statement = {
  name: "notify",
  text: "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
};

/** The part of a database that notices need. */
export interface NoticeDatabase {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
  /** @param channel a name that needs no quotes. */
  listen(channel: string, handlers: ListenHandlers): Promise<Listening>;
}

/** A short name for any schema. Two schemas with the same number only poll more often. */
export function channelOf(schema: string): string {
  return `holdfast_${crc32(schema).toString(36)}`;
}

export interface CommitNoticesOptions {
  readonly db: NoticeDatabase;
  /** The schema that the notices are about. */
  readonly schema: string;
  /** Called at each notice of another process. */
  readonly received: () => void;
  /** Called once at most, with a warning for people. */
  readonly warn: (text: string) => void;
  readonly echoMs?: number;
}

export class CommitNotices {
  readonly #options: CommitNoticesOptions;
  readonly #channel: string;
  /** The content of this process's notices, so that it ignores its own. */
  readonly #self = randomUUID();
  readonly #probe = randomUUID();
  #canSend = true;
  #canListen = true;
  #hasWarned = false;
  #hasMore = false;
  #pause: NodeJS.Timeout | undefined;
  #listening: Promise<Listening> | undefined;
  #againMs = AGAIN_MS.least;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CommitNoticesOptions) {
    this.#options = options;
    this.#channel = channelOf(options.schema);
  }

  // ---- notifying -----------------------------------------------------------------------------------------

  send(): void {
    if (!this.#canSend) return;
    if (this.#pause !== undefined) {
      this.#hasMore = true;
      return;
    }
    void this.#say(this.#self);
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (!this.#hasMore) return;
      this.#hasMore = false;
      this.send();
    }, COALESCE_MS);
    this.#pause.unref();
  }

  /** Answers whether the notice was sent. */
  async #say(what: string): Promise<boolean> {
    try {
      await this.#options.db.run(SEND, [this.#channel, what]);
      return true;
    } catch (error) {
      // The server has no such thing; anything else passes.
      if (isUnknownToServer(error)) this.#canSend = false;
      return false;
    }
  }

  // ---- listening ------------------------------------------------------------------------------------------

  listen(): void {
    if (this.#listening !== undefined || !this.#canListen) return;
    let isReceived = false;
    const listening = this.#options.db.listen(this.#channel, {
      received: (said) => {
        if (said === this.#probe) isReceived = true;
        else if (said !== this.#self) this.#options.received();
      },
      lost: () => this.#listenAgain(listening),
    });
    this.#listening = listening;
    listening.then(
      async () => {
        if (this.#listening !== listening) return;
        this.#againMs = AGAIN_MS.least;
        this.#options.received(); // It has missed any earlier notice.
        if (!(await this.#say(this.#probe))) return;
        const judge = (): void => {
          if (!isReceived && this.#listening === listening) this.#warn("its own notification did not arrive");
        };
        // Only after arrived data is read: in a process that was busy for so long, the timer is due first.
        setTimeout(() => setImmediate(judge), this.#options.echoMs ?? ECHO_MS).unref();
      },
      (error: unknown) => {
        if (!isUnknownToServer(error)) return this.#listenAgain(listening);
        if (this.#listening !== listening) return;
        this.#canListen = false;
        this.#warn((error as Error).message);
      },
    );
  }

  #listenAgain(lost: Promise<Listening>): void {
    if (this.#listening !== lost) return;
    this.#listening = undefined;
    this.#timer = setTimeout(() => this.listen(), this.#againMs);
    this.#timer.unref();
    this.#againMs = Math.min(this.#againMs * 2, AGAIN_MS.most);
  }

  #warn(why: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(
      `PostgreSQL's notices do not reach this process (${why}). It polls for changes of other processes instead, a few times a second. ` +
        "A pooler that shares connections between transactions loses notices; connect directly, or pool by session",
    );
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const listening = this.#listening;
    this.#listening = undefined;
    await listening?.then(
      (each) => each.close(),
      () => undefined,
    );
  }

  /** Tell nothing more. */
  async close(): Promise<void> {
    this.#canSend = false;
    clearTimeout(this.#pause);
    await this.stop();
  }
}

/** It has no notices, or does not let us use them. */
function isUnknownToServer(error: unknown): boolean {
  return /^(0A|42)/.test(sqlState(error) ?? "");
}
