// `scopeChange` decides which changes and reads of storage a runtime elsewhere may request, by the owner of
// its sessions.
//
//   O1. A runner commits to and releases the sessions that it claimed, under their tokens. Storage checks the
//       token, and this file checks that the claim is this runner's. A runner creates nothing except through
//       its batches, and for the owner of the session that it holds.
//   X13. A user's runtime has that user's sessions and schedules. Sessions that it creates belong to its
//       user. An imported row must not refer to the conversation of another owner's session. It has no
//       parent and no payer that was not imported with it (ST36).
//   - An admin may request everything.

import {
  type Change,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  defined,
  type Effect,
  type ImportedSession,
  isEnded,
  type ReleaseClaim,
  type RunNote,
  type Session,
  UNKNOWN_VERSION,
  UsageError,
} from "@holdfast/core";
import type { Caller } from "../call/caller.ts";
import { LEASE_MS_MAX } from "../store/store-time.ts";
import type { ServiceHost } from "./service-host.ts";
import { inProject, projectOf, refuseForeignProject, refuseForeignTree } from "./environments/project-of.ts";
import { mayTouch } from "./session-scope.ts";
import { versionOf } from "./session-start.ts";

/** A change in the form to apply, or the result that the caller gets instead. */
export type Scoped = { readonly change: Change } | { readonly result: ChangeResult };

const NOT_FOUND: Scoped = { result: { status: "not_found" } };
const FENCED: Scoped = { result: { status: "fenced" } };

export async function scopeChange(host: ServiceHost, caller: Caller, change: Change): Promise<Scoped> {
  // Only the coordinator itself removes rows of the audit.
  const inner = change.type === "audited" ? change.change : change;
  if (inner?.type === "trim_audit") return forbidden(inner);
  if (caller.kind === "admin") return { change };
  return caller.kind === "runner" ? scopeForRunner(host, caller, change) : scopeForUser(host, caller, change);
}

/** O1. */
async function scopeForRunner(host: ServiceHost, caller: Caller, change: Change): Promise<Scoped> {
  // A session requests its own end when its time or budget is over, and sends itself outcomes that it missed.
  if (change.type === "request_cancel" || change.type === "send_signal")
    return (await host.dispatcher.holds(caller.name, change.sessionId)) ? { change } : NOT_FOUND;
  if (change.type !== "commit_batch" && change.type !== "release_claim") return forbidden(change);
  const { sessionId, token } = change;
  if (!(await host.dispatcher.holds(caller.name, sessionId, token))) return FENCED;
  const run = runNote(host, caller, change);
  if (change.type === "release_claim") return { change: { ...change, run } };
  const { effects = [] } = change;
  if (effects.length === 0) return { change: { ...change, run } };
  if (await hasForeign(host, caller, effects, sessionId)) return NOT_FOUND;
  return { change: { ...(await ownedEffects(host, await withVersions(host, change))), run } };
}

/**
 * A session that a runner creates has the owner of the one that it holds. It would otherwise get the values of
 * another person or project (`project-of.ts`).
 */
async function ownedEffects(host: ServiceHost, change: CommitBatch): Promise<CommitBatch> {
  const { effects = [], sessionId } = change;
  if (!effects.some(({ type }) => type === "create_session")) return change;
  const held = await host.storage.reader.session(sessionId);
  if (held === undefined) return change; // Storage refuses the batch.
  const project = await projectOf(host, held);
  // mutant: foreign-owner-by-a-runner
  return { ...change, effects: effects.map((effect) => placedAs(held.placement?.owner, project, effect)) };
}

function placedAs(owner: string | undefined, project: string | undefined, effect: Effect): Effect {
  if (effect.type !== "create_session") return effect;
  const { placement: { owner: _wanted, ...wanted } = {}, first, ...creation } = effect;
  const demands = creation.parent === undefined ? inProject(project, wanted.demands) : wanted.demands;
  const placement = { ...wanted, ...defined({ owner, demands }) };
  const effects = first?.effects?.map((each) => placedAs(owner, project, each));
  return {
    ...creation,
    ...(Object.keys(placement).length === 0 ? {} : { placement }),
    ...(first === undefined ? {} : { first: { ...first, ...defined({ effects }) } }),
  };
}

/** The note that is kept of the run if this change ends it (ST50). It overrides any note of the runner. */
function runNote(
  { dispatcher }: ServiceHost,
  { name: holder }: Caller,
  { sessionId, token }: CommitBatch | ReleaseClaim,
): RunNote {
  const since = dispatcher.givenAt(sessionId, token);
  return { holder, ...defined({ since }) };
}

