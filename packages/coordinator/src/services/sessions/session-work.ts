// `workOf`, `mergeWork`: the work of a session in its folder, which is on the machine of the runner that ran the
// session last. That runner is asked.

import { defined, type Session } from "@holdfast/core";
import { bytesOfValue } from "../../call/json-field.ts";
import { endedRuns } from "../ended-runs.ts";
import { sessionNotFound, sessionObject, type ServiceHost } from "../service-host.ts";

/** @throws HoldfastError also the runner's own error. */
export async function workOf(host: ServiceHost, sessionId: string): Promise<object> {
  await found(host, sessionId);
  const runnerId = await lastRunner(host, sessionId);
  if (runnerId === undefined) return { status: "none" };
  return objectOf(await host.answers.ask(runnerId, { type: "read_work", sessionId }));
}

/**
 * Merges the work into the project of the runner. The audit has the request, also where the merge fails.
 *
 * @throws HoldfastError also the runner's own error.
 */
export async function mergeWork(
  host: ServiceHost,
  sessionId: string,
  { commit, actor }: { readonly commit: boolean; readonly actor: string },
): Promise<object> {
  const session = await found(host, sessionId);
  const runnerId = await lastRunner(host, sessionId);
  if (runnerId === undefined) throw sessionNotFound(sessionId);
  const audit = { actor, action: "session.merge", object: sessionObject(session) };
  await host.commit([{ type: "audited", audit }]);
  const how = bytesOfValue({ commit, ...defined({ title: session.title }) });
  return objectOf(await host.answers.ask(runnerId, { type: "merge_work", sessionId, arguments: how }));
}

async function found({ storage }: ServiceHost, sessionId: string): Promise<Session> {
  const session = await storage.reader.session(sessionId);
  if (session === undefined) throw sessionNotFound(sessionId);
  return session;
}

/** The holder of the session, or of its last run that has ended. */
async function lastRunner(host: ServiceHost, sessionId: string): Promise<string | undefined> {
  const { storage, clock } = host;
  const [claim] = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
  return claim?.owner ?? (await endedRuns(host, sessionId)).at(-1)?.holder;
}

function objectOf(answer: unknown): object {
  return typeof answer === "object" && answer !== null ? answer : { status: "none" };
}
