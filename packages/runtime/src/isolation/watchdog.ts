// `Watchdog`: a thread that ends the process when an agent or a task keeps it busy for too long (K4a, O5).
//
// An agent that loops without awaiting stops every session of its process, and the runtime itself. Therefore
// the names of its sessions are written before each slice to memory that a thread shares. When a slice does
// not close in time, the thread writes these names to a file and kills the process. The next process reads
// it:
//
//   - Sessions of a slice that was ended are suspects. Each one runs alone in its slices until it has ended
//     or waits.
//   - A suspect that keeps the process busy again, alone in its slice, is certainly the cause and is charged.
//     Its next activation parks it as `paused(poison)`. After a person resumes it, it is tried again.
//   - Without a file (ephemeral sessions) no suspects are stored; the process ends all the same.
//   watchdog-4. A process that holds leases announces when it lets go of them. If it has not done so a second
//       later, it is blocked and ends before its leases do (O4).
//   watchdog-7. A step may block the event loop, as `execSync` does. Meanwhile the thread renews the leases
//       by a connection of its own, until the step's time-out or `LIMITS.stepBlocksMs`. It ends the process
//       when no claim is extended. Other sessions wait, and lose nothing. An agent's slice keeps its limit
//       (K4a).
//   watchdog-5. The thread first kills everything that the process has started, because its commands have
//       process groups of their own.
//   watchdog-6. A process that was suspended as a whole was not busy: after it continues, all times count
//       from that moment.

import { readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Worker } from "node:worker_threads";
import { LIMITS, type ThreadRenewal } from "@holdfast/core";
import { makePrivateFolder, ownFile, replacePrivate } from "@holdfast/system";
import type { SliceMember, SliceObserver } from "../loop/slice-loop.ts";
import type { StepObserver } from "../loop/step-observer.ts";
import { threadTime, WatchdogMemory } from "./watchdog-memory.ts";

/** The claims of a process, for its thread (watchdog-7). */
export interface HeldClaims {
  readonly by: ThreadRenewal;
  readonly owner: string;
  readonly leaseMs: number;
  /** How often the process renews, and how long after a renewal it lets go. */
  readonly everyMs: number;
  readonly abandonMs: number;
  readonly sessionIds: readonly string[];
}

export interface WatchdogThreadData {
  readonly shared: SharedArrayBuffer;
  readonly sliceMs: number;
  readonly stepBlocksMs: number;
  readonly path: string | undefined;
  readonly pid: number;
}

/** Options of `new Watchdog`. */
export interface WatchdogOptions {
  /** The file of the suspects, in the folder of the database. */
  readonly path?: string;
  readonly sliceMs?: number;
  /** `LIMITS.stepBlocksMs`. */
  readonly stepBlocksMs?: number;
}

interface Suspects {
  readonly suspects: readonly string[];
  readonly charged: readonly string[];
  /** The lines at which sessions that were alone in their slice were stuck, if known. */
  readonly places: Readonly<Record<string, string>>;
}

/** Ends a process that an agent keeps busy. It watches from a thread of its own. */
export class Watchdog implements SliceObserver, StepObserver {
  readonly #path: string | undefined;
  readonly #worker: Worker;
  readonly #memory = new WatchdogMemory();
  #held: HeldClaims | undefined;
  readonly #suspects: Set<string>;
  readonly #charged: Set<string>;
  readonly #places: Map<string, string>;

  constructor({ path, sliceMs = LIMITS.sliceMs, stepBlocksMs = LIMITS.stepBlocksMs }: WatchdogOptions = {}) {
    this.#path = path;
    const { suspects, charged, places } = path === undefined ? NOBODY : readSuspects(path);
    this.#places = new Map(Object.entries(places));
    this.#suspects = new Set(suspects);
    this.#charged = new Set(charged);
    const { shared } = this.#memory;
    const workerData: WatchdogThreadData = { shared, sliceMs, stepBlocksMs, path, pid: process.pid };
    const script = ownFile("the watchdog", "./watchdog-thread", import.meta.url);
    const threads = process.getBuiltinModule("node:worker_threads"); // Most processes have no watchdog.
    this.#worker = new threads.Worker(script, { workerData });
    this.#worker.unref();
  }

