// SharedLine: the way of one process to a database that several processes share, over all of its owners.
//
//   - When the owner has ended, the next call asks the next owner, or this process owns the database itself.
//     A call whose answer was lost is made again. That is safe, as the port says.
//   - The work of this process goes on: the next owner is told of the claims that are held here before
//     anything else is asked (`client-processes.ts`).
//   - A database that disappeared with its owner is lost. An empty one in its place would hide the loss.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defined, HoldfastError, UnavailableError } from "@holdfast/core";
import { showPresence, type Presence } from "../host-presence.ts";
import type { SqliteStorage } from "./engine/sqlite-storage.ts";
import { identityOf } from "./file/other-names.ts";
import type { OwnerInfo } from "./file/ownership.ts";
import type { ClientProcesses, Holding } from "./socket/client-processes.ts";
import type { SocketStorage } from "./socket/client.ts";
import { clientNumber } from "./socket/connection.ts";
import { UnendingClaims } from "./socket/unending-claims.ts";

/** A way to the database: over its owner's socket, or as its owner. */
export type Line =
  | { readonly role: "client"; readonly storage: SocketStorage }
  | { readonly role: "owner"; readonly storage: SqliteStorage; readonly processes: ClientProcesses };

export interface SharedLineOptions {
  readonly path: string;
  readonly first: Extract<Line, { readonly role: "client" }>;
  /** Reach the database, which must exist. */
  readonly reach: () => Promise<Line>;
}

/** How often one call is made over owners that end while they do it. */
const CALLS_MAX = 10;
const RETRY_MS = [20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

export class SharedLine {
  readonly claims = new UnendingClaims();
  /** Called with each line after the first. */
  onNext: (line: Line) => void = () => undefined;
  /** Whether this process must be connected although it asks for nothing. */
  isListening = false;
  owner: OwnerInfo;

  readonly #options: SharedLineOptions;
  readonly #file: string | undefined;
  readonly #client = clientNumber();
  readonly #lost = Promise.withResolvers<HoldfastError>();
  #lostWith: HoldfastError | undefined;
  #line: Line | undefined;
  #reaching: Promise<Line> | undefined;
  #presence: Promise<Presence | undefined> | undefined;
  #isReturning = false;
  #closing: Promise<void> | undefined;

  constructor(options: SharedLineOptions) {
    this.#options = options;
    this.#file = identityOf(options.path);
    this.owner = options.first.storage.owner;
    this.#use(options.first, false);
  }

  get lost(): Promise<HoldfastError> {
    return this.#lost.promise;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const line = this.#line ?? (await this.#lastLine());
    if (line?.role === "owner") line.processes.end(this.#client);
    else if (this.#presence !== undefined) await line?.storage.leave().catch(() => {});
    await line?.storage.close();
    await (await this.#presence)?.close();
  }

  /** Claims are released at the next owner; without claims there is nothing to say. */
  async #lastLine(): Promise<Line | undefined> {
    if (this.claims.size === 0) return this.#reaching?.catch(() => undefined);
    return this.#reach().catch(() => undefined);
  }

  /** In the order of the calls while the line lasts. */
  async call<T>(ask: (storage: Line["storage"]) => Promise<T>): Promise<T> {
    for (let n = 1; ; n++) {
      if (this.#closing !== undefined) throw closed(this.#options.path);
      const line = this.#line ?? (await this.#reach());
      try {
        return await ask(line.storage);
      } catch (error) {
        const isOver = line.role === "client" && line.storage.isOver && isUnavailable(error);
        if (!isOver || n === CALLS_MAX) throw error;
        this.#forget(line);
      }
    }
  }

  #forget(line: Line): void {
    if (this.#line === line) this.#line = undefined;
  }

  /** To be called before the first claim is asked for; calls after it wait until it is done. */
  beginHolding(): void {
    if (this.#presence !== undefined) return;
    this.#presence = showPresence(randomUUID());
    const line = this.#line;
    if (line?.role !== "client") return;
    this.#line = undefined;
    void this.#share(
      this.#settle(line, false).catch((error: unknown) => {
        if (line.storage.isOver) return this.#openNext();
        void line.storage.close();
        throw error;
      }),
    );
  }

  #reach(): Promise<Line> {
    return this.#reaching ?? this.#share(this.#openNext());
  }

  /** Every call waits for the same line. */
  #share(opening: Promise<Line>): Promise<Line> {
    this.#reaching = opening.finally(() => (this.#reaching = undefined));
    return this.#reaching;
  }

  async #openNext(): Promise<Line> {
    for (let n = 1; ; n++) {
      this.#refuseLost();
      const line = await this.#options.reach().catch((error: unknown) => {
        this.#refuseLost();
        throw error;
      });
      try {
        return await this.#settle(line, true);
      } catch (error) {
        if (line.role === "owner" || !line.storage.isOver || n === CALLS_MAX) {
          await line.storage.close();
          throw error;
        }
      }
    }
  }

  /** Say which claims are held here, and use the line. */
  async #settle(line: Line, isNext: boolean): Promise<Line> {
    if (this.#presence !== undefined) {
      const mark = (await this.#presence)?.mark;
      const claims = this.claims.all();
      const holding: Holding = { client: this.#client, claims, ...defined({ mark }) };
      if (line.role === "client") await line.storage.hold(holding);
      else line.processes.hold(holding, this);
    }
    this.#use(line, isNext);
    return line;
  }

  #use(line: Line, isNext: boolean): void {
    this.#line = line;
    this.owner = line.role === "client" ? line.storage.owner : { pid: process.pid, since: Date.now() };
    if (line.role === "client") line.storage.onOver = () => this.#ended(line);
    else void line.storage.lost?.then((error) => this.#lost.resolve(error));
    if (isNext) this.onNext(line);
  }

  #ended(line: Line): void {
    this.#forget(line);
    if (this.#presence !== undefined || this.isListening) void this.#comeBack();
  }

  /** Without a call that waits for it: the claims are to be known, and arrivals to be received. */
  async #comeBack(): Promise<void> {
    if (this.#isReturning) return;
    this.#isReturning = true;
    for (let n = 0; this.#line === undefined && this.#closing === undefined; n++) {
      try {
        await this.#reach();
      } catch {
        if (this.#lostWith !== undefined) break;
        await sleep(RETRY_MS[Math.min(n, RETRY_MS.length - 1)], undefined, { ref: false });
      }
    }
    this.#isReturning = false;
  }

  #refuseLost(): void {
    const { path } = this.#options;
    if (this.#lostWith === undefined && identityOf(path) !== this.#file) {
      this.#lostWith = databaseLost(path);
      this.#lost.resolve(this.#lostWith);
    }
    if (this.#lostWith !== undefined) throw this.#lostWith;
  }
}

function isUnavailable(error: unknown): boolean {
  return HoldfastError.is(error) && error.code === "storage_unavailable";
}

function closed(path: string): UnavailableError {
  return new UnavailableError("storage_unavailable", `the storage was closed: ${path}`, {
    fix: "open it again",
  });
}

function databaseLost(path: string): HoldfastError {
  return new HoldfastError(
    "storage_lost",
    `the database was removed or replaced while it was in use: ${path}`,
    {
      at: path,
      expected: "the database that another process owned",
      fix: "restore it from the copy that the owning process named when it ended",
    },
  );
}
