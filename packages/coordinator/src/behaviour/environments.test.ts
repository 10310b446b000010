// Environments of persons and of projects at a coordinator, over REST: their readers, their encryption, and to
// which runner they are released.

import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import type { AgentStorage, Change } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  openFleet,
  type Answer,
  type FakeClaim,
  type FakeRunner,
  type Fleet,
  Person,
} from "../testing/fleet.ts";

const [KEY, NEXT_KEY] = ["first key ".repeat(5), "second key ".repeat(5)];
const TOKEN = "ghp-the-token-of-ada";

let fleet: Fleet;
let ada: Person;
let bob: Person;
beforeEach(async () => {
  fleet = await openFleet({ environmentKeys: [KEY] });
  [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
});
afterEach(() => fleet.close());

const key = (name: string, value: string) => ({ name, value });
const secret = (name: string, value: string) => ({ name, value, secret: true });
const set = (who: Person, name: string, keys: readonly object[], more: object = {}): Promise<Answer> =>
  who.call("PATCH", `/v1/environments/${name}`, { keys, ...more });
const names = (answer: Answer): readonly string[] =>
  (answer.body.environments as readonly { name: string }[]).map(({ name }) => name);

/** The bodies of all documents, as the storage has them. */
async function stored(storage: AgentStorage): Promise<string> {
  const documents = await storage.reader.documents({ collection: "environment", limit: 500 });
  return JSON.stringify(documents);
}

describe("setting and reading", () => {
  test("a person has what was set last, and no answer has the value of a secret", async () => {
    await set(ada, "staging", [key("API_URL", "https://a"), secret("TOKEN", TOKEN)]);
    const { status, body } = await set(ada, "staging", [
      key("API_URL", "https://b"),
      { name: "RELEASE", required: true },
    ]);
    expect(status).toBe(200);
    expect(body.keys).toEqual([
      { name: "API_URL", value: "https://b", secret: false, required: false },
      { name: "TOKEN", secret: true, required: false },
      { name: "RELEASE", secret: false, required: true },
    ]);
    expect(body.changedBy).toBe("ada");
    const answers = [
      body,
      (await ada.get("/v1/environments")).body,
      (await ada.get("/v1/environments/staging")).body,
    ];
    expect(JSON.stringify(answers)).not.toContain(TOKEN);
    await ada.call("PATCH", "/v1/environments/staging", { remove: ["RELEASE", "TOKEN"] });
    expect((await ada.get("/v1/environments/staging")).body.keys).toHaveLength(1);
    expect((await ada.call("DELETE", "/v1/environments/staging")).status).toBe(200);
    expect((await ada.get("/v1/environments/staging")).status).toBe(404);
  });

  test("nobody else sees an environment of a person, and only admins see those of a project", async () => {
    await set(ada, "staging", [secret("TOKEN", TOKEN)]);
    await set(fleet.admin, "staging", [key("REGION", "eu")], { project: "shop" });
    expect(names(await bob.get("/v1/environments"))).toEqual([]);
    expect((await bob.get("/v1/environments/staging")).status).toBe(404);
    expect((await bob.call("DELETE", "/v1/environments/staging")).status).toBe(404);
    expect((await ada.get("/v1/environments?project=shop")).status).toBe(403);
    expect((await set(ada, "staging", [key("REGION", "us")], { project: "shop" })).status).toBe(403);
    expect(names(await fleet.admin.get("/v1/environments?project=shop"))).toEqual(["staging"]);
    expect((await fleet.admin.get("/v1/environments")).body.detail).toContain("an admin has no environments");
    const runner = await fleet.runner();
    expect((await runner.person.get("/v1/environments")).status).toBe(403);
  });

  test("a secret does not become a value that can be read, and a wrong key is refused without its text", async () => {
    await set(ada, "staging", [secret("TOKEN", TOKEN)]);
    expect((await set(ada, "staging", [key("TOKEN", "plain")])).status).toBe(422);
    const wrong = await set(ada, "staging", [key("HOLDFAST_URL", "x")]);
    expect([wrong.status, JSON.stringify(wrong.body).includes("HOLDFAST_URL")]).toEqual([422, false]);
    expect((await set(ada, "staging", [{ name: "EMPTY" }])).body.detail).toContain("EMPTY has no value");
    expect((await set(ada, "Staging", [key("A", "b")])).status).toBe(422);
    expect((await ada.call("PATCH", "/v1/environments/staging", { remove: ["NONE"] })).status).toBe(404);
  });

  test("the audit has the person and the names of keys of each change, and no value", async () => {
    await set(ada, "staging", [key("API_URL", "https://a"), secret("TOKEN", TOKEN)]);
    await ada.call("DELETE", "/v1/environments/staging");
    const rows = (await fleet.storage.reader.audit({ limit: 100 })).filter(({ action }) =>
      action.startsWith("environment"),
    );
    expect(rows).toMatchObject([
      {
        actor: "user:ada",
        action: "environment.set",
        object: "environment:person/ada/staging",
        details: '{"set":["API_URL","TOKEN"],"removed":[]}',
        outcome: "done",
      },
      { action: "environment.delete", object: "environment:person/ada/staging" },
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/https:|ghp-/);
  });
});

describe("encryption", () => {
  test("the storage has neither keys nor values in the clear", async () => {
    await set(ada, "staging", [key("API_URL", "https://staging.example"), secret("TOKEN", TOKEN)]);
    const text = await stored(fleet.storage);
    expect(text).toContain("person/ada/staging");
    for (const value of [TOKEN, "staging.example", "API_URL", Buffer.from(TOKEN).toString("base64")])
      expect(text).not.toContain(value);
  });

  test("an environment that was moved to another person or name in the storage is not decrypted", async () => {
    await set(ada, "staging", [secret("TOKEN", TOKEN)]);
    const [{ body } = { body: "" }] = await fleet.storage.reader.documents({
      collection: "environment",
      limit: 1,
    });
    const put = (id: string): Change => ({ type: "put_document", collection: "environment", id, body });
    await fleet.storage.commit([put("person/bob/staging"), put("person/ada/other")], Date.now());
    for (const answer of [await bob.get("/v1/environments/staging"), await ada.get("/v1/environments/other")])
      expect(answer.status).toBe(500);
    expect(JSON.stringify(await bob.get("/v1/environments"))).not.toContain("TOKEN");
    expect((await bob.call("DELETE", "/v1/environments/staging")).status).toBe(200);
  });

  test("a coordinator without a key stores nothing, and says how to get one", async () => {
    const bare = await openFleet();
    const eve = await bare.user("eve");
    const { status, body } = await set(eve, "staging", [key("A", "b")]);
    expect([status, body.code]).toEqual([409, "secret_key"]);
    expect(body.fix).toContain("--environment-key FILE");
    expect(await stored(bare.storage)).toBe("[]");
    expect((await eve.get("/v1/environments")).body).toEqual({ environments: [] });
    await bare.close();
  });

  test("a coordinator with another key does not start, and one without keys only deletes", async () => {
    await set(ada, "staging", [secret("TOKEN", TOKEN)]);
    const { storage } = fleet;
    await expect(openFleet({ storage, environmentKeys: [NEXT_KEY], seed: 2 })).rejects.toMatchObject({
      code: "secret_key",
    });
    const bare = await openFleet({ storage, seed: 3 });
    expect(bare.log).toEqual([expect.stringContaining("has 1 environments and no key for them")]);
    const again = await bare.user("ada");
    expect((await again.get("/v1/environments/staging")).body.code).toBe("secret_key");
    expect((await set(again, "staging", [key("A", "b")])).body.code).toBe("secret_key");
    expect((await again.call("DELETE", "/v1/environments/staging")).status).toBe(200);
    await bare.close();
    const fresh = await openFleet({ storage, environmentKeys: [NEXT_KEY], seed: 4 });
    await fresh.close();
  });

  test("after a rotation the earlier key is not needed any more", async () => {
    await set(ada, "staging", [secret("TOKEN", TOKEN)]);
    await set(fleet.admin, "staging", [key("REGION", "eu")], { project: "shop" });
    const { storage } = fleet;
    const both = await openFleet({ storage, environmentKeys: [NEXT_KEY, KEY], seed: 2 });
    expect((await both.admin.post("/v1/environments/rotate")).body).toEqual({ rotated: 2, environments: 2 });
    expect((await both.admin.post("/v1/environments/rotate")).body).toEqual({ rotated: 0, environments: 2 });
    expect((await (await both.user("eve")).post("/v1/environments/rotate")).status).toBe(403);
    await both.close();
    const next = await openFleet({ storage, environmentKeys: [NEXT_KEY], seed: 3 });
    const { keys } = (await (await next.user("ada")).get("/v1/environments/staging")).body;
    expect(keys).toEqual([{ name: "TOKEN", secret: true, required: false }]);
    await next.close();
  });
});

describe("a release", () => {
  const content = [{ path: "helper.md", base64: Buffer.from("helper").toString("base64") }];
  beforeEach(async () => {
    const declared = { environments: ["staging"], variables: ["API_URL", "TOKEN", "REGION"] };
    await fleet.admin.post("/v1/catalogue/agent/helper/versions", { files: content, ...declared });
    await set(ada, "staging", [
      key("API_URL", "https://ada"),
      secret("TOKEN", TOKEN),
      secret("OTHER", "unseen"),
    ]);
    await set(ada, "private", [key("API_URL", "https://private")]);
    await set(fleet.admin, "base", [key("REGION", "eu")], { project: "shop" });
    await set(fleet.admin, "staging", [secret("TOKEN", "of-the-project"), key("API_URL", "https://shop")], {
      project: "shop",
    });
    await set(fleet.admin, "production", [secret("TOKEN", "of-production")], { project: "shop" });
  });

  const SHOP = { demands: { project: "shop" } };
  const runnerOf = (name: string): Promise<FakeRunner> =>
    fleet.runner({ agents: ["helper"], name, labels: { project: "shop" } });
  const ask = (
    { person }: FakeRunner,
    { sessionId, token }: Pick<FakeClaim, "sessionId" | "token">,
  ): Promise<Answer> => person.post(`/v1/sessions/${sessionId}/environments`, { claimToken: token });
  async function claimed(who: Person, more: object = {}) {
    const runner = await runnerOf("box");
    await who.start({ agent: "helper", ...more });
    const [claim] = (await runner.poll()).claims;
    return { runner, claim: claim! };
  }
  /** Values by environment and key. */
  const valuesOf = ({ status, body }: Answer): unknown => {
    expect(status, JSON.stringify(body)).toBe(200);
    const environments = body.environments as readonly {
      name: string;
      keys: readonly { name: string; value?: string }[];
    }[];
    return Object.fromEntries(
      environments.map(({ name, keys }) => [
        name,
        Object.fromEntries(keys.map((one) => [one.name, one.value])),
      ]),
    );
  };

  test("the runner that holds the session gets what the agent file declares, and the audit says so", async () => {
    const { runner, claim } = await claimed(ada);
    expect(valuesOf(await ask(runner, claim))).toEqual({ staging: { API_URL: "https://ada", TOKEN } });
    const row = (await fleet.storage.reader.audit({ limit: 100 })).find(
      ({ action }) => action === "environment.release",
    );
    expect(row).toMatchObject({ actor: `runner:${runner.runnerId}`, object: `session:${claim.sessionId}` });
    expect(JSON.parse(row?.details ?? "")).toMatchObject({
      person: "ada",
      agent: "helper",
      released: ["staging.API_URL", "staging.TOKEN"],
    });
    expect(JSON.stringify(row)).not.toContain(TOKEN);
  });

  test("a session of another person has nothing of the first one", async () => {
    const { runner, claim } = await claimed(bob, SHOP);
    expect(valuesOf(await ask(runner, claim))).toEqual({
      base: { REGION: "eu" },
      staging: { API_URL: "https://shop", TOKEN: "of-the-project" },
    });
    const alone = await claimed(bob);
    expect(valuesOf(await ask(alone.runner, alone.claim))).toEqual({});
  });

  test("the person counts more than the project, and a start names further environments of the person alone", async () => {
    const environment = { references: ["private", "production"] };
    const { runner, claim } = await claimed(ada, { ...SHOP, environment });
    expect(valuesOf(await ask(runner, claim))).toEqual({
      base: { REGION: "eu" },
      staging: { API_URL: "https://ada", TOKEN },
      private: { API_URL: "https://private" },
    });
  });

  test("a runner without the claim, an earlier claim, a user and an admin get nothing", async () => {
    const { runner, claim } = await claimed(ada);
    const other = await runnerOf("other");
    const refused = await ask(other, claim);
    expect([refused.status, refused.body.code]).toEqual([409, "fenced"]);
    expect((await ask(other, { sessionId: "ses_none", token: 1 })).body.code).toBe("fenced");
    expect((await ask(runner, { ...claim, token: claim.token - 1 })).body.code).toBe("fenced");
    for (const who of [ada, fleet.admin])
      expect(
        (await who.post(`/v1/sessions/${claim.sessionId}/environments`, { claimToken: claim.token })).status,
      ).toBe(403);
    await runner.release(claim);
    expect((await ask(runner, claim)).body.code).toBe("fenced");
    const texts = JSON.stringify(await fleet.storage.reader.audit({ limit: 1_000 }));
    expect(texts).not.toContain("environment.release");
  });

  test("a session below another one has the project of the first, whatever it demands itself", async () => {
    const first = await bob.start({ agent: "greeter", ...SHOP });
    const runner = await fleet.runner({ agents: ["helper"], labels: { project: "bank" } });
    await set(fleet.admin, "staging", [secret("TOKEN", "of-the-bank")], { project: "bank" });
    await bob.start({ agent: "helper", parentSessionId: first, demands: { project: "bank" } });
    const [claim] = (await runner.poll()).claims;
    expect(valuesOf(await ask(runner, claim!))).toMatchObject({ staging: { TOKEN: "of-the-project" } });
  });

  test("an agent that is not in the catalogue gets nothing", async () => {
    const runner = await fleet.runner({ agents: ["greeter"] });
    await ada.start();
    const [claim] = (await runner.poll()).claims;
    expect(valuesOf(await ask(runner, claim!))).toEqual({});
  });
});

describe("starts", () => {
  const content = [{ path: "helper.md", base64: Buffer.from("helper").toString("base64") }];
  beforeEach(async () => {
    const declared = { environments: ["staging"], variables: ["REGION", "TOKEN"] };
    await fleet.admin.post("/v1/catalogue/agent/helper/versions", { files: content, ...declared });
  });

  /** @param lacking the environments that the machine of the runner does not have; `undefined` where its policy gives none. */
  const runnerOf = (
    lacking: readonly string[] | undefined,
    requiredVariables: readonly string[] = ["REGION", "TOKEN"],
  ) =>
    fleet.runner({
      agents: ["helper"],
      labels: { project: "shop" },
      announced: {
        helper: { requiredVariables, ...(lacking === undefined ? {} : { environments: { names: lacking } }) },
      },
    });
  const begin = (who: Person, more: object = {}): Promise<Answer> =>
    who.post("/v1/sessions", { agent: "helper", sessionId: "one", ...more });
  async function expectRefused(answer: Promise<Answer>, detail: string): Promise<void> {
    const { status, body } = await answer;
    expect([status, body.code]).toEqual([422, "invalid_input"]);
    expect(body.detail).toContain(detail);
    expect(await fleet.storage.reader.session("one")).toBeUndefined();
  }

  test("a start is refused without an environment that the agent or the start names", async () => {
    await runnerOf(["staging"]);
    await expectRefused(begin(ada), 'needs the environment "staging"');
    await set(ada, "staging", [key("REGION", "eu"), secret("TOKEN", TOKEN)]);
    await expectRefused(begin(bob), 'needs the environment "staging"');
    await expectRefused(
      begin(ada, { environment: { references: ["other"] } }),
      'needs the environment "other"',
    );
    expect((await begin(ada)).status).toBe(201);
  });

  test("a start is refused without a variable, and takes it from the start, the person or the project", async () => {
    await runnerOf(["staging"]);
    await set(ada, "staging", [key("REGION", "eu"), { name: "RELEASE", required: true }]);
    await expectRefused(begin(ada), "the variables TOKEN, RELEASE have no value");
    await set(fleet.admin, "base", [secret("TOKEN", "of-the-shop")], { project: "shop" });
    await expectRefused(begin(ada), "TOKEN, RELEASE");
    const demands = { project: "shop" };
    await expectRefused(begin(ada, { demands }), "the variable RELEASE has no value");
    expect((await begin(ada, { demands, environment: { values: { RELEASE: "1" } } })).status).toBe(201);
  });

  test("a start is not refused where one runner has what it needs", async () => {
    await runnerOf(["staging"]);
    await runnerOf(undefined, []);
    expect((await begin(ada)).status).toBe(201);
  });

  test("a schedule is refused as its start is", async () => {
    await runnerOf(["staging"]);
    const put = () =>
      ada.call("PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", start: { agent: "helper" } });
    expect((await put()).body.detail).toContain('needs the environment "staging"');
    await set(ada, "staging", [key("REGION", "eu"), secret("TOKEN", TOKEN)]);
    expect((await put()).status).toBe(200);
  });

  test("a start is refused by a coordinator that has lost its key, with the advice", async () => {
    await set(ada, "staging", [key("REGION", "eu"), secret("TOKEN", TOKEN)]);
    const bare = await openFleet({ storage: fleet.storage, seed: 5 });
    const runner = { agents: ["helper"], announced: { helper: { environments: { names: ["staging"] } } } };
    await bare.runner(runner);
    const { status, body } = await begin(await bare.user("ada"));
    expect([status, body.code]).toEqual([409, "secret_key"]);
    await bare.close();
  });
});

test("a token for some projects starts sessions of them alone, in every way", async () => {
  const made = await fleet.admin.post("/v1/tokens", { kind: "user", name: "eve", projects: ["shop"] });
  expect(made.body.token).toMatchObject({ owner: "eve", projects: ["shop"] });
  const eve = new Person(fleet.url, made.body.secret as string);
  const begin = (demands: object): Promise<Answer> => eve.post("/v1/sessions", { agent: "greeter", demands });
  for (const demands of [{}, { project: "shop" }, { zone: "eu" }])
    expect((await begin(demands)).status).toBe(201);
  const refused = await begin({ project: "bank" });
  expect([refused.status, refused.body.code]).toEqual([403, "insufficient_scope"]);
  const start = { agent: "greeter", demands: { project: "bank" } };
  expect((await eve.call("PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", start })).status).toBe(403);
  const everywhere = await fleet.admin.post("/v1/tokens", { kind: "user", name: "eve" });
  const origin = await new Person(fleet.url, everywhere.body.secret as string).start({
    demands: { project: "bank" },
  });
  expect((await eve.post(`/v1/sessions/${origin}/fork`, {})).status).toBe(403);
  expect((await eve.post("/v1/sessions", { agent: "greeter", parentSessionId: origin })).status).toBe(403);
  const placement = { demands: { project: "bank" } };
  const creation = {
    type: "create_session",
    sessionId: "two",
    agent: { name: "greeter", version: "1" },
    seed: 1,
    flags: 0,
    format: 1,
    placement,
  };
  expect((await eve.post("/v1/storage/commit", { changes: [creation] })).status).toBe(403);
  const parent = { sessionId: origin, child: 0, onEnd: "leave", notify: "end" };
  const { placement: _, ...below } = { ...creation, parent };
  expect((await eve.post("/v1/storage/commit", { changes: [below] })).status).toBe(403);
  const schedule = {
    scheduleId: "often",
    cron: "* * * * *",
    timeZone: "UTC",
    nextAt: 1,
    isPaused: false,
    createdAt: 1,
    action: { type: "start", agent: { name: "greeter", version: "1" }, placement },
  };
  expect(
    (await eve.post("/v1/storage/commit", { changes: [{ type: "put_schedule", schedule }] })).status,
  ).toBe(403);
  expect((await ada.post("/v1/sessions", { agent: "greeter", demands: { project: "bank" } })).status).toBe(
    201,
  );
  expect(
    (await fleet.admin.post("/v1/tokens", { kind: "admin", name: "x", projects: ["shop"] })).status,
  ).toBe(422);
});

test("a claim whose lease has passed releases nothing", async () => {
  const clock = new TestClock();
  const timed = await openFleet({ storage: new MemoryStorage(), clock, environmentKeys: [KEY] });
  const files = [{ path: "helper.md", base64: Buffer.from("helper").toString("base64") }];
  await timed.admin.post("/v1/catalogue/agent/helper/versions", { files, variables: ["TOKEN"] });
  const eve = await timed.user("eve");
  await set(eve, "base", [secret("TOKEN", TOKEN)]);
  const runner = await timed.runner({ agents: ["helper"] });
  await eve.start({ agent: "helper" });
  const [claim] = (await runner.poll()).claims;
  const ask = (): Promise<Answer> =>
    runner.person.post(`/v1/sessions/${claim!.sessionId}/environments`, { claimToken: claim!.token });
  expect((await ask()).status).toBe(200);
  await clock.advance(claim!.leaseMs + 1_000);
  expect((await ask()).body.code).toBe("fenced");
  await timed.close();
});
