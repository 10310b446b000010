// The real services, called as gRPC, Connect and REST: the same calls give the same answers.
//
// `api/conformance.test.ts` shows that the three ways carry any message and any error. This test shows that
// no service depends on the way. Each way makes the same calls in the same order to a coordinator of its own.
// Random names and times are left out of the comparison.

import { create, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { BEHAVIOUR_FLAGS } from "@holdfast/core";
import {
  AuditService,
  HealthService,
  CatalogueService,
  EnvironmentService,
  RunnerService,
  RunService,
  ScheduleService,
  SERVICES,
  SessionService,
  StorageService,
  TokenService,
} from "@holdfast/proto";
import { expect, test } from "vitest";
import { CLIENTS, type Answered, type Call } from "../api/testing/clients.ts";
import { writeMessage } from "../api/json-write.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

/** A call, and its answer as JSON. */
interface Reported {
  readonly method: string;
  readonly answer: unknown;
}

class Life {
  readonly reported: Reported[] = [];
  readonly #fleet: Fleet;
  readonly #call: Call;

  constructor(fleet: Fleet, call: Call) {
    this.#fleet = fleet;
    this.#call = call;
  }

  /** Calls a method and notes what it answers. */
  async ask<I extends DescMessage>(
    desc: DescMethod & { input: I },
    init: MessageInitShape<I>,
    token: string = this.#fleet.admin.token,
  ): Promise<Answered> {
    const answered = await this.#call({ url: this.#fleet.url, token }, desc, create(desc.input, init));
    const answer =
      "messages" in answered
        ? answered.messages.map((message) => writeMessage(desc.output, message))
        : { code: answered.code, pointers: answered.pointers };
    this.reported.push({ method: `${desc.parent.name}.${desc.name}`, answer });
    return answered;
  }
}

/** Every method at least once, and what each of them refuses for reasons of its own. */
async function live(fleet: Fleet, life: Life): Promise<void> {
  const { ask } = { ask: life.ask.bind(life) };
  const { method: session } = SessionService;
  const { method: runner } = RunnerService;
  const { method: storage } = StorageService;
  const ada = (await fleet.user("ada")).token;
  const bob = (await fleet.user("bob")).token;
  const unknown = { sessionId: "ses_unknown" };

  await ask(HealthService.method.get, {});
  await ask(HealthService.method.getVersion, {}, ada);
  const input = Buffer.from('{ "n": [1, 2.50] }');
  await ask(session.start, { agent: "greeter", sessionId: "one", input, idempotencyKey: "k" }, ada);
  await ask(session.start, { agent: "greeter", sessionId: "one", input, idempotencyKey: "k" }, ada);
  await ask(session.start, { agent: "greeter", sessionId: "one" }, ada);
  const budget = { maxTokens: 100n, windows: [{ per: "day", maxTokens: 10n }] };
  await ask(session.start, { agent: "greeter", sessionId: "two", budget }, ada);
  await ask(session.get, { sessionId: "one" }, ada);
  await ask(session.get, { sessionId: "one" }, bob);
  await ask(session.list, { limit: 10, status: "submitted" }, ada);
  await ask(session.list, { limit: 10 }, bob);
  await ask(session.count, { agent: "greeter" }, ada);
  await ask(session.count, { agent: "x".repeat(201) }, bob);
  await ask(session.listCosts, { limit: 10 }, ada);
  await ask(session.signal, { sessionId: "one", name: "go", payload: Buffer.from("1"), dedupKey: "d" }, ada);
  await ask(session.signal, { sessionId: "one", name: "go", payload: Buffer.from("1"), dedupKey: "d" }, ada);
  await ask(session.signal, { ...unknown, name: "go" }, ada);
  await ask(session.answer, { sessionId: "one", answer: Buffer.from("true") }, ada);
  await ask(session.pause, { sessionId: "two" }, ada);
  await ask(session.unpause, { sessionId: "two" }, ada);
  await ask(session.setTitle, { sessionId: "two", title: "The second" }, ada);
  await ask(session.setTitle, { sessionId: "none", title: "The second" }, ada);
  await ask(session.setBudget, { sessionId: "two", budget: { maxTokens: 200n } }, ada);
  await ask(session.setBudget, { sessionId: "one", budget: { maxTokens: 200n } }, ada);
  await ask(session.grantWindow, { sessionId: "two", per: "day" }, ada);
  await ask(session.grantWindow, { sessionId: "two", per: "hour" }, ada);
  await ask(session.releaseLost, { sessionId: "two" }, ada);
  await ask(session.releaseLost, { sessionId: "one" }, ada);
  await ask(session.getResult, { sessionId: "two", waitMs: 0 }, ada);
  await ask(session.fork, { sessionId: "two", newSessionId: "three" }, ada);
  await ask(session.listEntries, { sessionId: "one", limit: 1 }, ada);
  await ask(session.listEvents, { sessionId: "one", limit: 1 }, ada);
  await ask(session.delete, { sessionId: "one" }, ada);

  const { method: run } = RunService;
  await ask(run.list, { limit: 1 }, ada);
  await ask(run.list, { status: "queued", agent: "greeter", cursor: "queued:one" });
  await ask(run.list, { owner: "ada" }, bob);
  await ask(run.get, { runId: "run_one.next" }, ada);
  await ask(run.get, { runId: "run_one.next" }, bob);
  await ask(run.get, { runId: "run_one.7" }, ada);
  await ask(run.getResult, { runId: "run_one.7", waitMs: 0 }, ada);
  const registration = await fleet.coordinator.createToken({ kind: "registration", name: "r" });
  const agents = [{ name: "greeter" }];
  const offer = { hostname: "box", maxRuns: 2, agents, behaviourFlags: BEHAVIOUR_FLAGS };
  await ask(
    runner.register,
    { ...offer, protocol: 99 },
    await fleet.coordinator.createToken({ kind: "registration", name: "x" }),
  );
  const registered = await ask(runner.register, { ...offer, protocol: 1 }, registration);
  await ask(runner.register, { ...offer, protocol: 1 }, registration);
  const { runnerId, token } = messageOf<{ runnerId: string; token: string }>(registered);
  const poll = { runnerId, pollId: "p1", free: 1, waitMs: 10_000, agents: offer.agents };
  const polled = messageOf<{ claims: { sessionId: string; token: bigint }[] }>(
    await ask(runner.poll, poll, token),
  );
  await ask(runner.poll, { ...poll, pollId: "p2", ackPollId: "p1", free: 0, waitMs: 0 }, token);
  await ask(runner.poll, { ...poll, runnerId: "rnr_other" }, token);
  const claim = polled.claims[0]!;
  await ask(runner.createJobToken, { runnerId, sessionId: claim.sessionId, token: claim.token }, token);
  await ask(runner.createJobToken, { runnerId, sessionId: claim.sessionId, token: claim.token + 1n }, token);
  const draft = { task: 1n, text: "so far" };
  await ask(runner.showDrafts, { runnerId, drafts: [{ sessionId: claim.sessionId, draft }] }, token);
  await ask(runner.showDrafts, { runnerId: "rnr_other" }, token);
  await ask(runner.answerCommand, { runnerId, commandId: "cmd_none" }, token);
  await ask(runner.answerCommand, { runnerId: "rnr_other", commandId: "cmd_none" }, token);
  const batch = {
    type: "commit_batch",
    sessionId: claim.sessionId,
    token: Number(claim.token),
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    session: { status: "completed", waits: [], output: '{"done":true}' },
  };
  const commit = (change: object) => ({ changes: [Buffer.from(JSON.stringify(change))] });
  const held = { now: BigInt(Date.now()), limit: 10 };
  expect(messageOf<{ claims: unknown[] }>(await ask(storage.heldClaims, held)).claims).toHaveLength(1);
  await ask(storage.heldClaims, { ...held, sessionId: claim.sessionId, owner: runnerId, after: "a" });
  await ask(run.list, { runnerId, sessionId: claim.sessionId }, ada);
  await ask(storage.load, { sessionId: claim.sessionId }, token);
  await ask(storage.load, unknown, token);
  await ask(storage.arrivals, { sessionId: claim.sessionId, after: 0n }, token);
  await ask(storage.conversation, { ...unknown, leaf: 0n }, token);
  await ask(storage.claim, { sessionId: claim.sessionId, owner: "r", leaseMs: 1000n }, bob);
  await ask(storage.renew, { owner: "r", leaseMs: 1000n, sessionIds: [claim.sessionId] }, token);
  await ask(storage.due, { limit: 10, agents: { names: ["greeter"] } }, token);
  await ask(storage.commit, commit({ ...batch, token: Number(claim.token) - 1 }), token);
  await ask(storage.commit, commit(batch), token);
  await ask(storage.commit, commit({ type: "sned" }), token);
  await ask(storage.read, {
    query: "session",
    params: Buffer.from(JSON.stringify({ sessionId: claim.sessionId })),
  });
  await ask(storage.read, { query: "journal", params: Buffer.from("{}") });
  await ask(session.getResult, { sessionId: claim.sessionId }, ada);
  await ask(session.watch, { sessionId: claim.sessionId }, ada);
  await ask(session.watch, { sessionId: claim.sessionId, afterSeq: 5n }, ada);
  await ask(session.watch, unknown, ada);
  await ask(session.cancel, { sessionId: claim.sessionId }, ada);
  await ask(session.cancel, { sessionId: "three", mode: "hard" }, ada);
  await ask(session.export, { sessionId: "three" }, ada);
  await ask(session.import, { lines: [Buffer.from("{}")] }, ada);
  await ask(session.delete, { sessionId: "three" }, ada);
  await ask(runner.get, { runnerId });
  await ask(runner.list, {});
  await ask(runner.listAgents, {}, ada);
  const { method: catalogue } = CatalogueService;
  const named = { kind: "agent", name: "helper" };
  const files = [{ path: "helper.md", base64: "eA==" }];
  const pushed = messageOf<{ current: string }>(
    await ask(catalogue.push, { ...named, files, tag: "stable" }),
  );
  await ask(catalogue.push, { ...named, files }, ada);
  await ask(catalogue.push, { ...named, files: [{ path: "../x", base64: "eA==" }] });
  await ask(catalogue.change, { ...named, active: false });
  await ask(catalogue.change, { ...named, version: "feed" });
  await ask(catalogue.list, {}, ada);
  await ask(catalogue.get, named, ada);
  await ask(catalogue.get, { ...named, name: "none" }, ada);
  await ask(catalogue.getContent, { ...named, hash: pushed.current }, token);
  await ask(catalogue.getContent, { ...named, hash: pushed.current }, ada);
  const { method: environment } = EnvironmentService;
  const staging = { name: "staging" };
  await ask(environment.set, { ...staging, keys: [{ name: "TOKEN", value: "s", secret: true }] }, ada);
  await ask(environment.set, { ...staging, keys: [{ name: "TOKEN" }] }, ada);
  await ask(environment.list, {}, ada);
  await ask(environment.get, staging, ada);
  await ask(environment.get, staging, bob);
  await ask(environment.rotate, {});
  await ask(environment.rotate, {}, ada);
  await ask(environment.release, { sessionId: claim.sessionId, claimToken: claim.token }, token);
  await ask(environment.delete, staging, ada);
  await ask(environment.delete, staging, ada);
  await ask(runner.drain, { runnerId });
  await ask(runner.deregister, { runnerId }, token);
  await ask(runner.get, { runnerId });
  await ask(runner.delete, { runnerId: "rnr_unknown" });

  const schedule = { scheduleId: "nightly", cron: "0 3 * * *", start: { agent: "greeter" } };
  await ask(ScheduleService.method.put, schedule, ada);
  await ask(ScheduleService.method.put, { ...schedule, signal: { sessionId: "two", name: "go" } }, ada);
  await ask(ScheduleService.method.list, {}, ada);
  await ask(ScheduleService.method.list, {}, bob);
  await ask(ScheduleService.method.pause, { scheduleId: "nightly" }, bob);
  await ask(ScheduleService.method.pause, { scheduleId: "nightly" }, ada);
  await ask(ScheduleService.method.unpause, { scheduleId: "nightly" }, ada);
  await ask(ScheduleService.method.remove, { scheduleId: "nightly" }, bob);
  await ask(ScheduleService.method.remove, { scheduleId: "nightly" }, ada);
  const made = await ask(TokenService.method.create, { kind: "user", name: "eve" });
  const { tokenId } = messageOf<{ token: { tokenId: string } }>(made).token;
  await ask(TokenService.method.list, {});
  await ask(TokenService.method.revoke, { tokenId });
  await ask(TokenService.method.revoke, { tokenId });
  await ask(AuditService.method.list, { limit: 5 });
}

test("nothing a service does depends on the protocol it was asked by", async () => {
  const lives: Record<string, readonly Reported[]> = {};
  for (const [way, call] of Object.entries(CLIENTS)) {
    const fleet = await openFleet({ environmentKeys: ["a key of environments".repeat(2)] });
    const life = new Life(fleet, call);
    await live(fleet, life);
    await fleet.close();
    expect(fleet.log).toEqual([]);
    lives[way] = JSON.parse(withoutChance(JSON.stringify(life.reported))) as readonly Reported[];
  }
  expect(lives["Connect"]).toEqual(lives["gRPC"]);
  expect(lives["REST"]).toEqual(lives["gRPC"]);
  expect(lives["gRPC"]!.filter(({ answer }) => (answer as { code?: string }).code === "internal")).toEqual(
    [],
  );
});

test("and every method was asked", () => {
  const asked = [
    ...live
      .toString()
      .matchAll(/\b(session|run|runner|storage|catalogue|environment|\w+Service\.method)\.(\w+)/g),
  ];
  const FIELDS: Readonly<Record<string, string>> = {
    session: "SessionService",
    run: "RunService",
    runner: "RunnerService",
    storage: "StorageService",
    catalogue: "CatalogueService",
    environment: "EnvironmentService",
  };
  const names = new Set(asked.map(([, of, name]) => `${FIELDS[of!] ?? of!.replace(".method", "")}.${name}`));
  const all = SERVICES.flatMap(({ name, methods }) => methods.map(({ localName }) => `${name}.${localName}`));
  // Streams of arrivals and of all changes have no end to wait for.
  expect(all.filter((name) => !names.has(name))).toEqual([
    "SessionService.watchAll",
    "StorageService.subscribe",
  ]);
});

function messageOf<T>(answered: Answered): T {
  if (!("messages" in answered)) throw new Error(`refused: ${JSON.stringify(answered)}`);
  return answered.messages[0] as T;
}

/** Ids, moments, hashes and secrets, each by what it is. */
function withoutChance(text: string): string {
  return text
    .replace(/hf_[a-z]{3}_\w+/g, "TOKEN")
    .replace(/\b(ses|rnr|sig|run|req|tok|sch)_[0-9a-f-]{20,}/g, "$1")
    .replace(/\b[0-9a-f]{16,64}\b|(?<=hash\\":\\")[\w-]{43}/g, "HASH")
    .replace(/\b1[78]\d{11}\b/g, "TIME");
}
