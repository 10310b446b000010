// Whose a session is, and so who may see it: one rule for every service.
//
//   X13. What a caller may not touch is told like what does not exist, with the same words.
//   X4. An agent at work touches its own session and those below it, as long as the claim lasts that its token was made for.
//       A runner touches what it holds, and the queued tasks (`task:…`) of those whose sessions it takes.

import { LIMITS, type Session } from "@holdfast/core";
import type { Caller } from "../call/caller.ts";
import type { StoredToken } from "../call/tokens.ts";
import { sessionNotFound, type ServiceHost } from "./service-host.ts";

type ScopeHost = Pick<ServiceHost, "storage" | "dispatcher">;

/** The session, if the caller may touch it. @throws NotFoundError */
export async function ownSession(host: ScopeHost, caller: Caller, sessionId: string): Promise<Session> {
  const session = await host.storage.reader.session(sessionId);
  if (session === undefined || !(await mayTouch(host, caller, session))) throw sessionNotFound(sessionId);
  return session;
}

export async function mayTouch(host: ScopeHost, caller: Caller, session: Session): Promise<boolean> {
  switch (caller.kind) {
    case "admin":
      return true;
    case "user":
      return session.placement?.owner === caller.name;
    case "job":
      return isWithin(host, caller.name, session);
    case "runner":
      return isTaskFor(caller, session) || (await host.dispatcher.holds(caller.name, session.sessionId));
    case "registration":
    case "none":
      return false;
  }
}

/** Whether a session is this one, or below it. Rows that users bring in may have families that go round. */
async function isWithin({ storage }: ScopeHost, top: string, session: Session): Promise<boolean> {
  const seen = new Set<string>();
  for (let at: Session | undefined = session; at !== undefined && !seen.has(at.sessionId);) {
    if (at.sessionId === top) return isBelow(session, at);
    seen.add(at.sessionId);
    at = at.parent === undefined ? undefined : await storage.reader.session(at.parent.sessionId);
  }
  return false;
}

/** Another owner's is below nobody's session that it names (ST36). */
function isBelow(session: Session, { placement }: Session): boolean {
  return placement?.owner === undefined || session.placement?.owner === placement.owner;
}

/** As many as a session may have. */
export async function childrenOf({ storage }: ScopeHost, session: Session): Promise<readonly Session[]> {
  const { sessionId: parent, placement } = session;
  const { owner } = placement ?? {};
  const ofOwner = owner === undefined ? {} : { owner };
  return storage.reader.sessions({ parent, limit: LIMITS.children, ...ofOwner });
}

function isTaskFor(caller: Caller, { agent, placement }: Session): boolean {
  return agent.name.startsWith("task:") && (caller.owner === undefined || caller.owner === placement?.owner);
}

/** Whose what a caller starts is. */
export async function ownerFor(host: ScopeHost, caller: Caller): Promise<string | undefined> {
  if (caller.kind === "user") return caller.name;
  if (caller.kind !== "job") return undefined;
  return (await host.storage.reader.session(caller.name))?.placement?.owner;
}

/** Whether a claim is its session's newest, its runner's, and has not passed (X4). */
export async function isClaimOf(
  { storage, clock }: Pick<ServiceHost, "storage" | "clock">,
  of: Pick<StoredToken, "sessionId" | "runnerId" | "claimToken">,
): Promise<boolean> {
  const { sessionId = "", runnerId, claimToken } = of;
  const [claim] = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
  return claim !== undefined && claim.owner === runnerId && claim.token === claimToken;
}
