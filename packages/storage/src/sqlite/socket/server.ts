// StorageServer: the owner's side of the socket. It does the requests of other processes on the owner's
// storage.
//
//   - A client can hurt nobody but itself (`connection.ts`).
//   socket-server-2. Commits that arrive in one turn of the event loop, of however many clients, share a
//       transaction. Any other request sees the commits before it.
//   socket-server-3. Claims without an end that were made over a connection end with its process
//       (`client-processes.ts`). Without a word of the process they end with the connection. A claim with a
//       lease expires with the lease.
//   - The server keeps no process alive.

import { createServer, type Server, type Socket } from "node:net";
import { chmodSync, rmSync } from "node:fs";
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from "node:timers";
import {
  type ChangeResult,
  leaseFromWire,
  type ShownDraft,
  toHoldfastError,
  toWireError,
  withLease,
} from "@holdfast/core";
import { ClientProcesses, type Holding } from "./client-processes.ts";
import { Connection } from "./connection.ts";
import type { OwnerInfo } from "../file/ownership.ts";
import { makeSocketFolder, pathError, type DatabasePaths } from "../file/paths.ts";
import type { ChangeGroup, SqliteStorage } from "../engine/sqlite-storage.ts";
import { PROTOCOL_VERSION, type Hello, type Request } from "./wire.ts";

const CONNECTIONS_MAX = 256;
/** How long a client may take to read its last answers when the owner closes. */
const CLOSE_PATIENCE_MS = 500;

export interface ServerOptions {
  readonly storage: SqliteStorage;
  readonly paths: DatabasePaths;
  readonly info: OwnerInfo;
  /** Only for the releases when a connection ends. */
  readonly now: () => number;
}

