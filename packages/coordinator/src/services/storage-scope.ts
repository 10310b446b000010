// What a runtime elsewhere may ask of the storage, by whose it is.
//
//   O1. A runner commits and releases what it claimed, under the token it was given: storage fences the token, and that it is this
//       runner's is asked here. It makes nothing but what its batches make.
//   X13. A user's runtime has that user's sessions and schedules. What it makes is its user's, and nothing it brings in may refer to
//       what is another's: no parent, no payer, no conversation. What it names before that is there, storage looks at (ST36).
//   storage-scope-5. An admin has everything.

import {
  isEnded,
  UsageError,
  type Change,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  type Effect,
  type ReleaseClaim,
  type RunNote,
  type Session,
} from "@holdfast/core";
import { UNKNOWN_VERSION } from "@holdfast/core/internal";
import type { Caller } from "../call/caller.ts";
import { LEASE_MS_MAX } from "../store/store-time.ts";
import type { ServiceHost } from "./service-host.ts";
import { mayTouch } from "./session-scope.ts";
import { versionOf } from "./session-start.ts";

/** A change as it is to be applied, or the answer it gets instead. */
export type Scoped = { readonly change: Change } | { readonly result: ChangeResult };

const NOT_FOUND: Scoped = { result: { status: "not_found" } };
const FENCED: Scoped = { result: { status: "fenced" } };

export async function scopeChange(host: ServiceHost, caller: Caller, change: Change): Promise<Scoped> {
  if (caller.kind === "admin") return { change };
  return caller.kind === "runner" ? scopeForRunner(host, caller, change) : scopeForUser(host, caller, change);
}

/** O1. */
async function scopeForRunner(host: ServiceHost, caller: Caller, change: Change): Promise<Scoped> {
  // A session asks for its own end when its time or its money is up, and is told again what it has missed.
  if (change.type === "request_cancel" || change.type === "send_signal")
    return (await host.dispatcher.holds(caller.name, change.sessionId)) ? { change } : NOT_FOUND;
  if (change.type !== "commit_batch" && change.type !== "release_claim") return forbidden(change);
  const { sessionId, token } = change;
  if (!(await host.dispatcher.holds(caller.name, sessionId, token))) return FENCED;
  const run = runNote(host, caller, change);
  if (change.type === "release_claim") return { change: { ...change, run } };
  if (await hasForeign(host, caller, change.effects ?? [], sessionId)) return NOT_FOUND;
  return { change: { ...(await withVersions(host, change)), run } };
}

/** The note that is kept of the run when this change ends it (ST50), whatever the runner says of it. */
function runNote(
  { dispatcher }: ServiceHost,
  { name: holder }: Caller,
  { sessionId, token }: CommitBatch | ReleaseClaim,
): RunNote {
  const since = dispatcher.givenAt(sessionId, token);
  return { holder, ...(since === undefined ? {} : { since }) };
}

/** A child of an agent that its parent's runner does not know is of the version that runners offer now. */
async function withVersions(host: ServiceHost, change: CommitBatch): Promise<CommitBatch> {
  const { effects = [] } = change;
  if (!effects.some(isUnversioned)) return change;
  const versioned = effects.map(async (effect) => {
    if (!isUnversioned(effect)) return effect;
    const { agent } = effect;
    return { ...effect, agent: { ...agent, version: await versionOf(host, agent.name, "1") } };
  });
  return { ...change, effects: await Promise.all(versioned) };
}

function isUnversioned(effect: Effect): effect is CreateSession {
  return effect.type === "create_session" && effect.agent.version === UNKNOWN_VERSION;
}

/** X13. */
async function scopeForUser(host: ServiceHost, caller: Caller, change: Change): Promise<Scoped> {
  switch (change.type) {
    case "create_session":
      if (await hasForeign(host, caller, [change], change.sessionId)) return NOT_FOUND;
      return { change: ownedCreation(caller, change) };
    case "import_session": {
      const { session } = change;
      if (await anyForeign(host, caller, [...referencesOf(session), ...session.payers], change.sessionId))
        return NOT_FOUND;
      const placement = { ...session.placement, owner: caller.name };
      return { change: { ...change, session: { ...session, ...waitingSince(host, session), placement } } };
    }
    case "commit_batch":
    case "release_claim":
      if (!(await isOwn(host, caller, change.sessionId))) return NOT_FOUND;
      if (change.type === "release_claim") return { change };
      return (await hasForeign(host, caller, change.effects ?? [], change.sessionId))
        ? NOT_FOUND
        : { change };
    case "send_signal":
    case "request_cancel":
    case "pause_session":
    case "resume_session":
    case "set_budget":
    case "delete_session":
    case "begin_move":
    case "end_move":
      return (await isOwn(host, caller, change.sessionId)) ? { change } : NOT_FOUND;
    case "put_schedule": {
      const { scheduleId } = change.schedule;
      const known = await scheduleOwner(host, scheduleId);
      if (known !== undefined && known.owner !== caller.name) return NOT_FOUND;
      return { change: { ...change, schedule: { ...change.schedule, owner: caller.name } } };
    }
    case "remove_schedule":
    case "fire_schedule": {
      if ((await scheduleOwner(host, change.scheduleId))?.owner !== caller.name) return NOT_FOUND;
      if (change.type === "remove_schedule") return { change };
      const { effect } = change;
      return (await hasForeign(host, caller, [effect], effect.sessionId)) ? NOT_FOUND : { change };
    }
    case "put_document":
    case "remove_document":
    case "audited":
      return forbidden(change);
  }
}

