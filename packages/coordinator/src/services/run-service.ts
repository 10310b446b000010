// `RunService` serves runs over the API. Runs are derived from the sessions and claims in storage.
//
//   - A run that has not ended is not stored. A due session has a queued run, and a held one a claimed run. A
//     run that passes on while a list is made may be listed twice, or not at all. Ended runs are stored
//     (`ended-runs.ts`).
//   - A run's id consists of its session and its token. A queued run has no token yet, and its id ends in
//     `next`.
//   X13. A user sees only runs of own sessions. The answer for another user's run is the same as for no run.
//
// This service gives no sessions to runners; dispatch does.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  defined,
  dueAt,
  type EndedRun,
  type HeldClaim,
  isAnsweredBy,
  NO_CLAIM,
  NotFoundError,
  type Session,
} from "@holdfast/core";
import type {
  GetRunRequest,
  GetRunResultRequest,
  GetRunResultResponseSchema,
  ListRunsRequest,
  ListRunsResponseSchema,
  RunSchema,
  RunService as Contract,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import { fitnessOf, nameOf } from "../store/registry.ts";
import { dueSince, NO_MATCH_MS, unmetBy, whyNotTaken, type KnownRunner } from "../dispatch/rules.ts";
import { bytesOf } from "../call/json-field.ts";
import { callOf } from "../call/call.ts";
import { endedRuns, endOfRun, hasEndedSession, sessionsWithEndedRuns, untilAnswered } from "./ended-runs.ts";
import { errorMessage } from "./session-message.ts";
import { heldBy, healthOf } from "./runner-health.ts";
import { unknownCursor, type ServiceHost } from "./service-host.ts";
import { mayTouch } from "./session-scope.ts";

const PAGE = 100;
/**
 * How many claims are read at a time, and how much of the queue is read. Longer lists show only the
 * beginning.
 */
const READ_MAX = 500;
const QUEUE_MAX = 10_000;
const NEXT = "next";

type RunMessage = MessageInitShape<typeof RunSchema>;
type RunPage = MessageInitShape<typeof ListRunsResponseSchema>;
type Filter = Pick<ListRunsRequest, "status" | "sessionId" | "agent" | "runnerId" | "owner">;

export class RunService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;

  constructor(host: ServiceHost) {
    this.#host = host;
  }

  async list(
    { limit = PAGE, cursor, ...filter }: ListRunsRequest,
    context: HandlerContext,
  ): Promise<RunPage> {
    const { caller } = callOf(context);
    if (filter.status === "ended") return listEnded(this.#host, caller, filter, limit, cursor);
    const [status, after] = readCursor(cursor);
    const wanted = caller.kind === "user" ? ofUser(caller, filter) : filter;
    if (wanted === undefined) return { runs: [] };
    const page: RunMessage[] = [];
    for await (const run of runsBehind(this.#host, wanted, status, after)) {
      if (page.length === limit) {
        const last = page.at(-1)!;
        return { runs: page, nextCursor: `${last.status}:${last.sessionId}` };
      }
      page.push(run);
    }
    return { runs: page };
  }

  async get({ runId }: GetRunRequest, context: HandlerContext): Promise<RunMessage> {
    const host = this.#host;
    const { session, token } = await named(host, callOf(context).caller, runId);
    const run = await runOf(host, session, new Runners(host));
    if (run?.runId === runId) return run;
    const end = token === undefined ? undefined : await endOfRun(host, session.sessionId, token);
    if (end === undefined) throw runNotFound(runId, run);
    return endedRun(session, token!, end);
  }

  async getResult({ runId, waitMs = 0 }: GetRunResultRequest, context: HandlerContext) {
    const host = this.#host;
    const call = callOf(context);
    const { session: before, token: given } = await named(host, call.caller, runId);
    const { sessionId } = before;
    let token = given;
    let run = await runOf(host, before, new Runners(host));
    if (token === undefined && run === undefined) throw runNotFound(runId, run);
    const end = await untilAnswered(host, sessionId, waitMs, call, async () => {
      token ??= (await heldClaim(host, sessionId))?.token;
      return token === undefined ? undefined : endOfRun(host, sessionId, token);
    });
    const session = (await named(host, call.caller, runId)).session;
    if (end !== undefined) return resultOf(session, token!, end);
    run = await runOf(host, session, new Runners(host));
    // A run that was requested by its token must be the current claim.
    if (run === undefined || (given !== undefined && run.runId !== runId)) throw runNotFound(runId, run);
    return { run, ended: false };
  }
}

/** The session and the token of a run's id; a queued run has no token. @throws NotFoundError */
async function named(
  host: ServiceHost,
  caller: Caller,
  runId: string,
): Promise<{ readonly session: Session; readonly token: number | undefined }> {
  const [, sessionId, token] = /^run_(.+)\.(next|[1-9]\d{0,15})$/s.exec(runId) ?? [];
  const session = sessionId === undefined ? undefined : await host.storage.reader.session(sessionId);
  if (session === undefined || !(await mayTouch(host, caller, session))) throw runNotFound(runId);
  return { session, token: token === NEXT ? undefined : Number(token) };
}

async function heldClaim({ storage, clock }: ServiceHost, sessionId: string): Promise<HeldClaim | undefined> {
  return (await storage.heldClaims({ now: clock.now(), limit: 1, sessionId }))[0];
}

/**
 * Lists ended runs, newest first within a session. A page ends with a session, so it may be a little longer
 * than `limit`.
 */
async function listEnded(
  host: ServiceHost,
  caller: Caller,
  filter: Filter,
  limit: number,
  cursor: string | undefined,
): Promise<RunPage> {
  const [, after] = cursor === undefined ? [] : (/^ended:(.+)$/s.exec(cursor) ?? [undefined, undefined]);
  if (cursor !== undefined && after === undefined) throw unknownCursor();
  const wanted = caller.kind === "user" ? ofUser(caller, filter) : filter;
  if (wanted === undefined) return { runs: [] };
  const page: RunMessage[] = [];
  const add = (session: Session, runs: readonly EndedRun[]): void => {
    if (!isAskedFor(session, wanted)) return;
    for (const run of runs.toReversed())
      if (isHolder(host, run.holder, wanted)) page.push(endedRun(session, run.token, run));
  };
  await host.registry.all(); // Which names their holders.
  if (wanted.sessionId !== undefined) {
    const session = await host.storage.reader.session(wanted.sessionId);
    if (session !== undefined) add(session, await endedRuns(host, wanted.sessionId));
    return { runs: page };
  }
  for await (const [session, runs] of sessionsWithEndedRuns(host, after)) {
    add(session, runs);
    if (page.length >= limit) return { runs: page, nextCursor: `ended:${session.sessionId}` };
  }
  return { runs: page };
}

function endedRun(session: Session, token: number, end: EndedRun | "lost"): RunMessage {
  const fields = { ...runFields(session, String(token)), status: "ended", token: BigInt(token) };
  if (end === "lost") return { ...fields, outcome: "lost" };
  const { holder, since, endedAt, outcome } = end;
  return {
    ...fields,
    outcome,
    holder,
    endedAt: BigInt(Math.round(endedAt)),
    ...(since === undefined ? {} : { since: BigInt(Math.round(since)) }),
  };
}

function resultOf(
  session: Session,
  token: number,
  end: EndedRun | "lost",
): MessageInitShape<typeof GetRunResultResponseSchema> {
  const run = endedRun(session, token, end);
  if (end === "lost" || !hasEndedSession(session, end)) return { run, ended: true };
  const { output, error } = session;
  return {
    run,
    ended: true,
    ...(output === undefined ? {} : { output: bytesOf(output) }),
    ...(error === undefined ? {} : { error: errorMessage(error) }),
  };
}

/** A user who filters by another owner gets an empty list (X13). */
function ofUser({ name }: Caller, filter: Filter): Filter | undefined {
  return filter.owner === undefined || filter.owner === name ? { ...filter, owner: name } : undefined;
}

function readCursor(cursor: string | undefined): readonly ["claimed" | "queued", string | undefined] {
  if (cursor === undefined) return ["claimed", undefined];
  const [, status, sessionId] = /^(queued|claimed):(.+)$/s.exec(cursor) ?? [];
  if (status === undefined) throw unknownCursor();
  return [status as "queued" | "claimed", sessionId];
}

async function* runsBehind(
  host: ServiceHost,
  filter: Filter,
  status: "claimed" | "queued",
  after: string | undefined,
): AsyncGenerator<RunMessage> {
  const runners = new Runners(host);
  if (filter.sessionId !== undefined) {
    const session = after === undefined ? await host.storage.reader.session(filter.sessionId) : undefined;
    const run = session && isAskedFor(session, filter) ? await runOf(host, session, runners) : undefined;
    if (run === undefined || (filter.status ?? run.status) !== run.status) return;
    if (isHolder(host, run.holder, filter)) yield run;
    return;
  }
  if (status === "claimed" && filter.status !== "queued") yield* claimedBehind(host, filter, after);
  if (filter.status === "claimed" || filter.runnerId !== undefined) return;
  yield* queuedBehind(host, filter, status === "queued" ? after : undefined, runners);
}

async function* claimedBehind(
  host: ServiceHost,
  filter: Filter,
  behind: string | undefined,
): AsyncGenerator<RunMessage> {
  const { storage, clock, registry } = host;
  const isName = (await registry.all()).some((runner) => nameOf(runner) === filter.runnerId);
  const owner = filter.runnerId === undefined || isName ? {} : { owner: filter.runnerId };
  for (let after = behind; ;) {
    const place = after === undefined ? {} : { after };
    const page = await storage.heldClaims({ now: clock.now(), limit: READ_MAX, ...owner, ...place });
    const claims = page.filter((claim) => isHolder(host, claim.owner, filter));
    const rows = await Promise.all(claims.map(({ sessionId }) => storage.reader.session(sessionId)));
    for (const [i, claim] of claims.entries()) {
      const session = rows[i];
      if (session !== undefined && isAskedFor(session, filter)) yield claimedRun(host, session, claim);
    }
    after = page.at(-1)?.sessionId;
    if (page.length < READ_MAX) return;
  }
}

/** Whether the holder is the runner of the filter, by its id or its name. */
function isHolder({ registry }: ServiceHost, owner: string | undefined, { runnerId }: Filter): boolean {
  return runnerId === undefined || owner === runnerId || registry.nameOf(owner ?? "") === runnerId;
}

async function* queuedBehind(
  host: ServiceHost,
  filter: Filter,
  after: string | undefined,
  runners: Runners,
): AsyncGenerator<RunMessage> {
  const { storage, clock } = host;
  const agents = filter.agent === undefined ? {} : { agents: [filter.agent] };
  const { sessionIds } = await storage.due({ now: clock.now(), limit: QUEUE_MAX, ...agents });
  for (const sessionId of sessionIds.toSorted()) {
    if (after !== undefined && sessionId <= after) continue;
    const session = await storage.reader.session(sessionId);
    if (session !== undefined && isAskedFor(session, filter)) yield queuedRun(host, session, runners);
  }
}

function isAskedFor({ agent, placement }: Session, filter: Filter): boolean {
  return (
    (filter.agent === undefined || agent.name === filter.agent) &&
    (filter.owner === undefined || placement?.owner === filter.owner)
  );
}

/** The run of a session, if it has one. */
async function runOf(host: ServiceHost, session: Session, runners: Runners): Promise<RunMessage | undefined> {
  const { storage, clock } = host;
  const { sessionId } = session;
  const now = clock.now();
  const claim = await heldClaim(host, sessionId);
  if (claim !== undefined) {
    await host.registry.all(); // Which names its holder.
    return claimedRun(host, session, claim);
  }
  const signals = await storage.reader.pendingSignals(sessionId);
  const isAnswered = signals.some(({ name }) => isAnsweredBy(session.waits, name));
  return dueAt(session, NO_CLAIM, isAnswered) <= now ? queuedRun(host, session, runners) : undefined;
}

function claimedRun({ dispatcher, registry }: ServiceHost, session: Session, claim: HeldClaim): RunMessage {
  const { owner, token, until } = claim;
  const since = dispatcher.givenAt(session.sessionId, token);
  const name = registry.nameOf(owner);
  const step = dispatcher.blockedBy(owner);
  return {
    ...runFields(session, String(token)),
    status: "claimed",
    holder: owner,
    token: BigInt(token),
    leaseUntil: BigInt(Math.round(until)),
    ...(since === undefined ? {} : { since: BigInt(Math.round(since)) }),
    ...defined({ runnerName: name }),
    ...(step === undefined ? {} : { blocked: `${step} blocks the event loop of its runner` }),
  };
}

async function queuedRun(host: ServiceHost, session: Session, runners: Runners): Promise<RunMessage> {
  const { agent, flags, placement, sessionId } = session;
  const needs = { agent: agent.name, version: agent.version, flags, ...placement };
  const known = await runners.all();
  // The sweep that counts the minutes may not have seen the session yet.
  const begins = unmetBy(known, needs) === undefined ? undefined : host.clock.now() + NO_MATCH_MS;
  const until = host.unmatched.endsAt(sessionId) ?? begins;
  return {
    ...runFields(session, NEXT),
    status: "queued",
    since: BigInt(Math.round(dueSince(session, host.clock.now()))),
    blocked: whyNotTaken(known, needs, host.dispatcher.lossesOf(sessionId)),
    ...(until === undefined ? {} : { blockedUntil: BigInt(Math.round(until)) }),
  };
}

function runFields({ sessionId, agent, placement = {} }: Session, token: string): RunMessage {
  return {
    runId: `run_${sessionId}.${token}`,
    sessionId,
    agent: agent.name,
    agentVersion: agent.version,
    ...defined({ owner: placement.owner }),
    demands: { ...placement.demands },
    priority: placement.priority ?? 0,
  };
}

/** The registered runners and their free slots, read once for each list. */
class Runners {
  readonly #host: ServiceHost;
  #known: Promise<readonly KnownRunner[]> | undefined;

  constructor(host: ServiceHost) {
    this.#host = host;
  }

  all(): Promise<readonly KnownRunner[]> {
    return (this.#known ??= this.#read());
  }

  async #read(): Promise<readonly KnownRunner[]> {
    const host = this.#host;
    return Promise.all(
      (await host.registry.all()).map(async (runner) => {
        const { status, quietMs } = healthOf(host, runner);
        const keptFor = host.dispatcher.keptFor(runner.runnerId);
        return {
          ...fitnessOf(runner),
          isForTrials: runner.trialsOf !== undefined,
          ...defined({ keptFor }),
          isFull: (await heldBy(host, runner)) >= runner.maxRuns,
          isDraining: runner.draining === true || runner.superseded === true,
          isSilent: status === "silent",
          quietMs,
        };
      }),
    );
  }
}

function runNotFound(runId: string, now?: RunMessage): NotFoundError {
  return new NotFoundError("not_found", `there is no run ${runId}`, {
    fix:
      now === undefined
        ? "list the session's ended runs (status=ended) to see which there were"
        : `its session's run is ${now.runId}`,
  });
}
