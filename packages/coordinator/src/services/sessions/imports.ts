// Sessions that are made of others: forks, and imports.

import {
  type ChangeResult,
  ConflictError,
  type FileImport,
  forkSession,
  type ImportSession,
  LIMITS,
  mintId,
  readOrigin,
  refuseIfLarge,
  type Session,
  UsageError,
  importedBy,
} from "@holdfast/core";
import type { ForkRequest } from "@holdfast/proto";
import { refuseForeignProject } from "../environments/project-of.ts";
import { auditOf, type Call } from "../../call/call.ts";
import { textOf } from "../../call/json-field.ts";
import {
  audited,
  notifyImported,
  sessionNotFound,
  sessionObject,
  unexpected,
  type ServiceHost,
} from "../service-host.ts";

export async function forkOf(
  host: ServiceHost,
  origin: Session,
  request: ForkRequest,
): Promise<ImportSession> {
  const { clock, random, storage } = host;
  const input = textOf(request.input, "input");
  refuseIfLarge(input, "input", LIMITS.payloadChars);
  return forkSession(await readOrigin(storage.reader, origin), {
    sessionId: request.newSessionId ?? mintId("ses", clock.now(), () => random.u32()),
    ...(request.at === undefined ? {} : { at: Number(request.at) }),
    ...(input === undefined ? {} : { input: { text: input } }),
    tasks: request.tasks === "cancel" ? "cancel" : "rerun",
    seed: random.u32(),
    now: clock.now(),
  });
}

/** Stores sessions that are imported, or one that is forked. Returns the first one. */
export async function storeImported(
  host: ServiceHost,
  change: FileImport,
  action: string,
  call: Call,
): Promise<Session> {
  const { sessionId } = change;
  for (const { session } of importedBy(change))
    refuseForeignProject(call.caller, session.placement, "session.placement.demands");
  const result: ChangeResult = await audited(host, change, auditOf(call, action, sessionObject(change)));
  switch (result.status) {
    case "created": {
      await notifyImported(host, change);
      const session = await host.storage.reader.session(sessionId);
      if (session === undefined) throw sessionNotFound(sessionId);
      return session;
    }
    case "exists":
      throw new ConflictError("session_exists", `there is a session ${sessionId} already`, {
        fix: "choose another id, or none",
      });
    case "invalid":
      throw new UsageError(result.reason);
    default:
      throw unexpected(action, result);
  }
}
