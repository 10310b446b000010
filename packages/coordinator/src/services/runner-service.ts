// `runnerService` serves runners over the API: registering, polling, leaving, and the view of admins.
//
//   runner-service-1. A runner speaks only for itself. An id that its token does not name is not found.
//   R4. Only one process at a time is a runner. A second process with its token is refused while the first is
//       heard of, or holds sessions. A killed process therefore delays its successor by a lease at most. A
//       process that is no longer the runner learns that from its poll.
//   runner-service-6. A runner that leaves holds nothing any more. Claims that it was given and did not
//       receive, from any coordinator, are released before the runner is forgotten. No coordinator would
//       release them later, and the lease of an unknown holder is unknown. A late request to leave has no
//       effect once another process is the runner.
//   runner-service-7. An admin who has seen a runner's process end says so when deleting the runner. Its claims
//       are then lost at once, as if their leases had passed, and other runners continue the sessions. A runner says the
//       same of a runner for trials that it started. The runners for trials of a process end with it, which is no loss of
//       the sessions that they try.
//   runner-service-8. A runner for trials drains with the runner that started it.

import type { ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ConflictError,
  HoldfastError,
  NotFoundError,
  UsageError,
  type HeldClaim,
  type ReleaseClaim,
} from "@holdfast/core";
import type { ArrivalNoticeSchema, RunnerSchema, RunnerService } from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import { nameOf, type StoredRunner } from "../store/registry.ts";
import { startableAgents } from "../store/startable-agents.ts";
import type { PollAnswer } from "../dispatch/poller.ts";
import { bytesOf } from "../call/json-field.ts";
import { announcedAgents, offeredOf } from "../input/announced-agents.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import { hashOf } from "../call/tokens.ts";
import { heldBy, healthOf } from "./runner-health.ts";
import { admitted } from "./runners/admission.ts";
import { unknownCursor, type ServiceHost } from "./service-host.ts";
import { isClaimOf } from "./session-scope.ts";

/**
 * The version of the protocol between runners and the coordinator. A runner with another version is refused.
 */
const PROTOCOL = 1;
const POLL_TIMEOUT_MS = 30_000;
const PAGE = 100;
const HELD_PAGE = 1_000;
const PROCESS_CHARS = 32;

type RunnerMessage = MessageInitShape<typeof RunnerSchema>;

