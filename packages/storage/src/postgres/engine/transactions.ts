// `Transactions`: computes groups of changes from cached heads, and writes each group with one statement.
//
//   - The statement checks the versions that a group was computed from (`write-statement.ts`). If another
//     process was faster, nothing is written: the rows are read again, and the group is computed again. No
//     lock is held meanwhile, so a process that stops half-way delays nobody.
//   - A change that the database refuses for an unforeseen reason is found by halving the group (ST4). When
//     the environment is at fault, the group may or may not have been applied. The call then rejects, and
//     sending it again is safe.

import { setTimeout } from "node:timers";
import {
  applyChange,
  applyOverdue,
  type Change,
  type ChangeResult,
  eachName,
  HoldfastError,
  isCorrupt,
  UnavailableError,
} from "@holdfast/core";
import { crc32 } from "node:zlib";
import type { Database } from "../database/database.ts";
import { describeRefusal, isConflict, isEnvironmental } from "../database/pg-errors.ts";
import type { Heads } from "../tables/heads.ts";
import type { Instance } from "../tables/instance.ts";
import { Facts, Need } from "../write/group-facts.ts";
import { WorkingSet } from "../write/working-set.ts";
import { writeStatement } from "../write/write-statement.ts";
import type { FactReader } from "./fact-reader.ts";

export interface TransactionsOptions {
  readonly db: Database;
  /** The database, as errors name it. */
  readonly at: string;
  readonly lanes: number;
  /** Answers a number above all its earlier answers, and above all numbers in the database when it was opened. */
  readonly stamp: () => number;
  readonly heads: Heads;
  readonly instance: Instance;
  readonly facts: FactReader;
  /** Called with each group that was written. */
  readonly onWritten: (set: WorkingSet) => void;
}

/** How often a group is computed again because other processes were faster. Each time one of them made progress. */
export const TRIES_MAX = 50;
const PAUSE_MAX_MS = 50;

export class Transactions {
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /** @param hasNeighbours whether other changes were sent along, and need their answers. */
  async apply(
    changes: readonly Change[],
    now: number,
    hasNeighbours = changes.length > 1,
  ): Promise<ChangeResult[]> {
    if (changes.length === 0) return [];
    try {
      return await this.#transact(knownTo(changes), (set) =>
        changes.map((change) => applyChange(set, change, now)),
      );
    } catch (error) {
      if (isEnvironmental(error)) throw error;
      if (changes.length > 1) {
        const half = changes.length >> 1;
        return [
          ...(await this.apply(changes.slice(0, half), now, true)),
          ...(await this.apply(changes.slice(half), now, true)),
        ];
      }
      // Only a change without neighbours may throw for a damaged row: neighbours need their answers.
      if (!hasNeighbours && HoldfastError.is(error)) throw error;
      return [{ status: "invalid", reason: describeRefusal(error) }];
    }
  }

  /**
   * Ends sessions whose deadline has passed. A damaged session, or a relative of one, does not keep other
   * sessions from ending. @returns the damaged ones.
   */
  async endOverdue(sessionIds: readonly string[], now: number): Promise<readonly string[]> {
    try {
      await this.#transact(sessionIds, (set) => {
        for (const sessionId of sessionIds) applyOverdue(set, sessionId, now);
      });
      return [];
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const half = sessionIds.length >> 1;
      if (half === 0) return sessionIds;
      return [
        ...(await this.endOverdue(sessionIds.slice(0, half), now)),
        ...(await this.endOverdue(sessionIds.slice(half), now)),
      ];
    }
  }

  /** Computes a group and writes it, again and again while other processes are faster. */
  async #transact<T>(names: Iterable<string>, work: (set: WorkingSet) => T): Promise<T> {
    const facts = new Facts();
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (tries > 0) {
        facts.reset();
        await pause(Math.random() * Math.min(2 ** tries, PAUSE_MAX_MS));
      }
      const { set, result, written } = await this.#compute(names, facts, work);
      if (await written) {
        this.#options.facts.written(set);
        this.#options.onWritten(set);
        return result;
      }
    }
    throw new UnavailableError(
      "storage_unavailable",
      `others changed the same sessions ${TRIES_MAX} times over: ${this.#options.at}`,
      { fix: "try again; spread what is written to one session over time" },
    );
  }

  async #compute<T>(
    names: Iterable<string>,
    facts: Facts,
    work: (set: WorkingSet) => T,
  ): Promise<{ readonly set: WorkingSet; readonly result: T; readonly written: Promise<boolean> }> {
    const { heads, lanes, stamp, facts: reader } = this.#options;
    await reader.fetch(names, facts);
    const laneOf = (sessionId: string) => crc32(sessionId) % lanes;
    for (;;) {
      const set = new WorkingSet({ heads, facts, lanes, stamp, laneOf });
      try {
        const result = work(set);
        // At once: from here on the heads are in use (postgres-heads-3).
        return { set, result, written: this.#write(set, facts) };
      } catch (error) {
        set.undo();
        if (!(error instanceof Need)) throw error;
        await reader.find(error.wanted, facts);
      }
    }
  }

  /** Answers `false` when nothing was written, because a version that was read is out of date. */
  async #write(set: WorkingSet, facts: Facts): Promise<boolean> {
    // Nobody knows of a new session before it is written.
    const heads = [...set.consulted.values(), ...[...set.writes.created.values()].map(({ head }) => head)];
    if (heads.length === 0 && !set.isWriting) return true;
    const flight = this.#send(set, facts);
    for (const head of heads) head.flight = flight;
    for (const { head } of set.writes.created.values()) this.#options.heads.put(head);
    let isWritten = false;
    try {
      isWritten = await flight;
    } catch (error) {
      if (!isConflict(error)) throw error;
    } finally {
      // Later groups may have been computed from these heads already.
      if (!isWritten) set.undo();
      for (const head of heads) {
        head.flight = undefined;
        const isOther = set.writes.removed.has(head) || set.writes.imported.has(head);
        if (!isWritten || isOther) this.#options.heads.forget(head);
        else {
          if (set.writes.changed.has(head)) head.version = set.versionAfter(head);
          this.#options.heads.settled(head);
        }
      }
    }
    return isWritten;
  }

  async #send(set: WorkingSet, facts: Facts): Promise<boolean> {
    if ([...set.writes.created.values()].some(({ head }) => head.claim.owner !== undefined))
      await this.#options.instance.begin();
    const items = [...facts.items].map(([id, item]) => {
      const [kind, key] = id.split("\u0000") as [string, string];
      return { kind, key, item };
    });
    const { statement, values } = writeStatement(set, {
      items,
      instance: this.#options.instance.id,
      isRetry: facts.isCareful,
    });
    const [row] = await this.#options.db.run(statement, values);
    return row?.["ok"] === true;
  }
}

/** Sessions that must exist for these changes, and so are read beforehand. All others are assumed to be new. */
function knownTo(changes: readonly Change[]): Set<string> {
  const known = new Set<string>();
  for (const change of changes)
    eachName(change, (name, kind) => {
      if (kind === "known") known.add(name);
    });
  return known;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
