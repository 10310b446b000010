// `Unmatched` watches sessions that no registered runner fits: their unmet need is reported, and they end
// after five minutes (rules-5).
//
//   - Only the time counts in which a coordinator found no runner that fits, from one sweep to the next. The
//     whole minutes of it are stored, so that a restart continues them. The age of a session's row does not
//     count. A coordinator ends nothing in its first `RETURN_MS`, because runners may be returning to it.
//   - A session that never began fails, and its parent is notified as of any other end. A session that has
//     begun is paused: it has something to lose, and resumes when a person unpauses it.
//   unmatched-3. A sweep takes time. A session that a runner claimed and released meanwhile, with nothing
//       left to do, stays as the runner left it.
//   - A damaged session is left unchanged, and the sweep continues with the others.
//   - The five minutes start over once a runner has run the session, or a runner that fits has been
//     registered for `RETURN_MS`. A runner that leaves sooner postpones them by its stay alone. Sessions
//     therefore go on waiting for a runner that another session crashes again and again.
//
// The sweep claims a session before it changes it, like any other writer.

import {
  type AgentStorage,
  type Change,
  type Clock,
  ifCorrupt,
  MINUTE_MS,
  type PutDocument,
  type RemoveDocument,
  type Session,
} from "@holdfast/core";
import { fitnessOf, type Registry } from "../store/registry.ts";
import { hasSomethingToDo, NO_MATCH_MS, unmetBy, type Needs } from "./rules.ts";
import { emptyBatch } from "./suspects.ts";

export interface UnmatchedHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly registry: Registry;
  /** Whether a runner with earlier code keeps a session (`earlier-code.ts`). */
  isKept(sessionId: string): Promise<boolean>;
}

export const SWEEP_MS = 5_000;
const RETURN_MS = 60_000;
const PAGE = 10_000;
const ACT_LEASE_MS = 10_000;
const ACTOR = "coordinator";
/** A document for each session, its body a `StoredWait`. */
const COLLECTION = "unmet";
const DOCUMENTS_MAX = 500;

/** When the session was created or, once it has begun, last changed: differs when a runner has run the session since. */
type Mark = number;
type StoredWait = readonly [mark: Mark, unmetMinutes: number];

interface Waits {
  /** The time without a runner that fits, up to the last sweep. */
  readonly unmetMs: number;
  readonly mark: Mark;
  /** The need that no runner meets; absent while a runner fits, or there is nothing to run. */
  readonly unmet?: string;
  /** Since when `unmet` is absent, in monotonic milliseconds. */
  readonly metSince?: number;
}

interface Row {
  readonly needs: Needs;
  readonly mark: Mark;
}

export class Unmatched {
  readonly #host: UnmatchedHost;
  /** Monotonic milliseconds, as `#sweptAt`. Absent until the first sweep has read what is stored. */
  #servesSince: number | undefined;
  #sweptAt = 0;
  #waiting = new Map<string, Waits>();
  /** The bodies of the stored documents. */
  readonly #stored = new Map<string, string>();
  /**
   * The fields that never change of sessions that were due at the last sweep: each row is read once for as
   * long as it waits.
   */
  #needs = new Map<string, Needs>();

  constructor(host: UnmatchedHost) {
    this.#host = host;
  }

  /** The need of a session that no registered runner meets. */
  reasonFor(sessionId: string): string | undefined {
    return this.#waiting.get(sessionId)?.unmet;
  }

