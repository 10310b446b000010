// Peers: finds other storages of the same database that are gone, by time or, on this host, at once.
//
//   - An instance whose process is proven gone (`host-presence.ts`) is marked as silent since `-infinity`.
//     From then on every statement counts it as dead, in every process.
//   - A peer of this host that lives is connected to. The end of the connection says when to look again, and
//     proves nothing.
//   - The files of a dead peer are removed last, so that a process that dies before leaves the proof to
//     others.

import {
  findPresence,
  forgetPresence,
  readMark,
  type Connected,
  type PresenceMark,
} from "../../host-presence.ts";
import type { Database, Row, Statement } from "../database/database.ts";
import { livesSince, reap } from "./instance.ts";

/** All instances but one, and whether their last sign of life is recent enough. */
const PEERS: Statement = {
  name: "peers",
  text: `SELECT instance, presence, ${livesSince("said_at")} AS lives FROM instance WHERE instance <> $1`,
};

const SILENCE: Statement = {
  name: "silence",
  text: "UPDATE instance SET said_at = '-infinity' WHERE instance = ANY($1)",
};

export interface PeersOptions {
  readonly db: Pick<Database, "run">;
  /** Who looks. */
  readonly instance: string;
  /** These sessions were held by a peer that died, and by nobody now. */
  readonly released: (sessionIds: readonly string[]) => void;
}

export class Peers {
  readonly #options: PeersOptions;
  readonly #connected = new Map<string, Connected>();
  #looking: Promise<string[]> | undefined;
  #isClosed = false;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  /** The statement whose rows `heed` takes, for callers that read something else in the same round trip. */
  get question(): readonly [Statement, readonly unknown[]] {
    return [PEERS, [this.#options.instance]];
  }

  /** Release the claims of dead storages. Answers the sessions. */
  look(): Promise<string[]> {
    this.#looking ??= this.#options.db
      .run(...this.question)
      .then(async (rows) => (await this.heed(rows)) ?? [])
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** As `look`, with rows that were read already. Answers `undefined` where nobody died. */
  async heed(rows: readonly Row[]): Promise<string[] | undefined> {
    const marks = new Map<string, PresenceMark>();
    let someDied = false;
    for (const row of rows) {
      const mark = readMark((row["presence"] as string | null) ?? "");
      if (row["lives"] !== true) someDied = true;
      if (mark !== undefined) marks.set(row["instance"] as string, mark);
    }
    this.#leaveAllBut(marks);
    const gone = await this.#findGone(marks);
    if (gone.length > 0) await this.#options.db.run(SILENCE, [gone]);
    if (gone.length === 0 && !someDied) return undefined;
    const released = await this.reap();
    for (const instance of gone) forgetPresence(marks.get(instance)!);
    return released;
  }

  /** Release what is held by instances that are known to be dead, and by those that are known no more. */
  reap(): Promise<string[]> {
    return reap(this.#options.db, this.#options.instance);
  }

  close(): void {
    this.#isClosed = true;
    this.#leaveAllBut(new Map());
  }

  #leaveAllBut(instances: ReadonlyMap<string, unknown>): void {
    for (const [instance, connected] of this.#connected) {
      if (instances.has(instance)) continue;
      this.#connected.delete(instance);
      connected.leave();
    }
  }

  async #findGone(marks: ReadonlyMap<string, PresenceMark>): Promise<string[]> {
    const gone: string[] = [];
    const unknown = [...marks].filter(([instance]) => !this.#connected.has(instance));
    await Promise.all(
      unknown.map(async ([instance, mark]) => {
        const found = await findPresence(mark);
        if (found === "gone") gone.push(instance);
        else if (found !== "unknown") this.#stayConnected(instance, found);
      }),
    );
    return gone;
  }

  #stayConnected(instance: string, connected: Connected): void {
    if (this.#isClosed || this.#connected.has(instance)) return connected.leave();
    this.#connected.set(instance, connected);
    void connected.ended.then(async () => {
      if (this.#connected.get(instance) !== connected) return;
      this.#connected.delete(instance);
      // Where the database is away, the next look finds what this one did not.
      this.#options.released(await this.look().catch(() => []));
    });
  }
}