export class StorageServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  readonly processes: ClientProcesses;
  #commits: PendingCommit[] = [];
  #flush: NodeJS.Immediate | undefined;
  #isClosing = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.processes = new ClientProcesses(options.storage, options.now);
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.unref(); // It keeps no process alive.
    // A client must not wait for arrivals that never come: its next request gets the reason. Answers are
    // written first.
    void options.storage.lost?.then(() => {
      setImmediate(() => {
        for (const connection of this.#connections) if (connection.isSubscribed) connection.end();
      });
    });
    options.storage.subscribe((arrival) => {
      for (const connection of this.#connections) connection.notify(arrival);
    });
  }

  /** Listen; the caller holds the lock, so a socket that is there has no owner. */
  async listen(): Promise<void> {
    const { socket, socketFolder } = this.#options.paths;
    try {
      if (socketFolder !== undefined) makeSocketFolder(socketFolder);
      rmSync(socket, { force: true });
      await new Promise<void>((resolve, reject) => {
        this.#server.once("error", reject);
        // The socket's file is made inside `listen`, before it returns, with the umask of that moment.
        const umask = setUmask(0o177);
        try {
          this.#server.listen(socket, resolve);
        } finally {
          if (umask !== undefined) process.umask(umask);
        }
      });
      chmodSync(socket, 0o600);
      // Later errors of a listening socket (no more descriptors) concern one connection that was not made.
      this.#server.removeAllListeners("error").on("error", () => {});
      await this.processes.begin();
    } catch (error) {
      throw pathError(error, socket);
    }
  }

  /** Answer the requests that have arrived, then cut all connections. */
  async close(): Promise<void> {
    this.#isClosing = true; // client-processes-1: the claims of other processes stay.
    this.processes.close();
    this.#flushCommits();
    // Answers are made in promises that are settled already; this lets them be written.
    await new Promise((resolve) => setImmediate(resolve));
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections) connection.end();
    // A client that reads nothing would delay the close without end.
    const patience = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy();
    }, CLOSE_PATIENCE_MS);
    await closed;
    clearTimeout(patience);
  }

  #accept(socket: Socket): void {
    const { info, paths } = this.#options;
    const connection = new Connection(socket, {
      request: (request) => this.#handle(connection, request),
      closed: () => {
        if (!this.#connections.delete(connection)) return;
        this.#flushCommits();
        if (!this.#isClosing) this.#endClaims(() => this.processes.left(connection.client, connection));
      },
    });
    this.#connections.add(connection);
    const hello: Hello = { holdfast: "storage", protocol: PROTOCOL_VERSION, ...info, database: paths.file };
    connection.write(hello);
  }

  #handle(connection: Connection, { id, method, params }: Request): void {
    if (method === "commit") {
      const { changes, now } = params as unknown as ChangeGroup;
      const group = { changes: changes.map(withLease), now, client: connection.client };
      this.#commits.push({ connection, id, group });
      this.#flush ??= setImmediate(() => this.#flushCommits());
      return;
    }
    this.#flushCommits(); // socket-server-2.
    if (method === "subscribe") {
      connection.isSubscribed = true;
      connection.write({ id });
      return;
    }
    if (method === "hold" || method === "leave") {
      try {
        this.#hold(connection, method === "hold" ? (params as unknown as Holding) : undefined);
        connection.write({ id });
      } catch (error) {
        connection.write({ id, error: toWireError(toHoldfastError(error)) });
      }
      return;
    }
    connection.isAsking = true;
    this.#call(connection, method, params).then(
      (result) => connection.answer({ id, result }),
      (error: unknown) => connection.answer({ id, error: toWireError(toHoldfastError(error)) }),
    );
  }

  async #call(
    connection: Connection,
    method: Exclude<Request["method"], "commit" | "subscribe" | "hold" | "leave">,
    params: object,
  ): Promise<unknown> {
    const { storage } = this.#options;
    // Checked by `parseRequest`, method by method.
    const asked = params as never;
    switch (method) {
      case "claim": {
        const { leaseMs, ...claim } = params as Omit<Parameters<SqliteStorage["claim"]>[0], "leaseMs"> & {
          leaseMs: number | null;
        };
        return storage.claim({ ...claim, leaseMs: leaseFromWire(leaseMs) }, connection.client);
      }
      case "renew":
        return storage.renew(asked);
      case "heldClaims":
        return storage.heldClaims(asked);
      case "load":
        return storage.load(text(params, "sessionId"));
      case "arrivals":
        return storage.arrivals(text(params, "sessionId"), number(params, "after"));
      case "conversation":
        return storage.conversation(text(params, "sessionId"), number(params, "leaf"));
      case "due":
        return storage.due(asked);
      case "claimed":
        return storage.clients.claimed((params as { readonly sessionIds: readonly string[] }).sessionIds);
      case "drafts.show":
        return storage.drafts.show((params as { readonly drafts: readonly ShownDraft[] }).drafts);
      case "drafts.watch": {
        const { sessionIds, after } = params as {
          readonly sessionIds: readonly string[];
          readonly after: number;
        };
        return storage.drafts.watch(sessionIds, after);
      }
      case "reader.sessions":
        return storage.reader.sessions(asked);
      case "reader.counts":
        return storage.reader.counts(asked);
      case "reader.session":
        return storage.reader.session(text(params, "sessionId"));
      case "reader.journal":
        return storage.reader.journal(
          text(params, "sessionId"),
          number(params, "fromSeq"),
          number(params, "limit"),
        );
      case "reader.entries":
        return storage.reader.entries(
          text(params, "sessionId"),
          number(params, "from"),
          number(params, "limit"),
        );
      case "reader.pendingSignals":
        return storage.reader.pendingSignals(text(params, "sessionId"));
      case "reader.seenSignals":
        return storage.reader.seenSignals(text(params, "sessionId"));
      case "reader.schedules":
        return storage.reader.schedules();
      case "reader.document":
        return storage.reader.document(text(params, "collection"), text(params, "id"));
      case "reader.documents":
        return storage.reader.documents(asked);
      case "reader.audit":
        return storage.reader.audit(asked);
    }
  }

  /** socket-server-3. */
  #hold(connection: Connection, holding: Holding | undefined): void {
    if (holding === undefined) return this.processes.end(connection.client);
    connection.client = holding.client;
    this.processes.hold(holding, connection);
  }

  /** If the storage is closed or its disk fails, the next owner ends the claims. */
  #endClaims(end: () => void): void {
    try {
      end();
    } catch {
      // Nobody waits for this.
    }
  }

  #flushCommits(): void {
    clearImmediate(this.#flush);
    this.#flush = undefined;
    const commits = this.#commits;
    if (commits.length === 0) return;
    this.#commits = [];
    let results: ChangeResult[][];
    try {
      results = this.#options.storage.commitGroups(commits.map(({ group }) => group));
    } catch (error) {
      const wireError = toWireError(toHoldfastError(error));
      for (const { connection, id } of commits) connection.write({ id, error: wireError });
      return;
    }
    for (const [i, { connection, id }] of commits.entries()) {
      const result = results[i] ?? [];
      connection.write({ id, result });
    }
  }
}

interface PendingCommit {
  readonly connection: Connection;
  readonly id: number;
  readonly group: ChangeGroup;
}

function setUmask(mask: number): number | undefined {
  try {
    return process.umask(mask);
  } catch {
    return undefined; // Not allowed in a worker thread; the folder's and the file's own permissions remain.
  }
}

function text(params: object, name: string): string {
  return (params as Record<string, string>)[name]!;
}

function number(params: object, name: string): number {
  return (params as Record<string, number>)[name]!;
}