export function runnerService(host: ServiceHost): ServiceImpl<typeof RunnerService> {
  const { registry, dispatcher, tokens, clock } = host;

  const own = async (caller: Caller, runnerId: string): Promise<StoredRunner> => {
    const isOwn = caller.kind === "runner" && caller.name === runnerId; // runner-service-1.
    const runner = isOwn ? await registry.find(runnerId) : undefined;
    if (runner === undefined) throw runnerNotFound(runnerId);
    return runner;
  };

  /** The runner of an id; admins may also use its name. */
  const found = async (caller: Caller, text: string): Promise<StoredRunner> => {
    if (caller.kind !== "admin") return own(caller, text);
    const runner = await registry.named(text);
    if (runner === undefined) throw noSuchRunner(text);
    return runner;
  };

  const messageFor = async (runner: StoredRunner): Promise<RunnerMessage> => {
    const { owner, registeredAt, agents, labels, taskKinds, refusedAgents = [] } = runner;
    const { status, quietMs } = healthOf(host, runner);
    return {
      runnerId: runner.runnerId,
      name: nameOf(runner),
      hostname: runner.hostname,
      project: runner.project,
      labels: { ...labels },
      agents: agents.map(offeredOf),
      taskKinds: [...taskKinds],
      maxRuns: runner.maxRuns,
      ...(runner.version === undefined ? {} : { version: runner.version }),
      ...(runner.trialsOf === undefined ? {} : { trialsOf: runner.trialsOf }),
      status,
      ...(owner === undefined ? {} : { owner }),
      held: await heldBy(host, runner),
      registeredAt: BigInt(registeredAt),
      seenAt: BigInt(Math.round(clock.now() - quietMs)),
      refusedAgents: [...refusedAgents],
    };
  };

  /** R4. */
  const refuseSecond = async (runnerId: string, process: string | undefined): Promise<void> => {
    const known = await registry.findFresh(runnerId);
    if (known === undefined || !isOther(known, process)) return;
    const held = await host.storage.heldClaims({ now: clock.now(), owner: runnerId, limit: 1 });
    if (dispatcher.quietFor(runnerId) < host.leaseMs || held.length > 0) throw isAnother(known, host.leaseMs);
    dispatcher.forget(runnerId); // The new process has not received answers to the old one.
  };

  const trialsOf = async (runnerId: string): Promise<readonly StoredRunner[]> =>
    (await registry.all()).filter((runner) => runner.trialsOf === runnerId);

  /** Forgets a runner for trials, whose process has ended. */
  const remove = async ({ runnerId, tokenId }: StoredRunner, call: Call): Promise<void> => {
    dispatcher.forget(runnerId);
    await registry.change(runnerId, auditOf(call, "runner.delete", `runner:${runnerId}`), () => undefined);
    await tokens.revoke(tokenId, auditOf(call, "token.revoke", ""));
  };

  /** runner-service-7. A repeated report changes nothing. */
  const loseTrials = async (runnerId: string, call: Call): Promise<object> => {
    const known = await registry.findFresh(runnerId);
    if (known === undefined) return {};
    // mutant: trials-of-others-ended
    if (call.caller.kind !== "runner" || known.trialsOf !== call.caller.name) throw runnerNotFound(runnerId);
    await loseAll(host, runnerId);
    await remove(known, call);
    return {};
  };

  return {
    async register(request, context) {
      const call = callOf(context);
      if (request.protocol !== PROTOCOL)
        throw new HoldfastError("unsupported_protocol", `the runner speaks protocol ${request.protocol}`, {
          at: "protocol",
          expected: `protocol ${PROTOCOL}`,
          fix: "use a runner of the coordinator's version",
        });
      if ((request.process?.length ?? PROCESS_CHARS) < PROCESS_CHARS)
        throw new UsageError("`process` is too short: it must be impossible to guess", {
          at: "process",
          expected: `at least ${PROCESS_CHARS} random characters`,
        });
      const { runnerId, tokenId: ofRunner, token, owner, trialsOf: of } = await admitted(host, request, call);
      const process = request.process === undefined ? undefined : hashOf(request.process);
      await refuseSecond(runnerId, process);
      const now = clock.now();
      await registry.change(runnerId, auditOf(call, "runner.register", `runner:${runnerId}`), (before) => ({
        runnerId,
        tokenId: ofRunner,
        ...(owner === undefined ? {} : { owner }),
        ...(of === undefined ? {} : { trialsOf: of }),
        ...(request.name === undefined || request.name === "" ? {} : { name: request.name }),
        hostname: request.hostname,
        project: request.project,
        labels: { ...request.labels },
        agents: announcedAgents(request.agents),
        taskKinds: [...request.taskKinds],
        maxRuns: request.maxRuns,
        ...(request.behaviourFlags === undefined ? {} : { behaviourFlags: request.behaviourFlags }),
        ...(request.version === undefined ? {} : { version: request.version }),
        ...(request.refusedAgents.length === 0
          ? {}
          : { refusedAgents: request.refusedAgents.map(({ name, problem }) => ({ name, problem })) }),
        leaseMs: host.leaseMs,
        registeredAt: before?.registeredAt ?? now,
        seenAt: now,
        ...(process === undefined ? {} : { process, processSince: sinceOf(before, process) ?? now }),
      }));
      return {
        runnerId,
        ...(token === undefined ? {} : { token }),
        leaseMs: BigInt(host.leaseMs),
        renewMs: BigInt(host.renewMs),
        pollTimeoutMs: BigInt(POLL_TIMEOUT_MS),
        protocol: PROTOCOL,
        ...(owner === undefined ? {} : { owner }),
        now: BigInt(clock.now()),
      };
    },

    async poll(request, context) {
      const { caller, signal } = callOf(context);
      const kept = request.superseded?.kept.map(({ sessionId, nextSeq }) => ({
        sessionId,
        nextSeq: Number(nextSeq),
      }));
      const offers = {
        agents: request.agents.map(offeredOf),
        taskKinds: [...request.taskKinds],
        ...(kept === undefined ? {} : { superseded: true as const }),
      };
      let known = await own(caller, request.runnerId);
      const process = request.process === undefined ? undefined : hashOf(request.process);
      if (isOther(known, process)) {
        // The cached runner may be older than its registration at another coordinator.
        const now = await registry.findFresh(request.runnerId);
        if (now !== undefined && isOther(now, process)) throw isAnother(now, host.leaseMs);
        known = now ?? known;
      }
      const isBack = dispatcher.quietFor(request.runnerId) >= host.leaseMs;
      const runner = registry.seen(known, offers, isBack);
      const { ackPollId, ackCommandIds, pollId, runnerId, free, waitMs = POLL_TIMEOUT_MS } = request;
      const answer = await dispatcher.poll(
        {
          runnerId,
          pollId,
          free,
          waitMs,
          ackCommandIds,
          ...offers,
          startsTrials: request.startsTrials,
          ...(kept === undefined ? {} : { kept }),
          ...(ackPollId === undefined ? {} : { ackPollId }),
          ...(process === undefined ? {} : { process }),
          ...(request.number === undefined ? {} : { number: Number(request.number) }),
        },
        runner,
        signal,
      );
      const [now, monotonic] = [clock.now(), clock.monotonic()];
      return {
        pollId: answer.pollId,
        now: BigInt(now),
        left: kept === undefined ? [] : [...(await dispatcher.earlierCode.leftOf(runnerId, kept))],
        claims: answer.claims.map(({ sessionId, token, before, askedAt, leaseMs, snapshot, mayReturn }) => ({
          sessionId,
          mayReturn,
          token: BigInt(token),
          ...(before === undefined ? {} : { before: BigInt(before) }),
          leaseMs: BigInt(leaseMs),
          snapshot: bytesOf(snapshot),
          claimedAt: BigInt(Math.floor(now - (monotonic - askedAt))),
        })),
        arrivals: request.withArrivals
          ? await Promise.all(answer.arrivals.map((notice) => withContent(host, runnerId, notice)))
          : [...answer.arrivals],
        commands: answer.commands.map((command) => ({ ...command })),
      };
    },

    async createJobToken({ runnerId, sessionId, token: claim }, context) {
      const call = callOf(context);
      await own(call.caller, runnerId);
      const claimToken = Number(claim);
      if (!(await isClaimOf(host, { sessionId, runnerId, claimToken })))
        throw new ConflictError("fenced", `the runner does not hold session ${sessionId} by this claim`, {
          at: "token",
          fix: "use the token of a claim that the runner holds",
        });
      const { text } = await tokens.create(
        { kind: "job", name: sessionId, runnerId, sessionId, claimToken },
        auditOf(call, "token.create", ""),
      );
      return { secret: text };
    },

    async deregister({ runnerId, process: given, processEnded }, context) {
      const call = callOf(context);
      if (processEnded) return loseTrials(runnerId, call);
      await own(call.caller, runnerId);
      const process = given === undefined ? undefined : hashOf(given);
      const held = await claimsOf(host, runnerId);
      // Read after the claims: a process that registered in between holds none of them.
      const known = await registry.findFresh(runnerId);
      if (known === undefined || isOther(known, process)) return {};
      dispatcher.forget(runnerId);
      await releaseAll(host, held); // runner-service-6.
      await registry.change(runnerId, auditOf(call, "runner.deregister", `runner:${runnerId}`), (runner) =>
        runner !== undefined && isOther(runner, process) ? runner : undefined,
      );
      if (known.trialsOf !== undefined) await tokens.revoke(known.tokenId, auditOf(call, "token.revoke", "")); // Nobody keeps it.
      return {};
    },

    async list({ limit = PAGE, cursor }) {
      if (cursor !== undefined && !cursor.startsWith("rnr_")) throw unknownCursor();
      const after = (await registry.all())
        .toSorted((a, b) => (a.runnerId < b.runnerId ? -1 : 1))
        .filter(({ runnerId }) => cursor === undefined || runnerId > cursor);
      const page = after.slice(0, limit);
      const next = after.length > limit ? page.at(-1)?.runnerId : undefined;
      return {
        runners: await Promise.all(page.map(messageFor)),
        ...(next === undefined ? {} : { nextCursor: next }),
      };
    },

    async listAgents(_request, context) {
      const inactive = (await host.catalogue.items()).filter(
        ({ kind, isActive }) => kind === "agent" && !isActive,
      );
      const names = new Set(inactive.map(({ name }) => name));
      const agents = startableAgents(await registry.all(), callOf(context).caller.owner);
      return { agents: agents.filter(({ name = "" }) => !names.has(name)) };
    },

    async get({ runnerId }, context) {
      return messageFor(await found(callOf(context).caller, runnerId));
    },

    async drain({ runnerId: text }, context) {
      const call = callOf(context);
      const { runnerId } = await found(call.caller, text);
      const drained = await registry.change(
        runnerId,
        auditOf(call, "runner.drain", `runner:${runnerId}`),
        (runner) => (runner === undefined ? undefined : { ...runner, draining: true }),
      );
      if (drained === undefined) throw runnerNotFound(runnerId);
      dispatcher.drain(runnerId);
      for (const { runnerId: forTrials } of await trialsOf(runnerId)) {
        // runner-service-8.
        await registry.change(forTrials, auditOf(call, "runner.drain", `runner:${forTrials}`), (runner) =>
          runner === undefined ? undefined : { ...runner, draining: true },
        );
        dispatcher.drain(forTrials);
      }
      return messageFor(drained);
    },

    async delete({ runnerId: text, processEnded }, context) {
      const call = callOf(context);
      const known = await registry.named(text);
      // runner-service-7. Before the runner is forgotten: a call that was cut short can then be repeated.
      if (processEnded) {
        await loseAll(host, known?.runnerId ?? text);
        for (const forTrials of await trialsOf(known?.runnerId ?? text)) {
          // mutant: trial-lost-with-its-runner
          await releaseAll(host, await claimsOf(host, forTrials.runnerId));
          await remove(forTrials, call);
        }
      }
      if (known === undefined) {
        // A runner that left, or was silent for too long, is not registered, but its token could bring it
        // back.
        if (!(await tokens.revokeOf(text, auditOf(call, "token.revoke", "")))) throw noSuchRunner(text);
        return {};
      }
      const { runnerId, tokenId: ofRunner } = known;
      await registry.change(runnerId, auditOf(call, "runner.delete", `runner:${runnerId}`), () => undefined);
      dispatcher.forget(runnerId);
      await tokens.revoke(ofRunner, auditOf(call, "token.revoke", ""));
      return {};
    },
  };
}