/** A child whose agent the parent's runner does not know gets the version that runners offer now. */
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
    case "import_session":
      refuseForeignProject(caller, change.session.placement, "session.placement.demands");
      if (await hasForeignConversation(host, caller, [change])) return NOT_FOUND;
      return { change: ownedImport(host, caller, change) };
    case "import_tree": {
      for (const { session } of change.sessions)
        refuseForeignProject(caller, session.placement, "session.placement.demands");
      if (await hasForeignConversation(host, caller, change.sessions)) return NOT_FOUND;
      const sessions = change.sessions.map((imported) => ownedImport(host, caller, imported));
      return { change: { ...change, sessions } };
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
    case "set_title":
    case "delete_session":
    case "begin_move":
    case "end_move":
      return (await isOwn(host, caller, change.sessionId)) ? { change } : NOT_FOUND;
    case "remove_ended": {
      const own = await Promise.all(change.sessionIds.map((sessionId) => isOwn(host, caller, sessionId)));
      return { change: { ...change, sessionIds: change.sessionIds.filter((_, at) => own[at]) } };
    }
    case "put_schedule": {
      const { scheduleId } = change.schedule;
      const known = await scheduleOwner(host, scheduleId);
      if (known !== undefined && known.owner !== caller.name) return NOT_FOUND;
      const { action } = change.schedule;
      if (action.type === "start")
        refuseForeignProject(caller, action.placement, "schedule.action.placement");
      return { change: { ...change, schedule: { ...change.schedule, owner: caller.name } } };
    }
    case "remove_schedule":
    case "fire_schedule": {
      if ((await scheduleOwner(host, change.scheduleId))?.owner !== caller.name) return NOT_FOUND;
      if (change.type === "remove_schedule") return { change };
      const { effect } = change;
      // mutant: schedule-refers-to-foreign
      return (await hasForeign(host, caller, [effect], effect.sessionId)) ? NOT_FOUND : { change };
    }
    case "put_document":
    case "remove_document":
    case "trim_audit":
    case "audited":
      return forbidden(change);
  }
}

/**
 * A session has waited here since it arrived, whatever its row says: the session that has waited longest is
 * given first.
 */
function waitingSince({ clock }: ServiceHost, { status }: Session): Partial<Session> {
  if (isEnded(status)) return {};
  const now = clock.now();
  return status === "submitted" ? { createdAt: now, updatedAt: now } : { updatedAt: now };
}

/** Whether a change has an audit row. A runtime's own work has none, because its record is the journal. */
export function isAudited(change: Change): change is Exclude<Change, { type: "audited" | "commit_batch" }> {
  const { type } = change;
  return type !== "commit_batch" && type !== "release_claim" && type !== "audited" && type !== "trim_audit";
}

/**
 * The owner of a caller's claims: each caller has a name space, so that it cannot renew or take another's
 * claims.
 */
export function claimOwner(caller: Caller, owner: string): string {
  if (caller.kind === "admin") return owner;
  return caller.kind === "runner" ? caller.name : `${caller.kind}:${caller.name}:${owner}`;
}

export function claimLease(caller: Caller, leaseMs: number | undefined, usualMs: number): number {
  if (caller.kind === "admin") return leaseMs ?? Infinity;
  // Runners trust the lease that their coordinator was configured to give.
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

function ownedImport<T extends ImportedSession>(host: ServiceHost, caller: Caller, imported: T): T {
  const { session } = imported;
  const placement = { ...session.placement, owner: caller.name };
  return { ...imported, session: { ...session, ...waitingSince(host, session), placement } };
}

/** Storage detaches imported sessions from parents that were not imported with them. */
async function hasForeignConversation(
  host: ServiceHost,
  caller: Caller,
  sessions: readonly ImportedSession[],
): Promise<boolean> {
  for (const { sessionId, session } of sessions) {
    const { parent: _parent, ...alone } = session;
    if (await anyForeign(host, caller, referencesOf(alone), sessionId)) return true;
  }
  return false;
}

async function isOwn(host: ServiceHost, caller: Caller, sessionId: string): Promise<boolean> {
  const session = await host.storage.reader.session(sessionId);
  return session !== undefined && (await mayTouch(host, caller, session));
}

/**
 * Whether the effects of a batch refer to another owner's sessions. Storage checks signals and cancels
 * (ST36).
 */
async function hasForeign(
  host: ServiceHost,
  caller: Caller,
  effects: readonly Effect[],
  ownId: string,
): Promise<boolean> {
  const creations = effects.filter((effect) => effect.type === "create_session");
  for (const creation of creations) {
    refuseForeignProject(caller, creation.placement, "placement.demands");
    await refuseForeignTree(host, caller, creation, "parent.sessionId");
  }
  if (creations.length === 0) return false;
  const ids = new Set(creations.flatMap(referencesOf));
  for (const { first } of creations)
    if (first?.effects !== undefined && (await hasForeign(host, caller, first.effects, ownId))) return true;
  if ([...ids].every((id) => id === ownId)) return false;
  // A session may pass on references to its own parent, and to conversations that it was given.
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

/** The other sessions that a new one notifies, sees or is remembered by. */
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
