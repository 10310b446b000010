// Notices between processes: whoever stored something that others may wait for says so, and who hears it looks at once.
//
//   commit-notices-1. A notice is only a reason to look, and says nothing. Nothing is decided by it, it may be lost or
//       come twice; what is missed is found by looking every so often (`arrival-poll.ts`).
//   commit-notices-2. It is told after the transaction, and nobody waits for it: the first at once, more within
//       `COALESCE_MS` as one.
//   commit-notices-3. Whoever listens looks once when it has begun to: what was told before that was not heard.
//   commit-notices-4. A database that has no notices says so, and is not asked again. A pooler between that loses them
//       is found out by one of our own that does not come back, which is said once. The connection stays, so that one
//       that was only late changes nothing but that something was said; a new one is listened to in the same way.
//
// LISTEN and NOTIFY are the only words here that are PostgreSQL's alone.

import { randomUUID } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Hearing, Listening, Row, Statement } from "../database/database.ts";
import { sqlState } from "../database/pg-errors.ts";

/** At most one so often. */
const COALESCE_MS = 5;
/** How long one's own first notice may take to come back once it was told. */
const ECHO_MS = 10_000;
/** After how long it is tried again when the connection was lost; doubled each time that it cannot be made. */
const AGAIN_MS = { least: 100, most: 10_000 };

/** What it says need not survive anything: it waits for no sync. */
const TELL: Statement = {
  name: "tell",
  text: "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
};

/** What it needs of a database. */
export interface NoticeDatabase {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
  /** @param channel a name that needs no quotes. */
  listen(channel: string, hearing: Hearing): Promise<Listening>;
}

/** A short name, whatever the schema's is. Two of the same number only look more often. */
export function channelOf(schema: string): string {
  return `holdfast_${crc32(schema).toString(36)}`;
}

export interface CommitNoticesOptions {
  readonly db: NoticeDatabase;
  /** The schema they are about. */
  readonly schema: string;
  /** Somebody else stored something. */
  readonly heard: () => void;
  /** Called once at most, with what people should know. */
  readonly warn: (text: string) => void;
  readonly echoMs?: number;
}

export class CommitNotices {
  readonly #options: CommitNoticesOptions;
  readonly #channel: string;
  /** What this process says, so that it does not listen to itself. */
  readonly #self = randomUUID();
  readonly #probe = randomUUID();
  #canTell = true;
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

  // ---- telling ---------------------------------------------------------------------------------------------------

  /** commit-notices-2. */
  tell(): void {
    if (!this.#canTell) return;
    if (this.#pause !== undefined) {
      this.#hasMore = true;
      return;
    }
    void this.#say(this.#self);
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (!this.#hasMore) return;
      this.#hasMore = false;
      this.tell();
    }, COALESCE_MS);
    this.#pause.unref();
  }

  /** Whether it was told. */
  async #say(what: string): Promise<boolean> {
    try {
      await this.#options.db.run(TELL, [this.#channel, what]);
      return true;
    } catch (error) {
      // The server has no such thing; anything else passes.
      if (isUnknownToServer(error)) this.#canTell = false;
      return false;
    }
  }

  // ---- listening -------------------------------------------------------------------------------------------------

  listen(): void {
    if (this.#listening !== undefined || !this.#canListen) return;
    let isHeard = false;
    const listening = this.#options.db.listen(this.#channel, {
      heard: (said) => {
        if (said === this.#probe) isHeard = true;
        else if (said !== this.#self) this.#options.heard();
      },
      lost: () => this.#listenAgain(listening),
    });
    this.#listening = listening;
    listening.then(
      async () => {
        if (this.#listening !== listening) return;
        this.#againMs = AGAIN_MS.least;
        this.#options.heard(); // commit-notices-3.
        if (!(await this.#say(this.#probe))) return;
        const judge = (): void => {
          if (!isHeard && this.#listening === listening) this.#warn("one of our own did not come back");
        };
        // Not before what has arrived is read: in a process that was busy for so long the timer is due first.
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

  /** commit-notices-4. */
  #warn(why: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(
      `PostgreSQL's notices do not reach us (${why}): what other processes store is found by looking, a few times a second. ` +
        "A pooler that shares connections between transactions loses them; a direct connection, or one pooled by session, does not",
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
    this.#canTell = false;
    clearTimeout(this.#pause);
    await this.stop();
  }
}

/** It has no notices, or does not let us use them. */
function isUnknownToServer(error: unknown): boolean {
  return /^(0A|42)/.test(sqlState(error) ?? "");
}
