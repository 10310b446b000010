// SocketStorage: the storage port over the owner's socket, for a process that does not own the database.
//
//   - Every request is answered or rejected. When the connection ends, all open requests reject as
//     unavailable, because they may or may not have been done. Sending them again is safe (the port says
//     why). `SharedStorage` does so.
//   - Arrivals come before the answer of the commit that made them, in the order in which they were stored.
//   - It keeps the process alive only while a request is under way.

import type { Socket } from "node:net";
import { dirname } from "node:path";
import { clearTimeout, setTimeout } from "node:timers";
import {
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type Due,
  type Entry,
  fromWireError,
  type HeldClaim,
  HoldfastError,
  LimitError,
  MIB,
  type SessionSnapshot,
  type SharedDrafts,
  type StorageReader,
  UnavailableError,
} from "@holdfast/core";
import type { Holding } from "./client-processes.ts";
import { LineSplitter } from "./lines.ts";
import { readSocketPath, type OwnerInfo } from "../file/ownership.ts";
import { openSocket } from "../file/open-socket.ts";
import { isOurFolder, type DatabasePaths } from "../file/paths.ts";
import { isHello, LINE_BYTES_MAX, PROTOCOL_VERSION, type Hello, type Message, type Request } from "./wire.ts";

/** How long an owner may take to say hello: one long slice of an agent (`LIMITS.sliceMs`) must fit in. */
export const HELLO_TIMEOUT_MS = 10_000;

/** Answers may be as long as the owner can make them. */
const ANSWER_BYTES_MAX = 512 * MIB;

/**
 * Connect to the owner of a database.
 *
 * @returns undefined when nobody listens.
 * @throws UnavailableError when a process listens and does not answer in time.
 * @throws HoldfastError `version_unsupported` when it speaks another protocol.
 */
