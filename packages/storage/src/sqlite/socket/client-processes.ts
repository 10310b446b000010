// ClientProcesses: the processes that hold claims without an end through the owner of a database, over all
// of its owners.
//
//   client-processes-1. The end of an owner touches no claim of another process (O15). The next owner finds
//       the claims of such processes in the file. It keeps them until their process says which of them it
//       still has, or is gone.
//   - A process is gone when it has said so, or when its mark proves it (`host-presence.ts`). A process that
//     is stopped or busy keeps its claims. A process whose mark proves nothing has `UNPROVEN_MS` to come
//     back.
//   - The owner's listeners are notified of the sessions whose claims were released, because somebody has to
//     go on with them.

import { setTimeout as sleep } from "node:timers/promises";
import { bootId, findPresence, type Found, type PresenceMark } from "../../host-presence.ts";
import type { KnownClaim } from "../engine/client-claims.ts";
import type { SqliteStorage } from "../engine/sqlite-storage.ts";

const UNPROVEN_MS = 10_000;
/** The least time between two looks at the same process. */
const LOOK_MS = 20;

/** A process and its claims, as it says. */
export interface Holding {
  /** Its number, the same for as long as it lives. */
  readonly client: number;
  /** Absent where the host has no marks. */
  readonly mark?: PresenceMark;
  readonly claims: readonly KnownClaim[];
}

export class ClientProcesses {
  readonly #storage: SqliteStorage;
  readonly #now: () => number;
  readonly #marks = new Map<number, PresenceMark | undefined>();
  /** The newest connection of each process that holds claims. An older one may be seen to end after it began. */
  readonly #connections = new Map<number, object>();
  /** How to stop waiting for the processes that are not connected. */
  readonly #awaited = new Map<number, AbortController>();

  constructor(storage: SqliteStorage, now: () => number) {
    this.#storage = storage;
    this.#now = now;
  }

  /**
   * client-processes-1. To be called once, when processes can come back. Resolves when each of them was looked
   * for once. A claim of a process that is gone by its mark then refuses no claim of this one.
   */
  async begin(): Promise<void> {
    const looks = [...this.#storage.clients.known()].map(([client, mark]) => {
      this.#marks.set(client, mark);
      return new Promise<void>((looked) => void this.#awaitReturn(client, mark, looked));
    });
    await Promise.all(looks);
  }

  /** A process begins to hold claims, or comes back. */
  hold({ client, mark, claims }: Holding, connection: object): void {
    this.#stopAwaiting(client);
    this.#connections.set(client, connection);
    if (mark !== undefined) this.#storage.clients.put(client, mark);
    this.#marks.set(client, mark);
    this.#release(client, claims);
  }

  /** A connection of it has ended. */
  left(client: number, connection: object): void {
    if ((this.#connections.get(client) ?? connection) !== connection) return;
    this.#connections.delete(client);
    const mark = this.#marks.get(client);
    if (mark === undefined) this.end(client);
    else void this.#awaitReturn(client, mark);
  }

  /** It has no claims any more. */
  end(client: number): void {
    this.#stopAwaiting(client);
    this.#connections.delete(client);
    if (this.#marks.delete(client)) this.#storage.clients.forget(client);
    this.#release(client, []);
  }

  close(): void {
    for (const client of this.#awaited.keys()) this.#stopAwaiting(client);
  }

  #release(client: number, held: readonly KnownClaim[]): void {
    const changes = this.#storage.clients.releases(client, held);
    if (changes.length === 0) return;
    this.#storage.commitGroups([{ changes, now: this.#now() }]);
    for (const { sessionId } of changes) this.#storage.announce({ sessionId, awaited: true });
  }

  #stopAwaiting(client: number): void {
    this.#awaited.get(client)?.abort();
    this.#awaited.delete(client);
  }

  /** Never rejects. @param looked called after the first look, and after the claims of a process that is gone ended. */
  async #awaitReturn(
    client: number,
    mark: PresenceMark | undefined,
    looked: () => void = () => {},
  ): Promise<void> {
    this.#stopAwaiting(client);
    const controller = new AbortController();
    const { signal } = controller;
    this.#awaited.set(client, controller);
    try {
      await isGone(mark, signal, looked);
      if (!signal.aborted) this.end(client);
    } catch {
      // It came back. Or the disk failed: then the claims last until the next owner.
    } finally {
      looked();
    }
  }
}

/** Resolves when the process is gone. @throws when `signal` is aborted. */
async function isGone(
  mark: PresenceMark | undefined,
  signal: AbortSignal,
  looked: () => void,
): Promise<void> {
  for (;;) {
    const found = mark === undefined ? "unknown" : await look(mark);
    if (found === "gone") return;
    looked();
    if (found === "unknown") return sleep(UNPROVEN_MS, undefined, { ref: false, signal });
    const leave = (): void => found.leave();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    await found.ended;
    signal.removeEventListener("abort", leave);
    await sleep(LOOK_MS, undefined, { ref: false, signal });
  }
}

/** A database file is used under one kernel at a time, so a process of an earlier start of the machine is gone. */
function look(mark: PresenceMark): Promise<Found> {
  const boot = bootId();
  return boot !== undefined && mark.boot !== boot ? Promise.resolve("gone") : findPresence(mark);
}
