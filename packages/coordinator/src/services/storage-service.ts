// `StorageService` is the storage port for runtimes elsewhere. Requests are scoped by their caller, and
// dispatch is told of changes.
//
//   - A change that its caller may not request is removed from the group and answered. The other changes are
//     applied (ST4).
//   - The coordinator's time applies to every caller. A machine with a wrong clock must not end the leases of
//     others.
//   - A runner gets sessions only from its polls. It can claim here only a session that it holds, and no
//     session is due for it.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type Change,
  type ChangeResult,
  type Clock,
  defined,
  type Entry,
  HoldfastError,
  ifCorrupt,
  isEnded,
  NotFoundError,
  type Session,
  toHoldfastError,
  UsageError,
} from "@holdfast/core";
import type {
  ArrivalsRequest,
  ClaimRequest,
  CommitRequest,
  ConversationRequest,
  DueRequest,
  HeldClaimsRequest,
  LoadRequest,
  ReadRequest,
  RenewRequest,
  StorageService as Contract,
  SubscribeRequest,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { bytesOfValue, textOf } from "../call/json-field.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import { notifyImported, sessionNotFound, type ServiceHost } from "./service-host.ts";
import { mayTouch, ownSession } from "./session-scope.ts";
import { claimLease, claimOwner, isAudited, scopeChange } from "./storage-scope.ts";
import { changeOf, readOf, type Read } from "./storage-wire.ts";

const ENTRIES_PAGE = 1_000;
const CLAIMS_PAGE = 1_000;
/**
 * How often the time is sent. A runtime that only counts on would soon be too far behind for its deadlines
 * (coordinator-time-4).
 */
const TIME_EVERY_MS = 10_000;

export class StorageService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;
  readonly #storage: ServiceHost["storage"];
  readonly #clock: Clock;
  readonly #dispatcher: Dispatcher;

  constructor(host: ServiceHost) {
    this.#host = host;
    this.#storage = host.storage;
    this.#clock = host.clock;
    this.#dispatcher = host.dispatcher;
  }

  async commit({ changes }: CommitRequest, context: HandlerContext) {
    const call = callOf(context);
    const results = await commitScoped(this.#host, changes.map(changeOf), call);
    return { results: results.map(bytesOfValue) };
  }

  async claim({ sessionId, owner, leaseMs, unlessHeld }: ClaimRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    const session = await this.#storage.reader.session(sessionId);
    const isOwners = caller.owner === undefined || caller.owner === session?.placement?.owner;
    const isExplained = caller.kind === "runner" && isOwners; // X13: other callers learn nothing of the session.
    if (session === undefined || (!isExplained && !(await mayTouch(this.#host, caller, session))))
      return { result: bytesOfValue({ status: "not_found" }) };
    if (caller.kind === "runner" && !(await this.#dispatcher.holds(caller.name, sessionId)))
      // A runner gets sessions only from its polls.
      return { result: bytesOfValue({ status: "busy", owner: "coordinator" }) };
    const result = await this.#storage.claim({
      sessionId,
      owner: claimOwner(caller, owner),
      now: this.#clock.now(),
      leaseMs: claimLease(caller, leaseMs === undefined ? undefined : Number(leaseMs), this.#host.leaseMs),
      ...defined({ unlessHeld }),
    });
    if (caller.kind === "runner" && result.status === "claimed")
      await this.#dispatcher.holds(caller.name, sessionId, result.token);
    return { result: bytesOfValue(result) };
  }

  async heldClaims({ limit, sessionId, owner, after }: HeldClaimsRequest) {
    const held = await this.#storage.heldClaims({
      now: this.#clock.now(),
      limit,
      ...defined({ sessionId, owner, after }),
    });
    return { claims: held.map(bytesOfValue) };
  }

  async load({ sessionId }: LoadRequest, context: HandlerContext) {
    if (!(await isThere(this.#host, callOf(context).caller, sessionId))) return {};
    const snapshot = await this.#storage.load(sessionId);
    return snapshot === undefined ? {} : { snapshot: bytesOfValue(snapshot) };
  }

  async arrivals({ sessionId, after }: ArrivalsRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    await ownSession(this.#host, caller, sessionId);
    const arrivals = await this.#storage.arrivals(sessionId, Number(after));
    if (caller.kind === "runner") this.#dispatcher.holdings.reads(caller.name, sessionId, arrivals.inbox);
    return { arrivals: bytesOfValue(arrivals) };
  }

  async conversation({ sessionId, leaf }: ConversationRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    if (!(await mayReadConversation(this.#host, caller, sessionId))) throw sessionNotFound(sessionId);
    return { entries: (await conversationOf(this.#host, sessionId, Number(leaf))).map(bytesOfValue) };
  }

  async due({ limit, agents }: DueRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    // A runner gets sessions only from its polls.
    if (caller.kind === "runner") return { due: bytesOfValue({ sessionIds: [], schedules: [] }) };
    const due = await this.#storage.due({
      now: this.#clock.now(),
      limit,
      ...(agents === undefined ? {} : { agents: agents.names }),
    });
    if (caller.kind === "admin") return { due: bytesOfValue(due) };
    const rows = await Promise.all(
      due.sessionIds.map((sessionId) => this.#storage.reader.session(sessionId).catch(ifCorrupt)),
    );
    const own = rows.filter((row) => row?.placement?.owner === caller.name).map((row) => row!.sessionId);
    const schedules = due.schedules.filter(({ owner }) => owner === caller.name);
    return { due: bytesOfValue({ ...due, sessionIds: own, schedules }) };
  }

  async renew({ owner, leaseMs, sessionIds, blockedBy }: RenewRequest, context: HandlerContext) {
    const { caller } = callOf(context);
    const renewal = {
      owner: claimOwner(caller, owner),
      now: this.#clock.now(),
      leaseMs: claimLease(caller, Number(leaseMs), this.#host.leaseMs),
      sessionIds, // Claims that the runner does not name must end with their leases.
    };
    const { sessions } = await this.#storage.renew(renewal);
    if (caller.kind === "runner") {
      this.#dispatcher.seen(caller.name, blockedBy);
      for (const sessionId of sessionIds)
        if (await this.#dispatcher.holds(caller.name, sessionId))
          this.#dispatcher.used(caller.name, sessionId);
    }
    return { sessions, now: BigInt(this.#clock.now()) };
  }

  async read({ query, params }: ReadRequest, context: HandlerContext) {
    const read = readOf(query, textOf(params, "params"));
    const result = await readScoped(this.#host, callOf(context).caller, read);
    return result === undefined ? {} : { result: bytesOfValue(result) };
  }

  async *subscribe(_request: SubscribeRequest, context: HandlerContext) {
    const { caller, signal } = callOf(context);
    /** By session, so that a slow reader keeps at most one notice of each session in memory. */
    const arrived = new Map<string, boolean>();
    let isTimeWanted = true;
    let wake = (): void => {};
    const come = (): void => wake();
    const unsubscribe = this.#storage.subscribe(({ sessionId, awaited }) => {
      arrived.set(sessionId, awaited || arrived.get(sessionId) === true);
      come();
    });
    const onTime = (): void => {
      isTimeWanted = true;
      cancel = this.#clock.setTimer(onTime, TIME_EVERY_MS, true);
      come();
    };
    let cancel = this.#clock.setTimer(onTime, TIME_EVERY_MS, true);
    signal.addEventListener("abort", come);
    try {
      while (!signal.aborted) {
        // The first item names no session. It says that from here on every arrival is announced.
        if (isTimeWanted) {
          isTimeWanted = false;
          yield { sessionId: "", awaited: false, now: BigInt(this.#clock.now()) };
        }
        const taken = [...arrived];
        arrived.clear();
        for (const [sessionId, awaited] of taken)
          if (await isThere(this.#host, caller, sessionId)) yield { sessionId, awaited };
        if (arrived.size > 0 || isTimeWanted || signal.aborted) continue;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      cancel();
      signal.removeEventListener("abort", come);
      unsubscribe();
    }
  }
}

async function commitScoped(
  host: ServiceHost,
  changes: readonly Change[],
  call: Call,
): Promise<readonly ChangeResult[]> {
  const { caller } = call;
  const scoped = [];
  for (const change of changes) scoped.push(await scopeChange(host, caller, change));
  const wanted = scoped.flatMap((each) => ("change" in each ? [each.change] : []));
  const recorded = wanted.map((change) => record(change, call));
  const applied = wanted.length === 0 ? [] : await host.commit(recorded);
  for (const [i, change] of wanted.entries()) await notifyDispatch(host, caller, change, applied[i]!);
  let next = 0;
  return scoped.map((each) => ("change" in each ? applied[next++]! : each.result));
}

/** X14. A runtime's own work has no audit row: its record is the journal. */
function record(change: Change, call: Call): Change {
  if (!isAudited(change)) return change;
  const object = "sessionId" in change ? `session:${change.sessionId}` : change.type;
  return { type: "audited", change, audit: auditOf(call, `storage.${change.type}`, object) };
}

async function notifyDispatch(
  host: ServiceHost,
  caller: Caller,
  change: Change,
  result: ChangeResult,
): Promise<void> {
  const { dispatcher } = host;
  switch (change.type) {
    case "commit_batch": {
      if (result.status !== "committed") return;
      const status = change.session?.status;
      if (status !== undefined && isEnded(status)) dispatcher.released(change.sessionId, true);
      else if (caller.kind === "runner") dispatcher.used(caller.name, change.sessionId, result.inbox);
      return;
    }
    case "release_claim":
      if (result.status !== "released") return;
      if (change.diverged === true && caller.kind === "runner")
        dispatcher.earlierCode.diverged(change.sessionId, caller.name);
      dispatcher.released(change.sessionId, false);
      return;
    case "import_session":
    case "import_tree":
      if (result.status === "created") await notifyImported(host, change);
      return;
    case "create_session": {
      const session =
        result.status === "created" ? await host.storage.reader.session(change.sessionId) : undefined;
      if (session !== undefined && change.claimFor === undefined) dispatcher.created(session);
      return;
    }
    default:
  }
}

async function isThere(host: ServiceHost, caller: Caller, sessionId: string): Promise<boolean> {
  const session = await host.storage.reader.session(sessionId);
  return session !== undefined && (await mayTouch(host, caller, session));
}

/** A missing entry is damage, unless it is the one that was requested. */
async function conversationOf(
  { storage }: ServiceHost,
  sessionId: string,
  leaf: number,
): Promise<readonly Entry[]> {
  try {
    return await storage.conversation(sessionId, leaf);
  } catch (thrown) {
    if (toHoldfastError(thrown).code !== "corrupt_record") throw thrown;
    for (let from = 0; ; from += ENTRIES_PAGE) {
      const page = await storage.reader.entries(sessionId, from, ENTRIES_PAGE);
      if (page.some(({ id }) => id === leaf)) throw thrown;
      if (page.length < ENTRIES_PAGE) break;
    }
    throw new NotFoundError("not_found", `session ${sessionId} has no entry ${leaf}`, {
      at: "leaf",
      fix: "list the session's entries to see which there are",
    });
  }
}

/**
 * A session may be shown another's conversation, and that one a third's. The runner of the session reads all
 * of them.
 */
async function mayReadConversation(host: ServiceHost, caller: Caller, sessionId: string): Promise<boolean> {
  if (await isThere(host, caller, sessionId)) return true;
  return isKnownToHeld(host, caller, sessionId, (held) => sees(host, held, sessionId));
}

/**
 * A session reads the rows of its children, its parent, and the sessions whose conversations it was given.
 * Its runner may read them, too.
 */
async function mayReadRow(host: ServiceHost, caller: Caller, sessionId: string): Promise<boolean> {
  if (await mayReadConversation(host, caller, sessionId)) return true;
  if (caller.kind !== "runner") return false;
  const parent = (await host.storage.reader.session(sessionId))?.parent;
  if (parent !== undefined && (await host.dispatcher.holds(caller.name, parent.sessionId))) return true;
  return isKnownToHeld(host, caller, sessionId, (held) => held.parent?.sessionId === sessionId);
}

/** Whether a session that the runner holds refers to another one of the same owner. */
async function isKnownToHeld(
  { storage, clock }: ServiceHost,
  caller: Caller,
  sessionId: string,
  knows: (held: Session) => boolean | Promise<boolean>,
): Promise<boolean> {
  const session = caller.kind === "runner" ? await storage.reader.session(sessionId) : undefined;
  if (session === undefined) return false;
  for (let after: string | undefined; ;) {
    const place = after === undefined ? {} : { after };
    const query = { now: clock.now(), limit: CLAIMS_PAGE, owner: caller.name, ...place };
    const page = await storage.heldClaims(query);
    const rows = await Promise.all(
      page.map((claim) => storage.reader.session(claim.sessionId).catch(ifCorrupt)),
    );
    for (const held of rows)
      // mutant: foreign-session-read
      if (held !== undefined && held.placement?.owner === session.placement?.owner && (await knows(held)))
        return true;
    after = page.at(-1)?.sessionId;
    if (page.length < CLAIMS_PAGE) return false;
  }
}

/**
 * Whether the conversations that a session was given lead to another session. Imported rows may form a cycle.
 */
async function sees({ storage }: ServiceHost, session: Session, sessionId: string): Promise<boolean> {
  const seen = new Set<string>();
  for (let at: Session | undefined = session; at !== undefined && !seen.has(at.sessionId);) {
    const { shared } = at;
    if (shared === undefined || shared.kind === "custom") return false;
    // mutant: successor-conversation-refused
    if (shared.sessionId === sessionId) return true;
    seen.add(at.sessionId);
    at = await storage.reader.session(shared.sessionId);
  }
  return false;
}

async function readScoped(host: ServiceHost, caller: Caller, read: Read): Promise<unknown> {
  const { reader } = host.storage;
  switch (read.query) {
    case "sessions": {
      if (caller.kind === "admin") return reader.sessions(read.params);
      const { before } = read.params;
      if (before !== undefined && !(await isThere(host, caller, before))) throw sessionNotFound(before);
      if (caller.kind === "user") return reader.sessions({ ...read.params, owner: caller.name });
      const { parent } = read.params;
      if (parent === undefined)
        throw new UsageError("a runner may list only the children of sessions that it holds", {
          code: "forbidden",
          at: "params.parent",
        });
      return (await isThere(host, caller, parent)) ? reader.sessions(read.params) : [];
    }
    case "counts": {
      if (caller.kind === "admin") return reader.counts(read.params);
      if (caller.kind === "user") return reader.counts({ ...read.params, owner: caller.name });
      throw new UsageError("a runner counts no sessions", { code: "forbidden", at: "query" });
    }
    case "session": {
      const { sessionId } = read.params;
      return (await mayReadRow(host, caller, sessionId)) ? reader.session(sessionId) : undefined;
    }
    case "journal":
      await ownSession(host, caller, read.params.sessionId);
      return reader.journal(read.params.sessionId, read.params.fromSeq, read.params.limit);
    case "entries":
      await ownSession(host, caller, read.params.sessionId);
      return reader.entries(read.params.sessionId, read.params.from, read.params.limit);
    case "pendingSignals":
      await ownSession(host, caller, read.params.sessionId);
      return reader.pendingSignals(read.params.sessionId);
    case "seenSignals":
      await ownSession(host, caller, read.params.sessionId);
      return reader.seenSignals(read.params.sessionId);
    case "schedules": {
      const schedules = await reader.schedules();
      return caller.kind === "admin"
        ? schedules
        : schedules.filter(({ owner }) => caller.kind === "user" && owner === caller.name);
    }
    case "document":
      refuseUnlessAdmin(caller, read.query);
      return reader.document(read.params.collection, read.params.id);
    case "documents":
      refuseUnlessAdmin(caller, read.query);
      return reader.documents(read.params);
    case "audit":
      refuseUnlessAdmin(caller, read.query);
      return reader.audit(read.params);
  }
}

function refuseUnlessAdmin({ kind }: Caller, query: string): void {
  if (kind !== "admin") throw new HoldfastError("forbidden", `only an admin may call "${query}"`);
}