export async function connectToOwner(
  paths: DatabasePaths,
  timeoutMs: number,
): Promise<SocketStorage | undefined> {
  const path = readSocketPath(paths);
  if (paths.socketFolder !== undefined && !isOurFolder(dirname(path))) return undefined;
  const socket = await openSocket(path);
  if (socket === undefined) return undefined;
  const storage = new SocketStorage(socket, paths);
  try {
    return (await storage.greet(timeoutMs)) ? storage : undefined;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

interface Waiter {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export class SocketStorage implements AgentStorage {
  readonly name = "sqlite";
  readonly durable = true;
  readonly reader: StorageReader;

  readonly #socket: Socket;
  readonly #paths: DatabasePaths;
  readonly #splitter = new LineSplitter(ANSWER_BYTES_MAX);
  readonly #waiters = new Map<number, Waiter>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #closed: Promise<void>;
  /** Called once when the connection has ended, before any request is rejected. */
  onOver: () => void = () => undefined;
  #greeted: ((hello: Hello | HoldfastError | undefined) => void) | undefined;
  #owner: OwnerInfo | undefined;
  #nextId = 1;
  #isSubscribed = false;
  #isClosing = false;

  constructor(socket: Socket, paths: DatabasePaths) {
    this.#socket = socket;
    this.#paths = paths;
    this.#closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.onOver();
      this.#fail(this.#gone());
    });
    this.reader = {
      sessions: (query) => this.#ask("reader.sessions", { ...query, limit: finite(query.limit) }),
      counts: (query) => this.#ask("reader.counts", { ...query, limit: finite(query.limit) }),
      session: (sessionId) => this.#ask("reader.session", { sessionId }),
      journal: (sessionId, fromSeq, limit) =>
        this.#ask("reader.journal", { sessionId, fromSeq, limit: finite(limit) }),
      entries: (sessionId, from, limit) =>
        this.#ask("reader.entries", { sessionId, from, limit: finite(limit) }),
      pendingSignals: (sessionId) => this.#ask("reader.pendingSignals", { sessionId }),
      seenSignals: (sessionId) => this.#ask("reader.seenSignals", { sessionId }),
      schedules: () => this.#ask("reader.schedules", {}),
      document: (collection, id) => this.#ask("reader.document", { collection, id }),
      documents: (query) => this.#ask("reader.documents", { ...query, limit: finite(query.limit) }),
      audit: (query) => this.#ask("reader.audit", { ...query, limit: finite(query.limit) }),
    };
  }

  /** Whether the connection has ended. */
  get isOver(): boolean {
    return !this.#socket.writable;
  }

  get drafts(): SharedDrafts {
    return {
      show: (drafts) => this.#ask("drafts.show", { drafts }),
      watch: (sessionIds, after) => this.#ask("drafts.watch", { sessionIds, after }),
    };
  }

  /** This process begins to hold claims without an end, or comes back with them. */
  hold(holding: Holding): Promise<void> {
    return this.#ask("hold", holding);
  }

  /** This process has no claims without an end any more. */
  leave(): Promise<void> {
    return this.#ask("leave", {});
  }

  /** The process that owns the database. */
  get owner(): OwnerInfo {
    return this.#owner ?? { pid: 0, since: 0 };
  }

  /**
   * Wait for the owner's hello. Once, before anything else. `false` if the owner hung up, as it is then no
   * owner any more.
   */
  async greet(timeoutMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const hello = await new Promise<Hello | HoldfastError | undefined>((resolve) => {
      this.#greeted = resolve;
      timer = setTimeout(() => resolve(this.#silent(timeoutMs)), timeoutMs);
    });
    clearTimeout(timer);
    this.#greeted = undefined;
    if (hello === undefined) return false;
    if (hello instanceof HoldfastError) throw hello;
    if (hello.protocol !== PROTOCOL_VERSION) {
      throw new HoldfastError(
        "version_unsupported",
        `process ${hello.pid}, which owns the database, is of another version of Holdfast`,
        {
          at: this.#paths.file,
          got: `protocol ${hello.protocol}`,
          expected: `protocol ${PROTOCOL_VERSION}`,
          fix: "use the same version for both, or end that process first",
        },
      );
    }
    this.#owner = { pid: hello.pid, since: hello.since };
    this.#socket.unref(); // It keeps the process alive only while a request is under way.
    return true;
  }

  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    return this.#ask("commit", { changes, now });
  }

  claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    return this.#ask("claim", claim);
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#ask("renew", renewal);
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    return this.#ask("heldClaims", { ...query, limit: finite(query.limit) });
  }

  /** The sessions, among these, that a process holds. */
  claimed(sessionIds: readonly string[]): Promise<readonly string[]> {
    return this.#ask("claimed", { sessionIds });
  }

  load(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.#ask("load", { sessionId });
  }

  arrivals(sessionId: string, after: number): Promise<Arrivals> {
    return this.#ask("arrivals", { sessionId, after });
  }

  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#ask("conversation", { sessionId, leaf });
  }

  due(query: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    return this.#ask("due", { ...query, limit: finite(query.limit) });
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    const notify = (arrival: Arrival) => listener(arrival);
    this.#listeners.add(notify);
    if (!this.#isSubscribed) {
      this.#isSubscribed = true;
      // Requests are done in order, so arrivals of all later requests are received. If the connection is
      // lost, the next request rejects.
      this.#ask("subscribe", {}).catch(() => {});
    }
    return () => void this.#listeners.delete(notify);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#listeners.clear();
    if (this.#waiters.size === 0) this.#socket.end();
    // The claims of this connection are free when the owner has closed its side as well.
    this.#socket.ref();
    await this.#closed;
  }

  #ask<T>(method: Request["method"], params: object): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#isClosing || !this.#socket.writable) return reject(this.#gone());
      const id = this.#nextId++;
      // JSON writes an Infinity as null, which is what the protocol has for a lease without end.
      const line = `${JSON.stringify({ id, method, params })}\n`;
      // Three bytes per code unit at most, so short lines need no counting.
      if (line.length * 3 > LINE_BYTES_MAX && Buffer.byteLength(line) > LINE_BYTES_MAX) {
        return reject(
          new LimitError(
            "lineBytes",
            `a request of ${Buffer.byteLength(line)} bytes is too long for the owner's socket`,
            {
              at: this.#paths.socket,
              expected: `at most ${LINE_BYTES_MAX} bytes`,
              fix: "commit less at once",
            },
          ),
        );
      }
      this.#waiters.set(id, { resolve, reject });
      this.#socket.ref();
      this.#socket.write(line);
    }) as Promise<T>;
  }

  #read(chunk: Buffer): void {
    const lines = this.#splitter.push(chunk);
    if (lines === "too_long") return void this.#socket.destroy();
    for (const line of lines) this.#receive(line);
  }

  #receive(line: string): void {
    const message = parse(line);
    if (this.#owner === undefined) {
      this.#greeted?.(isHello(message) ? message : this.#noOwner());
      return;
    }
    if (message === undefined) return void this.#socket.destroy();
    if ("arrival" in message) {
      for (const listener of this.#listeners) listener(message.arrival);
      return;
    }
    const waiter = this.#waiters.get(message.id);
    this.#waiters.delete(message.id);
    if ("error" in message) waiter?.reject(fromWireError(message.error));
    else waiter?.resolve(message.result);
    if (this.#waiters.size > 0) return;
    if (this.#isClosing) this.#socket.end();
    else this.#socket.unref();
  }

  #fail(error: HoldfastError): void {
    this.#greeted?.(undefined);
    for (const { reject } of this.#waiters.values()) reject(error);
    this.#waiters.clear();
  }

  #gone(): UnavailableError {
    const what = this.#isClosing
      ? "the connection to the owner was closed"
      : "the process that owns the database ended";
    return new UnavailableError("storage_unavailable", `${what}: ${this.#paths.file}`, {
      at: this.#paths.socket,
      fix: "send the same change again, with the same ids; a change that was already applied is not repeated",
    });
  }

  #silent(timeoutMs: number): UnavailableError {
    return new UnavailableError(
      "storage_unavailable",
      `the process that owns the database does not answer: ${this.#paths.file}`,
      {
        at: this.#paths.socket,
        got: `nothing for ${timeoutMs} ms`,
        fix: "wait, or end that process; it may be stopped or very busy",
      },
    );
  }

  #noOwner(): UnavailableError {
    return new UnavailableError(
      "storage_unavailable",
      `another program listens on the owner's socket: ${this.#paths.socket}`,
      {
        at: this.#paths.socket,
        expected: "the hello of a Holdfast storage",
        fix: "end that process and remove the socket",
      },
    );
  }
}

/** JSON has no Infinity. */
function finite(limit: number): number {
  return Math.min(limit, Number.MAX_SAFE_INTEGER);
}

/** A line of the owner's; `undefined` when it is no JSON. */
function parse(line: string): Message | undefined {
  try {
    return JSON.parse(line) as Message;
  } catch {
    return undefined;
  }
}
