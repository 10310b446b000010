// `workOf`, `mergeWork`: the work of a session in its folder, which is on the machine of the runner that ran the
// session last. That runner is asked.

import { defined, HoldfastError, type Change, type Session } from "@holdfast/core";
import { bytesOfValue } from "../../call/json-field.ts";
import type { RunnerCommand } from "../../dispatch/poller.ts";
import { endedRuns } from "../ended-runs.ts";
import { Unanswered } from "../runners/command-answers.ts";
import { sessionNotFound, sessionObject, type ServiceHost } from "../service-host.ts";

/** @throws HoldfastError also the runner's own error. */
export async function workOf(host: ServiceHost, sessionId: string): Promise<object> {
  const session = await found(host, sessionId);
  const runnerId = await lastRunner(host, sessionId);
  if (runnerId === undefined) return { status: "none" };
  return objectOf(await host.answers.ask(runnerId, questionOf("read_work", session, {})));
}

/** The merge that an admin asks for. */
export interface MergeAsked {
  /** Whether to commit first what is not committed. */
  readonly commit: boolean;
  /** The revision that the admin saw. */
  readonly revision: string;
  /** For the audit. */
  readonly actor: string;
}

/**
 * Merges the work into the project of the runner.
 *
 * @throws HoldfastError also the runner's own error.
 */
export async function mergeWork(
  host: ServiceHost,
  sessionId: string,
  { commit, revision, actor }: MergeAsked,
): Promise<object> {
  const session = await found(host, sessionId);
  const runnerId = await lastRunner(host, sessionId);
  if (runnerId === undefined) throw sessionNotFound(sessionId);
  const how = { commit, revision, ...defined({ title: session.title }) };
  const question = questionOf("merge_work", session, how);
  return auditedMerge(host.commit, session, actor, async () =>
    objectOf(await host.answers.ask(runnerId, question)),
  );
}

/**
 * A merge with two rows in the audit: the request, and what came of it. `unknown` stands for a merge whose answer
 * did not arrive.
 */
export async function auditedMerge(
  commit: (changes: readonly Change[]) => Promise<unknown>,
  session: Pick<Session, "sessionId">,
  actor: string,
  merge: () => Promise<object>,
): Promise<object> {
  const note = (outcome: string, details: object = {}): Promise<unknown> => {
    const audit = { actor, action: "session.merge", object: sessionObject(session), outcome };
    const more = Object.keys(details).length === 0 ? {} : { details: JSON.stringify(details) };
    return commit([{ type: "audited", audit: { ...audit, ...more } }]);
  };
  await note("asked");
  let merged: object;
  try {
    merged = await merge();
  } catch (error) {
    await note(error instanceof Unanswered ? "unknown" : HoldfastError.is(error) ? error.code : "error");
    throw error;
  }
  await note("done", factsOf(merged));
  return merged;
}

const COMMIT = /^[0-9a-f]{40,64}$/;
/** Git itself has no longer name of a branch. */
const BRANCH_CHARS = 250;

/** The facts of an answer that the audit keeps. A runner may have made the answer up. */
function factsOf(merged: object): object {
  const { into, commit, isNew } = merged as Readonly<Record<string, unknown>>;
  return defined({
    into: typeof into === "string" ? into.slice(0, BRANCH_CHARS) : undefined,
    commit: typeof commit === "string" && COMMIT.test(commit) ? commit : undefined,
    isNew: typeof isNew === "boolean" ? isNew : undefined,
  });
}

function questionOf(
  type: "read_work" | "merge_work",
  { sessionId, createdAt }: Session,
  how: object,
): Omit<RunnerCommand, "commandId"> {
  return { type, sessionId, arguments: bytesOfValue({ createdAt, ...how }) };
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