  opened(members: readonly SliceMember[]): void {
    this.#memory.openSlice(members);
  }

  closed(): void {
    this.#memory.closeSlice();
  }

  began(sessionId: string, task: string, timeoutMs: number | undefined): number {
    return this.#memory.addStep(sessionId, task, timeoutMs);
  }

  returned(): void {
    this.#memory.stepReturned();
  }

  ended(step: number): void {
    this.#memory.removeStep(step);
  }

  /** watchdog-4. Announce when leases are let go; `undefined` while none is held. */
  expectAbandon(inMs: number | undefined): void {
    this.#memory.abandonAt = inMs === undefined ? 0n : threadTime() + BigInt(Math.ceil(inMs));
  }

  /** watchdog-7. The process is about to claim a session, or was given its claim. */
  claims(sessionId: string): void {
    if (this.#held === undefined || this.#memory.addClaim(sessionId)) return;
    this.holds({ ...this.#held, sessionIds: [...this.#held.sessionIds, ...this.#memory.claims, sessionId] });
  }

  /** watchdog-7. The claims that the process holds. To be called with each renewal. */
  holds(held: HeldClaims): void {
    this.#held = held;
    this.#worker.postMessage(held);
    this.#memory.clearClaims();
  }

  /** How long ago the thread asked for its last confirmed renewal, if it made any. */
  renewedAgoMs(): number | undefined {
    const at = this.#memory.renewedAt;
    return at === 0n ? undefined : Number(threadTime() - at);
  }

  isSuspect(sessionId: string): boolean {
    return this.#suspects.has(sessionId);
  }

  isCharged(sessionId: string): boolean {
    return this.#charged.has(sessionId);
  }

  /** The author's line at which the session was stuck, if known. */
  placeOf(sessionId: string): string | undefined {
    return this.#places.get(sessionId);
  }

  /** The session ended its slice, or a person wants it tried again. */
  clear(sessionId: string): void {
    const was = this.#suspects.delete(sessionId);
    if (!this.#charged.delete(sessionId) && !was) return;
    if (this.#path === undefined) return;
    this.#places.delete(sessionId);
    writeSuspects(this.#path, {
      suspects: [...this.#suspects],
      charged: [...this.#charged],
      places: Object.fromEntries(this.#places),
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/**
 * Add the sessions of a slice that was ended to the suspects in the file.
 *
 * @param place the author's line at which the process was stuck.
 */
export function accuse(path: string, sessionIds: readonly string[], place: string | undefined): void {
  const known = readSuspects(path);
  const suspects = new Set([...known.suspects, ...sessionIds]);
  const charged = new Set(known.charged);
  const [only, ...others] = sessionIds;
  if (only !== undefined && others.length === 0 && known.suspects.includes(only)) {
    suspects.delete(only);
    charged.add(only);
  }
  const places = {
    ...known.places,
    ...(only !== undefined && others.length === 0 && place !== undefined ? { [only]: place } : {}),
  };
  writeSuspects(path, { suspects: [...suspects], charged: [...charged], places });
}

const NOBODY: Suspects = { suspects: [], charged: [], places: {} };

/** An unreadable file names no suspects: the file is only a hint about the past. */
function readSuspects(path: string): Suspects {
  try {
    const parsed = JSON.parse(readFileSync(path, "utf8")) as Partial<Suspects>;
    return { ...NOBODY, ...parsed };
  } catch {
    return NOBODY;
  }
}

function writeSuspects(path: string, suspects: Suspects): void {
  if (suspects.suspects.length === 0 && suspects.charged.length === 0) {
    rmSync(path, { force: true });
    return;
  }
  makePrivateFolder(dirname(path));
  replacePrivate(path, `${JSON.stringify(suspects)}\n`);
}
