// `Connection`: a process's connection to storage. Requests and replies take time, get lost, or end with a
// process.
//
//   - A request arrives until the connection is cut, even after its sender's death. Its reply reaches only
//     the life that asked.
//   - A refused call had no effect, and a call whose reply was lost had all of it. Both fail alike.
//   - A connection's claims end with it: the supervisor of the processes releases them.

import {
  HoldfastError,
  UnavailableError,
  type AgentStorage,
  type Arrival,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type StorageReader,
} from "@holdfast/core";
import { describeChanges } from "@holdfast/testkit";
import type { Dice } from "./dice.ts";
import type { EventLog } from "./event-log.ts";
import type { ProcessLife } from "./process-life.ts";
import type { Scheduler } from "./scheduler.ts";

/** The faults of a connection at this moment. Probabilities are per call. */
export interface ConnectionFaults {
  readonly latencyMs: number;
  readonly refused: number;
  readonly replyLost: number;
  readonly crashAtCommit: number;
  readonly isFull: boolean;
}

export interface ConnectionHost {
  readonly storage: AgentStorage;
  readonly scheduler: Scheduler;
  readonly dice: Dice;
  readonly log: EventLog;
  faults(): ConnectionFaults;
  /** The life has received a claim. */
  claimed?(sessionId: string, token: number): void;
  /** A request fails, by a fault. */
  failed?(): void;
  /** The life dies now. */
  crash(): void;
}

type Fault = "none" | "refused" | "full" | "reply_lost" | "crash_before" | "crash_after";

export class Connection implements AgentStorage {
  readonly name: string;
  readonly durable: boolean;
  readonly groupsMax: number;
  readonly reader: StorageReader;
  /** Tokens granted over this connection, by session. */
  readonly claims = new Map<string, number>();
  readonly #life: ProcessLife;
  readonly #host: ConnectionHost;
  readonly #unsubscribers: (() => void)[] = [];
  #isCut = false;
  /** How often the line to storage broke. */
  #breaks = 0;