/** It has waited here since it came, whatever it says: who has waited longest is given away first. */
function waitingSince({ clock }: ServiceHost, { status }: Session): Partial<Session> {
  if (isEnded(status)) return {};
  const now = clock.now();
  return status === "submitted" ? { createdAt: now, updatedAt: now } : { updatedAt: now };
}

/** Changes that are told in an audit row: all but a runtime's own work, whose record is the journal. */
export function isAudited(change: Change): change is Exclude<Change, { type: "audited" | "commit_batch" }> {
  return change.type !== "commit_batch" && change.type !== "release_claim" && change.type !== "audited";
}

/** The owner of claims that a caller makes: its own name space, so that nobody renews or takes another's. */
export function claimOwner(caller: Caller, owner: string): string {
  if (caller.kind === "admin") return owner;
  return caller.kind === "runner" ? caller.name : `${caller.kind}:${caller.name}:${owner}`;
}

export function claimLease(caller: Caller, leaseMs: number | undefined, usualMs: number): number {
  if (caller.kind === "admin") return leaseMs ?? Infinity;
  // What a coordinator was configured to give, its runners believe to have.
  return Math.min(leaseMs ?? usualMs, Math.max(usualMs, LEASE_MS_MAX));
}

function ownedCreation(caller: Caller, change: CreateSession): CreateSession {
  const { claimFor } = change;
  return {
    ...change,
    placement: { ...change.placement, owner: caller.name },
    ...(claimFor === undefined
      ? {}
      : {
          claimFor: {
            owner: claimOwner(caller, claimFor.owner),
            leaseMs: Math.min(claimFor.leaseMs, LEASE_MS_MAX),
          },
        }),
  };
}

async function isOwn(host: ServiceHost, caller: Caller, sessionId: string): Promise<boolean> {
  const session = await host.storage.reader.session(sessionId);
  return session !== undefined && (await mayTouch(host, caller, session));
}

/** Whether what effects make refers to what is not the caller's. Whom they signal and cancel, storage looks at (ST36). */
async function hasForeign(
  host: ServiceHost,
  caller: Caller,
  effects: readonly Effect[],
  ownId: string,
): Promise<boolean> {
  const creations = effects.filter((effect) => effect.type === "create_session");
  if (creations.length === 0) return false;
  const ids = new Set(creations.flatMap(referencesOf));
  for (const { first } of creations)
    if (first?.effects !== undefined && (await hasForeign(host, caller, first.effects, ownId))) return true;
  if ([...ids].every((id) => id === ownId)) return false;
  // What its own parent is, and what it was given to see, a session may hand on.
  const own = await host.storage.reader.session(ownId);
  for (const id of own === undefined ? [] : referencesOf(own)) ids.delete(id);
  return anyForeign(host, caller, [...ids], ownId);
}

async function anyForeign(
  host: ServiceHost,
  caller: Caller,
  ids: readonly string[],
  ownId: string,
): Promise<boolean> {
  for (const id of ids) {
    if (id === ownId) continue;
    const session = await host.storage.reader.session(id);
    if (session !== undefined && !(await mayTouch(host, caller, session))) return true;
  }
  return false;
}

/** The other sessions that a new one tells, or sees, or that remember it. */
function referencesOf({
  parent,
  shared,
  under,
}: Pick<Session, "parent" | "shared"> & Pick<CreateSession, "under">): readonly string[] {
  return [
    ...(under === undefined ? [] : [under.sessionId]),
    ...(parent === undefined ? [] : [parent.sessionId]),
    ...(shared === undefined || shared.kind === "custom" ? [] : [shared.sessionId]),
  ];
}

async function scheduleOwner(
  { storage }: ServiceHost,
  scheduleId: string,
): Promise<{ readonly owner: string | undefined } | undefined> {
  const schedule = (await storage.reader.schedules()).find((each) => each.scheduleId === scheduleId);
  return schedule === undefined ? undefined : { owner: schedule.owner };
}

function forbidden({ type }: Change): never {
  throw new UsageError(`the token does not allow a change of the type "${type}"`, { code: "forbidden" });
}