async function claimsOf({ storage, clock }: ServiceHost, owner: string): Promise<readonly HeldClaim[]> {
  const held: HeldClaim[] = [];
  for (let after: string | undefined; ;) {
    const place = after === undefined ? {} : { after };
    const page = await storage.heldClaims({ now: clock.now(), owner, limit: HELD_PAGE, ...place });
    held.push(...page);
    after = page.at(-1)?.sessionId;
    if (page.length < HELD_PAGE) return held;
  }
}

/** runner-service-7. */
async function loseAll(host: ServiceHost, runnerId: string): Promise<void> {
  host.dispatcher.forget(runnerId); // Nothing is given to it from now on.
  await releaseAll(host, await claimsOf(host, runnerId), { isLost: true });
}

/** runner-service-6. */
async function releaseAll(
  { commit, dispatcher }: ServiceHost,
  claims: readonly HeldClaim[],
  as: Pick<ReleaseClaim, "isLost"> = {},
): Promise<void> {
  if (claims.length > 0)
    await commit(claims.map(({ sessionId, token }) => ({ type: "release_claim", sessionId, token, ...as })));
  for (const { sessionId } of claims) dispatcher.released(sessionId, false);
}

/** Arrivals larger than this are not sent with their notice, so that the answer to a poll stays small. */
const CONTENT_CHARS = 64 * 1024;