  constructor(life: ProcessLife, host: ConnectionHost) {
    this.#life = life;
    this.#host = host;
    const { storage } = host;
    this.name = `connection to ${storage.name}`;
    this.durable = storage.durable;
    this.groupsMax = storage.groupsMax ?? 1;
    const { reader } = storage;
    this.reader = {
      sessions: (query) => this.#read("list sessions", () => reader.sessions(query)),
      counts: (query) => this.#read("count sessions", () => reader.counts(query)),
      session: (sessionId) => this.#read(`row ${sessionId}`, () => reader.session(sessionId)),
      journal: (sessionId, fromSeq, limit) =>
        this.#read(`journal ${sessionId}`, () => reader.journal(sessionId, fromSeq, limit)),
      entries: (sessionId, from, limit) =>
        this.#read(`entries ${sessionId}`, () => reader.entries(sessionId, from, limit)),
      seenSignals: (sessionId) => this.#read(`seen ${sessionId}`, () => reader.seenSignals(sessionId)),
      pendingSignals: (sessionId) =>
        this.#read(`signals ${sessionId}`, () => reader.pendingSignals(sessionId)),
      schedules: () => this.#read("list schedules", () => reader.schedules()),
      document: (collection, id) =>
        this.#read(`document ${collection} ${id}`, () => reader.document(collection, id)),
      documents: (query) => this.#read("list documents", () => reader.documents(query)),
      audit: (query) => this.#read("audit", () => reader.audit(query)),
    };
  }

  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const apply = async (): Promise<readonly ChangeResult[]> => {
      const results = await this.#host.storage.commit(changes, now);
      changes.forEach((change, i) => {
        if ("sessionId" in change) this.#granted(change.sessionId, results[i]);
      });
      return results;
    };
    const committing = this.#call("commit", this.#drawCommitFault(), apply, () => describeChanges(changes));
    return committing.then((results) => {
      changes.forEach((change, i) => {
        if (change.type === "create_session") this.#received(change.sessionId, results[i]);
      });
      return results;
    });
  }

  claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const claiming = this.#read(`claim ${claim.sessionId}`, async () => {
      const result = await this.#host.storage.claim(claim);
      this.#granted(claim.sessionId, result);
      return result;
    });
    return claiming.then((result) => {
      this.#received(claim.sessionId, result);
      return result;
    });
  }

  renew: AgentStorage["renew"] = (renewal) =>
    this.#read(`renew ${renewal.owner}`, () => this.#host.storage.renew(renewal));

  heldClaims: AgentStorage["heldClaims"] = (query) =>
    this.#read("heldClaims", () => this.#host.storage.heldClaims(query));

  load: AgentStorage["load"] = (sessionId) =>
    this.#read(`load ${sessionId}`, () => this.#host.storage.load(sessionId));

  arrivals: AgentStorage["arrivals"] = (sessionId, after) =>
    this.#read(`arrivals ${sessionId}`, () => this.#host.storage.arrivals(sessionId, after));

  /** Never refused: leaky, an attempt that cannot read its conversation has failed, and uses up one of its task's three. */
  conversation: AgentStorage["conversation"] = (sessionId, leaf) =>
    this.#call(`conversation ${sessionId}`, "none", () => this.#host.storage.conversation(sessionId, leaf));

  due: AgentStorage["due"] = (query) => this.#read("due", () => this.#host.storage.due(query));

  subscribe(listener: (arrival: Arrival) => void): () => void {
    const unsubscribe = this.#host.storage.subscribe((arrival) => {
      this.#life.after(this.#drawLatency(), () => listener(arrival));
    });
    this.#unsubscribers.push(unsubscribe);
    return unsubscribe;
  }

  async close(): Promise<void> {
    this.cut();
  }

  /** Requests under way get no answer: each was performed or not. Later ones go over a new line. */
  breakOff(): void {
    this.#breaks++;
  }

  /** Nothing goes over it any more, in either direction. */
  cut(): void {
    this.#isCut = true;
    for (const unsubscribe of this.#unsubscribers.splice(0)) unsubscribe();
  }

  #read<T>(what: string, ask: () => Promise<T>): Promise<T> {
    const { refused } = this.#host.faults();
    return this.#call(what, refused > 0 && this.#host.dice.chance(refused) ? "refused" : "none", ask);
  }

  #drawCommitFault(): Fault {
    const { dice } = this.#host;
    const { refused, replyLost, crashAtCommit, isFull } = this.#host.faults();
    if (isFull) return "full";
    if (refused > 0 && dice.chance(refused)) return "refused";
    if (replyLost > 0 && dice.chance(replyLost)) return "reply_lost";
    if (crashAtCommit > 0 && dice.chance(crashAtCommit)) return dice.pick(["crash_before", "crash_after"]);
    return "none";
  }

  #drawLatency(): number {
    const { latencyMs } = this.#host.faults();
    return latencyMs === 0 ? 0 : this.#host.dice.between(0, latencyMs);
  }

  #granted(sessionId: string, result: ChangeResult | ClaimResult | undefined): void {
    if (result !== undefined && "token" in result && result.token !== undefined)
      this.claims.set(sessionId, result.token);
  }

  #received(sessionId: string, result: ChangeResult | ClaimResult | undefined): void {
    if (result !== undefined && "token" in result && result.token !== undefined)
      this.#host.claimed?.(sessionId, result.token);
  }

  #call<T>(what: string, fault: Fault, ask: () => Promise<T>, about?: () => string): Promise<T> {
    const { log, scheduler, crash } = this.#host;
    const life = this.#life;
    if (!life.isAlive) return never();
    log.add(life.name, fault === "none" ? what : `${what} (${fault})`, about);
    if (fault !== "none") this.#host.failed?.();
    if (fault === "crash_before") {
      crash();
      return never();
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const isInstant = this.#host.faults().latencyMs === 0;
    const breaks = this.#breaks;
    const isBroken = (): boolean => this.#breaks > breaks;
    const reply = (answer: () => void): void => {
      if (!life.isAlive) return;
      if (isInstant && !life.isPaused) answer();
      else life.after(this.#drawLatency(), answer);
    };
    const arrive = (): void => {
      if (this.#isCut) return;
      if (fault === "refused" || isBroken()) return reply(() => reject(unavailable(what)));
      if (fault === "full")
        return reply(() => reject(new HoldfastError("storage_full", `simulated fault: ${what}`)));
      ask().then(
        (value) => {
          if (fault === "crash_after") crash();
          else if (fault === "reply_lost" || isBroken()) reply(() => reject(unavailable(what)));
          else reply(() => (isBroken() ? reject(unavailable(what)) : resolve(value)));
        },
        (error: unknown) => reply(() => reject(error)),
      );
    };
    if (isInstant) arrive();
    else scheduler.after(this.#drawLatency(), undefined, arrive);
    return promise;
  }
}

/** A promise that never settles, as a dead process receives nothing. */
function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

function unavailable(what: string): UnavailableError {
  return new UnavailableError("storage_unavailable", `simulated fault: ${what}`);
}
