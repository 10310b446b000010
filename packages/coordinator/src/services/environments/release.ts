// `releaseEnvironments`: the variables and secrets of a session, for the runner that holds it.
//
//   - Only the runner that holds the session by its newest claim gets them, and only while the lease
//       lasts. The answer to all others is the same as for a session that is not there.
//   - It gets the variables that the pushed version of the session's agent file declares, and no others.
//   - The audit has each release before the answer is sent: the session, the runner, and the names.

import { type Audited, type EnvironmentKeys, type Environments, type Session } from "@holdfast/core";
import { auditOf, type Call } from "../../call/call.ts";
import { declaredBy } from "../../catalogue/catalogue.ts";
import type { EnvironmentsOfSession } from "../../environments/stored-environments.ts";
import type { ServiceHost } from "../service-host.ts";
import { isClaimOf } from "../session-scope.ts";
import { notHeld } from "../session-start.ts";
import { projectOf } from "./project-of.ts";

/** @throws ConflictError `fenced`, HoldfastError `secret_key` */
export async function releaseEnvironments(
  host: ServiceHost,
  { sessionId, claimToken }: { readonly sessionId: string; readonly claimToken: number },
  call: Call,
): Promise<Environments> {
  const { storage, catalogue, environments } = host;
  // mutant: environment-without-claim
  if (!(await isClaimOf(host, { sessionId, runnerId: call.caller.name, claimToken })))
    throw notHeld(sessionId);
  const session = await storage.reader.session(sessionId);
  if (session === undefined) throw notHeld(sessionId);
  const declared = declaredBy(await catalogue.agent(session.agent.name), session.agent.version);
  if (declared === undefined) return {};
  const of: EnvironmentsOfSession = {
    person: session.placement?.owner,
    project: await projectOf(host, session),
    named: declared.environments,
    references: session.environment?.references ?? [],
  };
  const released = Object.entries(await environments.ofSession(of)).map(
    ([name, keys]) => [name, onlyDeclared(keys, declared.variables)] as const,
  );
  // mutant: release-without-audit
  await auditRelease(host, of, released, session, call);
  return Object.fromEntries(released);
}

/** A key that is only required has no value to keep. */
function onlyDeclared(keys: EnvironmentKeys, variables: readonly string[]): EnvironmentKeys {
  // mutant: undeclared-value-released
  const isReleased = (key: string): boolean => variables.includes(key) || keys[key]?.value === undefined;
  return Object.fromEntries(Object.entries(keys).filter(([key]) => isReleased(key)));
}

async function auditRelease(
  { commit }: Pick<ServiceHost, "commit">,
  { person, project }: EnvironmentsOfSession,
  released: readonly (readonly [name: string, keys: EnvironmentKeys])[],
  { sessionId, agent }: Session,
  call: Call,
): Promise<void> {
  const names = released.flatMap(([name, keys]) =>
    Object.entries(keys).flatMap(([key, { value }]) => (value === undefined ? [] : `${name}.${key}`)),
  );
  if (names.length === 0) return;
  const details = { person, project, agent: agent.name, version: agent.version, released: names };
  const row: Audited = {
    type: "audited",
    audit: {
      ...auditOf(call, "environment.release", `session:${sessionId}`),
      details: JSON.stringify(details),
    },
  };
  await commit([row]);
}