/** A notice with the arrivals, if it is known how far the runner has read. */
async function withContent(
  { storage, dispatcher: { holdings } }: ServiceHost,
  runnerId: string,
  notice: PollAnswer["arrivals"][number],
): Promise<MessageInitShape<typeof ArrivalNoticeSchema>> {
  const { sessionId } = notice;
  const after = holdings.readBy(runnerId, sessionId);
  if (after === undefined) return { ...notice };
  // Without the content, the runner asks for the arrivals and gets the error.
  const arrivals = await storage.arrivals(sessionId, after).catch(() => undefined);
  const text = arrivals && JSON.stringify(arrivals);
  if (arrivals === undefined || text === undefined || text.length > CONTENT_CHARS) return { ...notice };
  holdings.reads(runnerId, sessionId, arrivals.inbox);
  return { ...notice, arrivals: bytesOf(text), after: BigInt(after) };
}

function isOther({ process: now }: StoredRunner, process: string | undefined): boolean {
  return now !== undefined && process !== undefined && now !== process;
}

/** A process that registers again keeps the time of its first registration. */
function sinceOf(before: StoredRunner | undefined, process: string): number | undefined {
  return before?.process === process ? before.processSince : undefined;
}

function isAnother({ runnerId, hostname, processSince = 0 }: StoredRunner, leaseMs: number): ConflictError {
  const since = new Date(processSince).toISOString();
  return new ConflictError(
    "duplicate_runner",
    `another process runs as ${runnerId}: on ${hostname}, since ${since}`,
    {
      expected: `one process for each runner's token; a process that is gone counts for at most ${leaseMs / 1_000} s`,
      fix: "give each runner a registration token of its own, or end the other process",
    },
  );
}

/** The error for an admin, who may have given a name. */
function noSuchRunner(text: string): NotFoundError {
  return new NotFoundError("runner_not_found", `there is no runner ${text}`, {
    fix:
      "list the runners to see which there are; one that has left, or was silent for ten minutes, can still be deleted by its " +
      "id, which stands beside its token in the list of tokens",
  });
}

function runnerNotFound(runnerId: string): NotFoundError {
  return new NotFoundError("runner_not_found", `there is no runner ${runnerId}`, {
    fix: "register it again: a runner that is silent for ten minutes is removed",
  });
}