  /** When the session fails or is paused for that, unless a runner comes. Epoch milliseconds. */
  endsAt(sessionId: string): number | undefined {
    const waits = this.#waiting.get(sessionId);
    const { clock } = this.#host;
    if (waits?.unmet === undefined) return undefined;
    const end = Math.max(this.#sweptAt + NO_MATCH_MS - waits.unmetMs, this.#endsNothingUntil);
    return clock.now() + end - clock.monotonic();
  }

  get size(): number {
    return [...this.#waiting.values()].filter(({ unmet }) => unmet !== undefined).length;
  }

  /** Looks at every due session, and ends those that have waited too long. */
  async sweep(): Promise<void> {
    const { storage, clock, registry } = this.#host;
    const runners = (await registry.all())
      .filter(
        (runner) => runner.draining !== true && runner.superseded !== true && runner.trialsOf === undefined,
      )
      .map(fitnessOf);
    const { sessionIds } = await storage.due({ now: clock.now(), limit: PAGE });
    if (this.#servesSince === undefined) await this.#read();
    const now = clock.monotonic();
    const passedMs = now - this.#sweptAt;
    this.#sweptAt = now;
    const [before, waiting] = [this.#waiting, new Map<string, Waits>()];
    const needs = new Map<string, Needs>();
    const over = new Set<string>();
    for (const sessionId of sessionIds) {
      const known = this.#needs.get(sessionId);
      const row = known === undefined ? await this.#rowOf(sessionId) : undefined;
      const found = known ?? row?.needs;
      if (found === undefined) continue;
      needs.set(sessionId, found);
      const unmet = unmetBy(runners, found);
      if (unmet === undefined || (await this.#host.isKept(sessionId))) continue;
      const was = before.get(sessionId);
      const mark = was?.unmet === undefined ? (row ?? (await this.#rowOf(sessionId)))?.mark : was.mark;
      if (mark === undefined) continue;
      const unmetBefore = was?.mark === mark ? was.unmetMs : 0;
      const unmetMs = unmetBefore + (was?.unmet === undefined ? 0 : passedMs);
      const isOver = unmetMs >= NO_MATCH_MS && now >= this.#endsNothingUntil;
      if (isOver && (await this.#act(sessionId, unmet))) over.add(sessionId);
      else waiting.set(sessionId, { unmetMs, mark, unmet });
    }
    for (const [sessionId, { unmetMs, mark, metSince = now }] of before) {
      if (waiting.has(sessionId) || over.has(sessionId) || now - metSince >= RETURN_MS) continue;
      // mutant: met-time-counted
      waiting.set(sessionId, { unmetMs, mark, metSince });
    }
    this.#waiting = waiting;
    this.#needs = needs;
    await this.#store();
  }

  get #endsNothingUntil(): number {
    return (this.#servesSince ?? 0) + RETURN_MS;
  }

  /** Reads the waits that this coordinator or another one stored before. */
  async #read(): Promise<void> {
    const { storage, clock } = this.#host;
    for (let after = ""; ;) {
      const page = await storage.reader.documents({
        collection: COLLECTION,
        limit: DOCUMENTS_MAX,
        ...(after === "" ? {} : { after }),
      });
      for (const { id, body } of page) {
        const [mark, minutes] = JSON.parse(body) as StoredWait;
        this.#waiting.set(id, { unmetMs: minutes * MINUTE_MS, mark });
        this.#stored.set(id, body);
      }
      after = page.at(-1)?.id ?? "";
      if (page.length < DOCUMENTS_MAX) break;
    }
    this.#servesSince = clock.monotonic();
    this.#sweptAt = this.#servesSince;
  }

  async #store(): Promise<void> {
    const { storage, clock } = this.#host;
    const changes: (PutDocument | RemoveDocument)[] = [];
    for (const [id, { mark, unmetMs }] of this.#waiting) {
      const body = JSON.stringify([mark, Math.floor(unmetMs / MINUTE_MS)] satisfies StoredWait);
      if (this.#stored.get(id) !== body)
        changes.push({ type: "put_document", collection: COLLECTION, id, body });
    }
    for (const id of this.#stored.keys())
      if (!this.#waiting.has(id)) changes.push({ type: "remove_document", collection: COLLECTION, id });
    for (let at = 0; at < changes.length; at += DOCUMENTS_MAX) {
      const group = changes.slice(at, at + DOCUMENTS_MAX);
      await storage.commit(group, clock.now());
      for (const change of group) {
        if (change.type === "remove_document") this.#stored.delete(change.id);
        else this.#stored.set(change.id, change.body);
      }
    }
  }

  async #rowOf(sessionId: string): Promise<Row | undefined> {
    const session = await this.#host.storage.reader.session(sessionId).catch(ifCorrupt);
    if (session === undefined || session.cancel !== undefined) return undefined; // The deadline of its cancel ends it.
    const { agent, placement, createdAt, updatedAt } = session;
    return {
      needs: { agent: agent.name, version: agent.version, ...placement },
      mark: hasBegun(session) ? updatedAt : createdAt,
    };
  }

  /**
   * unmatched-3. @returns whether the session's wait is over; `false` when another process has the session.
   */
  async #act(sessionId: string, unmet: string): Promise<boolean> {
    const { storage, clock } = this.#host;
    const now = clock.now();
    const claim = await storage.claim({ sessionId, owner: ACTOR, now, leaseMs: ACT_LEASE_MS });
    if (claim.status !== "claimed") return false;
    const { token } = claim;
    const snapshot = await storage.load(sessionId).catch(ifCorrupt);
    const changes: Change[] = [{ type: "release_claim", sessionId, token }];
    if (snapshot !== undefined && snapshot.session.cancel === undefined && hasSomethingToDo(snapshot, now))
      changes.unshift(endOf(snapshot.session, token, unmet));
    await storage.commit(changes, now);
    return true;
  }
}

function hasBegun({ status, nextSeq }: Session): boolean {
  return status !== "submitted" || nextSeq > 0;
}

function endOf(session: Session, token: number, unmet: string): Change {
  const { sessionId } = session;
  const error = {
    name: "HoldfastError",
    code: "no_matching_runner",
    message: `no runner matched the session for ${NO_MATCH_MS / MINUTE_MS} minutes: ${unmet}`,
    fix: hasBegun(session)
      ? `start a matching runner, then unpause the session: \`holdfast unpause ${sessionId}\``
      : "start a matching runner, or demand less, and start the session again",
  };
  return {
    ...emptyBatch(session, token),
    session: hasBegun(session)
      ? { status: "paused", pauseReason: "no_matching_runner", error }
      : { status: "failed", waits: [], error },
  };
}
