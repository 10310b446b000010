// Runners over the API: who they are, what they are given, what an admin sees of them.
//
//   R1. A runner speaks for itself only: another id than its token's is not found.
//   R2. A registration token is used up before the runner exists, so that two who have it are not two runners.
//   R3. Registering again with a runner's own token is the same runner with what it says now.

import type { ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConflictError, HoldfastError, mintId, NotFoundError } from "@holdfast/core";
import type { RegisterRequest, RunnerSchema, RunnerService } from "@holdfast/proto";
import type { Caller } from "../api/caller.ts";
import { QUIET_MS, type OfferedAgent, type StoredRunner } from "../dispatch/registry.ts";
import { bytesOf } from "../json-field.ts";
import { auditOf, callOf, type Call } from "./call.ts";
import { tokenId } from "../tokens.ts";
import type { ServiceHost } from "./service-host.ts";
import { isClaimOf } from "./session-scope.ts";

/** Of what runners and coordinator say to each other; a runner of another major one is told so. */
const PROTOCOL = 1;
const POLL_TIMEOUT_MS = 30_000;
const PAGE = 100;

type RunnerMessage = MessageInitShape<typeof RunnerSchema>;

export function runnerService(host: ServiceHost): ServiceImpl<typeof RunnerService> {
  const { registry, dispatcher, tokens, clock, random } = host;

  const own = async (caller: Caller, runnerId: string): Promise<StoredRunner> => {
    const mine = caller.kind === "admin" || (caller.kind === "runner" && caller.name === runnerId); // R1.
    const runner = mine ? await registry.find(runnerId) : undefined;
    if (runner === undefined) throw runnerNotFound(runnerId);
    return runner;
  };

  const told = (runner: StoredRunner): RunnerMessage => {
    const { owner, registeredAt, seenAt, agents, labels, taskKinds, draining } = runner;
    const isSilent = clock.now() - seenAt >= QUIET_MS;
    return {
      runnerId: runner.runnerId,
      hostname: runner.hostname,
      project: runner.project,
      labels: { ...labels },
      agents: agents.map((agent) => ({ ...agent })),
      taskKinds: [...taskKinds],
      maxRuns: runner.maxRuns,
      status: isSilent ? "silent" : draining === true ? "draining" : "online",
      ...(owner === undefined ? {} : { owner }),
      held: dispatcher.heldBy(runner.runnerId),
      registeredAt: BigInt(registeredAt),
      seenAt: BigInt(seenAt),
    };
  };

  /** R2. */
  const admit = async (request: RegisterRequest, call: Call): Promise<Admitted> => {
    const { caller } = call;
    const runnerId = mintId("rnr", clock.now(), () => random.u32());
    const refusal = await tokens.use(caller.tokenId, auditOf(call, "runner.admit", `runner:${runnerId}`));
    if (refusal !== undefined)
      throw new HoldfastError("unauthenticated", "the registration token was used already", {
        fix: "have an admin make another one",
      });
    const { owner } = caller;
    const { text, token } = await tokens.create(
      { kind: "runner", name: request.hostname, runnerId, ...(owner === undefined ? {} : { owner }) },
      auditOf(call, "token.create", ""),
    );
    return { runnerId, token: text, tokenId: tokenId(token), ...(owner === undefined ? {} : { owner }) };
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
      const isKnown = call.caller.kind === "runner";
      const { owner } = call.caller;
      const admitted: Admitted = isKnown
        ? {
            runnerId: call.caller.name,
            tokenId: call.caller.tokenId,
            ...(owner === undefined ? {} : { owner }),
          }
        : await admit(request, call);
      const { runnerId } = admitted;
      const now = clock.now();
      await registry.change(runnerId, auditOf(call, "runner.register", `runner:${runnerId}`), (before) => ({
        runnerId,
        tokenId: admitted.tokenId,
        ...(admitted.owner === undefined ? {} : { owner: admitted.owner }),
        hostname: request.hostname,
        project: request.project,
        labels: { ...request.labels },
        agents: request.agents.map(offeredOf),
        taskKinds: [...request.taskKinds],
        maxRuns: request.maxRuns,
        registeredAt: before?.registeredAt ?? now,
        seenAt: now,
      }));
      return {
        runnerId,
        ...(admitted.token === undefined ? {} : { token: admitted.token }),
        leaseMs: BigInt(host.leaseMs),
        renewMs: BigInt(host.renewMs),
        pollTimeoutMs: BigInt(POLL_TIMEOUT_MS),
        protocol: PROTOCOL,
        ...(admitted.owner === undefined ? {} : { owner: admitted.owner }),
        now: BigInt(clock.now()),
      };
    },

    async poll(request, context) {
      const { caller, signal } = callOf(context);
      const offers = { agents: request.agents.map(offeredOf), taskKinds: [...request.taskKinds] };
      const runner = registry.seen(await own(caller, request.runnerId), offers);
      const { ackPollId, ackCommandIds, pollId, runnerId, free, waitMs = POLL_TIMEOUT_MS } = request;
      const answer = await dispatcher.poll(
        {
          runnerId,
          pollId,
          free,
          waitMs,
          ackCommandIds,
          ...offers,
          ...(ackPollId === undefined ? {} : { ackPollId }),
        },
        runner,
        signal,
      );
      const [now, monotonic] = [clock.now(), clock.monotonic()];
      return {
        pollId: answer.pollId,
        now: BigInt(now),
        claims: answer.claims.map(({ sessionId, token, askedAt, snapshot }) => ({
          sessionId,
          token: BigInt(token),
          leaseMs: BigInt(host.leaseMs),
          snapshot: bytesOf(snapshot),
          claimedAt: BigInt(Math.floor(now - (monotonic - askedAt))),
        })),
        arrivals: [...answer.arrivals],
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
          fix: "ask with the token of a claim that it holds",
        });
      const { text } = await tokens.create(
        { kind: "job", name: sessionId, runnerId, sessionId, claimToken },
        auditOf(call, "token.create", ""),
      );
      return { secret: text };
    },

    async deregister({ runnerId }, context) {
      const call = callOf(context);
      await own(call.caller, runnerId);
      await registry.change(
        runnerId,
        auditOf(call, "runner.deregister", `runner:${runnerId}`),
        () => undefined,
      );
      dispatcher.forget(runnerId);
      return {};
    },

    async list({ limit = PAGE, cursor }) {
      const after = (await registry.all())
        .toSorted((a, b) => (a.runnerId < b.runnerId ? -1 : 1))
        .filter(({ runnerId }) => cursor === undefined || runnerId > cursor);
      const page = after.slice(0, limit);
      const next = after.length > limit ? page.at(-1)?.runnerId : undefined;
      return { runners: page.map(told), ...(next === undefined ? {} : { nextCursor: next }) };
    },

    async get({ runnerId }, context) {
      return told(await own(callOf(context).caller, runnerId));
    },

    async drain({ runnerId }, context) {
      const call = callOf(context);
      await own(call.caller, runnerId);
      const drained = await registry.change(
        runnerId,
        auditOf(call, "runner.drain", `runner:${runnerId}`),
        (runner) => (runner === undefined ? undefined : { ...runner, draining: true }),
      );
      if (drained === undefined) throw runnerNotFound(runnerId);
      dispatcher.command(runnerId, "drain");
      return told(drained);
    },

    async delete({ runnerId }, context) {
      const call = callOf(context);
      const { tokenId: ofRunner } = await own(call.caller, runnerId);
      await registry.change(runnerId, auditOf(call, "runner.delete", `runner:${runnerId}`), () => undefined);
      dispatcher.forget(runnerId);
      await tokens.revoke(ofRunner, auditOf(call, "token.revoke", ""));
      return {};
    },
  };
}

/** Who registers. */
interface Admitted {
  readonly runnerId: string;
  /** Its token's, and the token itself when it is new. */
  readonly tokenId: string;
  readonly token?: string;
  readonly owner?: string;
}

function offeredOf({ name, version }: { name: string; version?: string | undefined }): OfferedAgent {
  return version === undefined ? { name } : { name, version };
}

function runnerNotFound(runnerId: string): NotFoundError {
  return new NotFoundError("runner_not_found", `there is no runner ${runnerId}`, {
    fix: "register it: what was silent for ten minutes is removed",
  });
}
