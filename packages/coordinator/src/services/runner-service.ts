// `RunnerService` serves runners over the API: registering, polling, leaving, and the view of admins.
//
// A runner speaks only for itself. An id that its token does not name is not found.
//
//   R4. Only one process at a time is a runner. A second process with its token is refused while the first is
//       heard of, or holds sessions. A killed process therefore delays its successor by a lease at most. A
//       process that is no longer the runner learns that from its poll.
//   - A runner that leaves holds nothing any more. Claims that it was given and did not receive, from any
//     coordinator, are released before the runner is forgotten. No coordinator would release them later, and
//     the lease of an unknown holder is unknown. A late request to leave has no effect once another process
//     is the runner.
//   runner-service-7. An admin who has seen a runner's process end says so when deleting the runner. Its
//       claims are then lost at once, as if their leases had passed, and other runners continue the sessions.
//       A runner says the same of a runner for trials that it started. The runners for trials of a process
//       end with it, which is no loss of the sessions that they try.
//   - A process is forgotten only when nothing is given to it any more. A late poll of it may still arrive, and
//     nobody would know then whether that poll was answered (H3). A runner that leaves, or whose process was
//     seen to end, is therefore stored as draining first.
//   - A runner for trials drains with the runner that started it.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ConflictError,
  defined,
  NotFoundError,
  type Clock,
  type HeldClaim,
  type ReleaseClaim,
} from "@holdfast/core";
import type {
  AnswerCommandRequest,
  CreateJobTokenRequest,
  DeleteRunnerRequest,
  DeregisterRequest,
  DrainRequest,
  GetRunnerRequest,
  ListAgentsRequest,
  ListRunnersRequest,
  PollRequest,
  RegisterRequest,
  RunnerSchema,
  RunnerService as Contract,
  ShowDraftsRequest,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import { nameOf, type Registry, type StoredRunner } from "../store/registry.ts";
import { startableAgents } from "../store/startable-agents.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { offeredOf } from "../input/announced-agents.ts";
import { auditOf, callOf, type Call } from "../call/call.ts";
import { hashOf, type Tokens } from "../call/tokens.ts";
import { heldBy, healthOf } from "./runner-health.ts";
import { admitted } from "./runners/admission.ts";
import { claimMessage, offersOf, pollOf, POLL_TIMEOUT_MS, withContent } from "./runners/poll-messages.ts";
import { PROTOCOL, refuseUnfit, registeredRunner } from "./runners/registration.ts";
import { unknownCursor, type ServiceHost } from "./service-host.ts";
import { isClaimOf } from "./session-scope.ts";

const PAGE = 100;
const HELD_PAGE = 1_000;

type RunnerMessage = MessageInitShape<typeof RunnerSchema>;

export class RunnerService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;
  readonly #registry: Registry;
  readonly #dispatcher: Dispatcher;
  readonly #tokens: Tokens;
  readonly #clock: Clock;

  constructor(host: ServiceHost) {
    this.#host = host;
    this.#registry = host.registry;
    this.#dispatcher = host.dispatcher;
    this.#tokens = host.tokens;
    this.#clock = host.clock;
  }

  async register(request: RegisterRequest, context: HandlerContext) {
    const call = callOf(context);
    refuseUnfit(request);
    const admission = await admitted(this.#host, request, call);
    const { runnerId, token, owner } = admission;
    const process = request.process === undefined ? undefined : hashOf(request.process);
    await this.#refuseSecond(runnerId, process);
    const { leaseMs, renewMs } = this.#host;
    const registration = { request, admitted: admission, process, leaseMs, now: this.#clock.now() };
    const audit = auditOf(call, "runner.register", `runner:${runnerId}`);
    let isSuccessor = false;
    await this.#registry.change(runnerId, audit, (before) => {
      isSuccessor = before !== undefined && isOther(before, process);
      return registeredRunner(registration, before);
    });
    // The new process has not received answers to the old one, whose polls are refused from now on.
    if (isSuccessor) this.#dispatcher.forget(runnerId);
    return {
      runnerId,
      ...defined({ token }),
      leaseMs: BigInt(leaseMs),
      renewMs: BigInt(renewMs),
      pollTimeoutMs: BigInt(POLL_TIMEOUT_MS),
      protocol: PROTOCOL,
      ...defined({ owner }),
      now: BigInt(this.#clock.now()),
    };
  }

  async poll(request: PollRequest, context: HandlerContext) {
    const { caller, signal } = callOf(context);
    const { runnerId } = request;
    const process = request.process === undefined ? undefined : hashOf(request.process);
    const offers = offersOf(request);
    const known = await this.#polling(caller, runnerId, process);
    const isBack = this.#dispatcher.quietFor(runnerId) >= this.#host.leaseMs;
    const runner = this.#registry.seen(known, offers, isBack);
    const poll = pollOf(request, offers, process);
    const { pollId, claims, arrivals, commands } = await this.#dispatcher.poll(poll, runner, signal);
    const at = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
    return {
      pollId,
      now: BigInt(at.now),
      left:
        poll.kept === undefined ? [] : [...(await this.#dispatcher.earlierCode.leftOf(runnerId, poll.kept))],
      claims: claims.map((claim) => claimMessage(claim, at)),
      arrivals: request.withArrivals
        ? await Promise.all(arrivals.map((notice) => withContent(this.#host, runnerId, notice)))
        : [...arrivals],
      commands: commands.map((command) => ({ ...command })),
    };
  }

  async createJobToken(
    { runnerId, sessionId, token: claim }: CreateJobTokenRequest,
    context: HandlerContext,
  ) {
    const call = callOf(context);
    await this.#own(call.caller, runnerId);
    const claimToken = Number(claim);
    if (!(await isClaimOf(this.#host, { sessionId, runnerId, claimToken })))
      throw new ConflictError("fenced", `the runner does not hold session ${sessionId} by this claim`, {
        at: "token",
        fix: "use the token of a claim that the runner holds",
      });
    const { text } = await this.#tokens.create(
      { kind: "job", name: sessionId, runnerId, sessionId, claimToken },
      auditOf(call, "token.create", ""),
    );
    return { secret: text };
  }

  async showDrafts({ runnerId, drafts }: ShowDraftsRequest, context: HandlerContext) {
    await this.#own(callOf(context).caller, runnerId);
    const watched = new Set<string>();
    for (const { sessionId, draft } of drafts) {
      if (!this.#host.drafts.isWatched(sessionId)) continue;
      // X13: the answer for a session of another runner is that nobody watches it.
      if (!(await this.#dispatcher.holds(runnerId, sessionId))) continue;
      watched.add(sessionId);
      if (draft !== undefined) this.#host.drafts.show(sessionId, draft);
    }
    return { watched: [...watched] };
  }

  async answerCommand({ runnerId, ...answer }: AnswerCommandRequest, context: HandlerContext) {
    await this.#own(callOf(context).caller, runnerId);
    this.#host.answers.take(runnerId, answer);
    return {};
  }

  async deregister({ runnerId, process: given, processEnded }: DeregisterRequest, context: HandlerContext) {
    const call = callOf(context);
    if (processEnded) return this.#loseTrials(runnerId, call);
    await this.#own(call.caller, runnerId);
    const process = given === undefined ? undefined : hashOf(given);
    if (!(await this.#end(runnerId, process))) return {};
    const held = await claimsOf(this.#host, runnerId);
    // Read after the claims: a process that registered in between holds none of them.
    const known = await this.#registry.findFresh(runnerId);
    if (known === undefined || isOther(known, process)) return {};
    await releaseAll(this.#host, held);
    await this.#registry.change(
      runnerId,
      auditOf(call, "runner.deregister", `runner:${runnerId}`),
      (runner) => (runner !== undefined && isOther(runner, process) ? runner : undefined),
    );
    if (known.trialsOf !== undefined)
      await this.#tokens.revoke(known.tokenId, auditOf(call, "token.revoke", "")); // Nobody keeps it.
    return {};
  }

  async list({ limit = PAGE, cursor }: ListRunnersRequest) {
    if (cursor !== undefined && !cursor.startsWith("rnr_")) throw unknownCursor();
    const after = (await this.#registry.all())
      .toSorted((a, b) => (a.runnerId < b.runnerId ? -1 : 1))
      .filter(({ runnerId }) => cursor === undefined || runnerId > cursor);
    const page = after.slice(0, limit);
    const next = after.length > limit ? page.at(-1)?.runnerId : undefined;
    return {
      runners: await Promise.all(page.map((runner) => this.#messageFor(runner))),
      ...defined({ nextCursor: next }),
    };
  }

  async listAgents(_request: ListAgentsRequest, context: HandlerContext) {
    const inactive = (await this.#host.catalogue.items()).filter(
      ({ kind, isActive }) => kind === "agent" && !isActive,
    );
    const names = new Set(inactive.map(({ name }) => name));
    const agents = startableAgents(await this.#registry.all(), callOf(context).caller.owner);
    return { agents: agents.filter(({ name = "" }) => !names.has(name)) };
  }

  async get({ runnerId }: GetRunnerRequest, context: HandlerContext): Promise<RunnerMessage> {
    return this.#messageFor(await this.#found(callOf(context).caller, runnerId));
  }

  async drain({ runnerId: text }: DrainRequest, context: HandlerContext): Promise<RunnerMessage> {
    const call = callOf(context);
    const { runnerId } = await this.#found(call.caller, text);
    const drained = await this.#markDraining(runnerId, call);
    if (drained === undefined) throw runnerNotFound(runnerId);
    this.#dispatcher.drain(runnerId);
    for (const { runnerId: forTrials } of await this.#trialsOf(runnerId)) {
      await this.#markDraining(forTrials, call);
      this.#dispatcher.drain(forTrials);
    }
    return this.#messageFor(drained);
  }

  async delete({ runnerId: text, processEnded }: DeleteRunnerRequest, context: HandlerContext) {
    const call = callOf(context);
    const known = await this.#registry.named(text);
    // runner-service-7. Before the runner is forgotten: a call that was cut short can then be repeated.
    if (processEnded) {
      await this.#takeAll(known?.runnerId ?? text, { isLost: true });
      for (const forTrials of await this.#trialsOf(known?.runnerId ?? text)) {
        // mutant: trial-lost-with-its-runner
        await this.#takeAll(forTrials.runnerId, {});
        await this.#remove(forTrials, call);
      }
    }
    if (known !== undefined) await this.#remove(known, call);
    // A runner that left, or was silent for too long, is not registered, but its token could bring it back.
    else if (!(await this.#tokens.revokeOf(text, auditOf(call, "token.revoke", ""))))
      throw noSuchRunner(text);
    return {};
  }

  async #own(caller: Caller, runnerId: string): Promise<StoredRunner> {
    const isOwn = caller.kind === "runner" && caller.name === runnerId; // A runner speaks only for itself.
    const runner = isOwn ? await this.#registry.find(runnerId) : undefined;
    if (runner === undefined) throw runnerNotFound(runnerId);
    return runner;
  }

  /** The runner of an id; admins may also use its name. */
  async #found(caller: Caller, text: string): Promise<StoredRunner> {
    if (caller.kind !== "admin") return this.#own(caller, text);
    const runner = await this.#registry.named(text);
    if (runner === undefined) throw noSuchRunner(text);
    return runner;
  }

  /** The runner whose process polls. @throws ConflictError when another process is the runner. */
  async #polling(caller: Caller, runnerId: string, process: string | undefined): Promise<StoredRunner> {
    const known = await this.#own(caller, runnerId);
    if (!isOther(known, process)) return known;
    // The cached runner may be older than its registration at another coordinator.
    const now = await this.#registry.findFresh(runnerId);
    if (now !== undefined && isOther(now, process)) throw isAnother(now, this.#host.leaseMs);
    return now ?? known;
  }

  /** R4. */
  async #refuseSecond(runnerId: string, process: string | undefined): Promise<void> {
    const known = await this.#registry.findFresh(runnerId);
    if (known === undefined || !isOther(known, process)) return;
    const { storage, leaseMs } = this.#host;
    const held = await storage.heldClaims({ now: this.#clock.now(), owner: runnerId, limit: 1 });
    if (this.#dispatcher.quietFor(runnerId) < leaseMs || held.length > 0) throw isAnother(known, leaseMs);
  }

  async #messageFor(runner: StoredRunner): Promise<RunnerMessage> {
    const { owner, registeredAt, agents, labels, taskKinds, refusedAgents = [] } = runner;
    const { status, quietMs } = healthOf(this.#host, runner);
    return {
      runnerId: runner.runnerId,
      name: nameOf(runner),
      hostname: runner.hostname,
      project: runner.project,
      labels: { ...labels },
      agents: agents.map(offeredOf),
      taskKinds: [...taskKinds],
      maxRuns: runner.maxRuns,
      ...defined({ version: runner.version, trialsOf: runner.trialsOf }),
      status,
      ...defined({ owner }),
      held: await heldBy(this.#host, runner),
      registeredAt: BigInt(registeredAt),
      seenAt: BigInt(Math.round(this.#clock.now() - quietMs)),
      refusedAgents: [...refusedAgents],
    };
  }

  async #markDraining(runnerId: string, call: Call): Promise<StoredRunner | undefined> {
    const audit = auditOf(call, "runner.drain", `runner:${runnerId}`);
    return this.#registry.change(runnerId, audit, (runner) => runner && { ...runner, draining: true });
  }

  async #trialsOf(runnerId: string): Promise<readonly StoredRunner[]> {
    return (await this.#registry.all()).filter((runner) => runner.trialsOf === runnerId);
  }

  async #remove({ runnerId, tokenId }: StoredRunner, call: Call): Promise<void> {
    const audit = auditOf(call, "runner.delete", `runner:${runnerId}`);
    await this.#registry.change(runnerId, audit, () => undefined);
    this.#dispatcher.forget(runnerId);
    await this.#tokens.revoke(tokenId, auditOf(call, "token.revoke", ""));
  }

  /** runner-service-7. A repeated report changes nothing. */
  async #loseTrials(runnerId: string, call: Call): Promise<object> {
    const known = await this.#registry.findFresh(runnerId);
    if (known === undefined) return {};
    // mutant: trials-of-others-ended
    if (call.caller.kind !== "runner" || known.trialsOf !== call.caller.name) throw runnerNotFound(runnerId);
    await this.#takeAll(runnerId, { isLost: true });
    await this.#remove(known, call);
    return {};
  }

  /** Takes everything from a runner whose process has ended. */
  async #takeAll(runnerId: string, as: Pick<ReleaseClaim, "isLost">): Promise<void> {
    await this.#end(runnerId);
    await releaseAll(this.#host, await claimsOf(this.#host, runnerId), as);
  }

  /** Gives the runner nothing more, and forgets it. @returns `false` when another process is the runner. */
  async #end(runnerId: string, process?: string): Promise<boolean> {
    const stored = await this.#registry.change(runnerId, undefined, (runner) =>
      // mutant: forgotten-runner-given-more
      runner === undefined || isOther(runner, process) ? runner : { ...runner, draining: true },
    );
    if (stored !== undefined && isOther(stored, process)) return false;
    this.#dispatcher.forget(runnerId);
    return true;
  }
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

async function releaseAll(
  { commit, dispatcher }: ServiceHost,
  claims: readonly HeldClaim[],
  as: Pick<ReleaseClaim, "isLost"> = {},
): Promise<void> {
  if (claims.length > 0)
    await commit(claims.map(({ sessionId, token }) => ({ type: "release_claim", sessionId, token, ...as })));
  for (const { sessionId } of claims) dispatcher.released(sessionId, false);
}

function isOther({ process: now }: StoredRunner, process: string | undefined): boolean {
  return now !== undefined && process !== undefined && now !== process;
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
