// The catalogue of a coordinator over REST: versions, tags, inactive agents, the versions of sessions, and
// roles.

import { createHash } from "node:crypto";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFleet, type Answer, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
beforeEach(async () => {
  fleet = await openFleet();
  ada = await fleet.user("ada");
});
afterEach(() => fleet.close());

const file = (text: string, path = "helper.md") => ({ path, base64: Buffer.from(text).toString("base64") });
const push = (text: string, more: object = {}, name = "helper"): Promise<Answer> =>
  fleet.admin.post(`/v1/catalogue/agent/${name}/versions`, { files: [file(text)], ...more });
const change = (body: object): Promise<Answer> =>
  fleet.admin.call("PATCH", "/v1/catalogue/agent/helper", body);
const pushed = async (text: string, more: object = {}): Promise<string> =>
  (await push(text, more)).body.current as string;

/** The hash of one file that cannot be executed. */
function hashOf(text: string, path = "helper.md"): string {
  const sha256 = createHash("sha256").update(text).digest("hex");
  return createHash("sha256")
    .update(JSON.stringify([path, sha256, false]))
    .digest("hex");
}

describe("versions", () => {
  test("a content is a version by its hash, and pushing it again makes it current again", async () => {
    const [one, two] = [await pushed("one"), await pushed("two")];
    expect([one, two]).toEqual([hashOf("one"), hashOf("two")]);
    const { status, body } = await push("one");
    expect(status).toBe(201);
    expect(body).toMatchObject({ current: one, active: true });
    const hashes = (body.versions as readonly { hash: string }[]).map(({ hash }) => hash);
    expect(hashes).toEqual([two, one]);
    expect(body.versions[1]).toMatchObject({ pushedBy: "root" });
  });

  test("a tag stays on its version, and names it for a rollback", async () => {
    const one = await pushed("one", { tag: "stable" });
    const two = await pushed("two");
    expect((await change({ tag: "next" })).body).toMatchObject({
      current: two,
      tags: { stable: one, next: two },
    });
    expect((await change({ version: "stable" })).body.current).toBe(one);
    expect((await change({ version: two.slice(0, 12) })).body.current).toBe(two);
  });

  test("the list and the contents are those that were pushed", async () => {
    const hash = await pushed("one", { description: "Helps." });
    const { items } = (await ada.get("/v1/catalogue?kind=agent")).body;
    expect(items).toMatchObject([{ kind: "agent", name: "helper", description: "Helps.", current: hash }]);
    const runner = await fleet.runner();
    const content = await runner.person.get(`/v1/catalogue/agent/helper/versions/${hash}`);
    expect(content.body).toEqual({ files: [{ ...file("one"), executable: false }] });
  });
});

describe("sessions of agent files", () => {
  const start = (more: object = {}) => ada.post("/v1/sessions", { agent: "helper", input: "go", ...more });

  test("a session gets the current version, or the one that its tag or hash names", async () => {
    const one = await pushed("one", { tag: "stable" });
    const first = await start();
    const two = await pushed("two");
    expect(first.body.agentVersion).toBe(one.slice(0, 16));
    expect((await start()).body.agentVersion).toBe(two.slice(0, 16));
    expect((await start({ agentVersion: "stable" })).body.agentVersion).toBe(one.slice(0, 16));
    expect((await start({ agentVersion: one })).body.agentVersion).toBe(one.slice(0, 16));
    expect((await ada.get(`/v1/sessions/${first.body.sessionId}`)).body.agentVersion).toBe(one.slice(0, 16));
    const wrong = await start({ agentVersion: "stabel" });
    expect([wrong.status, wrong.body.at]).toEqual([404, "agentVersion"]);
    expect(wrong.body.expected).toContain("stable");
  });

  test("no session of an inactive agent is started, and it is not listed as one to start", async () => {
    await pushed("one");
    await fleet.runner({ agents: ["helper", "greeter"] });
    const names = async () =>
      ((await ada.get("/v1/agents")).body.agents as readonly { name: string }[]).map(({ name }) => name);
    expect(await names()).toEqual(["greeter", "helper"]);
    const repeated = { sessionId: "mine" };
    expect((await start(repeated)).status).toBe(201);
    expect((await change({ active: false })).body.active).toBe(false);
    expect(await names()).toEqual(["greeter"]);
    const refused = await start();
    expect([refused.status, refused.body.code]).toEqual([404, "agent_not_found"]);
    expect(refused.body.fix).toContain("holdfast agents activate helper");
    expect((await start(repeated)).status).toBe(201);
    await pushed("two");
    expect((await start()).status).toBe(404);
    await change({ active: true });
    expect((await start()).status).toBe(201);
  });
});

describe("schedules of agent files", () => {
  const SECOND_MS = 1_000; // The schedules of these tests are due each second.
  const put = (agent: object) =>
    ada.call("PUT", "/v1/schedules/s", { cron: "* * * * *", start: { input: "go", ...agent } });
  const versions = async () =>
    ((await ada.get("/v1/sessions")).body.sessions as readonly { agentVersion: string }[]).map(
      ({ agentVersion }) => agentVersion,
    );
  let wall: TestClock;
  beforeEach(async () => {
    await fleet.close();
    wall = new TestClock();
    fleet = await openFleet({ clock: wall });
    ada = await fleet.user("ada");
  });

  test("a schedule starts the version that it names, and otherwise the current one", async () => {
    const one = await pushed("one", { tag: "stable" });
    const two = await pushed("two");
    expect((await put({ agent: "helper" })).body.start).not.toHaveProperty("agentVersion");
    await wall.advance(SECOND_MS);
    await expect.poll(versions).toEqual([two.slice(0, 16)]);
    expect((await put({ agent: "helper", agentVersion: "stable" })).body.start.agentVersion).toBe("stable");
    await wall.advance(SECOND_MS);
    await expect
      .poll(async () => (await versions()).toSorted())
      .toEqual([one, two].map((hash) => hash.slice(0, 16)).toSorted());
  });

  test("a schedule of an inactive agent starts nothing until the agent is active again", async () => {
    await pushed("one");
    await put({ agent: "helper" });
    await change({ active: false });
    await wall.advance(5 * SECOND_MS);
    expect(await versions()).toEqual([]);
    await change({ active: true });
    await wall.advance(2 * SECOND_MS);
    await expect.poll(async () => (await versions()).length).toBeGreaterThan(0);
  });
});

test("an item whose document is damaged is left out, and breaks no other item", async () => {
  const storage = new MemoryStorage();
  await fleet.close();
  fleet = await openFleet({ storage });
  ada = await fleet.user("ada");
  await pushed("one");
  const damaged = {
    type: "put_document",
    collection: "catalogue-item",
    id: "agent/broken",
    body: "{",
  } as const;
  await storage.commit([damaged], Date.now());
  await push("two", {}, "other").catch(() => {});
  const { items } = (await ada.get("/v1/catalogue")).body;
  expect(items).toMatchObject([{ name: "helper" }]);
});

test("an item has at most 100 tags, and the name of an item is one that a file may have", async () => {
  await pushed("one");
  for (let tag = 0; tag < 100; tag++) expect((await change({ tag: `t${tag}` })).status).toBe(200);
  const refused = await change({ tag: "t100" });
  expect([refused.status, refused.body.code]).toEqual([422, "limit_exceeded"]);
  expect((await change({ tag: "t99" })).status).toBe(200);
  for (const name of ["__proto__", "con"])
    expect((await push("one", { files: [file("one", `${name}.md`)] }, name)).body.code).toBe("usage");
});

test("only admins change the catalogue, and users read no contents", async () => {
  const hash = await pushed("one");
  const runner = await fleet.runner();
  for (const { person, reads } of [
    { person: ada, reads: 403 },
    { person: runner.person, reads: 200 },
  ]) {
    expect((await person.post("/v1/catalogue/agent/helper/versions", { files: [file("x")] })).status).toBe(
      403,
    );
    expect((await person.call("PATCH", "/v1/catalogue/agent/helper", { active: false })).status).toBe(403);
    expect((await person.get(`/v1/catalogue/agent/helper/versions/${hash}`)).status).toBe(reads);
    expect((await person.get("/v1/catalogue/agent/helper")).status).toBe(200);
  }
});

describe("a push is refused, and stores nothing", () => {
  test.each<[what: string, body: object, code: string]>([
    ["without files", { files: [] }, "usage"],
    ["with a path that leads out of the folder", { files: [file("x", "../x.md")] }, "usage"],
    ["with an absolute path", { files: [file("x", "/etc/x")] }, "usage"],
    ["with a backslash in a path", { files: [file("x", "a\\b")] }, "usage"],
    ["with a NUL in a path", { files: [file("x", "a\u0000b")] }, "validation"],
    ["with a name that Windows reserves", { files: [file("x", "aux.md")] }, "usage"],
    ["with a folder of git", { files: [file("x", ".git/config")] }, "usage"],
    ["with two names that differ in case alone", { files: [file("x", "A.md"), file("y", "a.md")] }, "usage"],
    ["with bytes that are no base64", { files: [{ path: "a.md", base64: "%%%" }] }, "usage"],
    ["with too many bytes", { files: [file("x".repeat(600_000))] }, "limit_exceeded"],
    ["with a tag that looks like a hash", { files: [file("x")], tag: "123456" }, "validation"],
    ["with a tag of letters that looks like a hash", { files: [file("x")], tag: "c7cfeec7" }, "usage"],
    ["with a file of another name", { files: [file("x", "other.md")] }, "usage"],
    ["with more than the file of the agent", { files: [file("x"), file("y", "notes.md")] }, "usage"],
    ["with an unknown field", { files: [file("x")], owner: "ada" }, "validation"],
  ])("%s", async (_what, body, code) => {
    const answer = await fleet.admin.post("/v1/catalogue/agent/helper/versions", body);
    expect(answer.body.code).toBe(code);
    expect((await ada.get("/v1/catalogue")).body.items ?? []).toEqual([]);
  });

  test.each([
    ["whose kind is unknown", "/v1/catalogue/robot/helper/versions"],
    ["whose name has a dot", "/v1/catalogue/agent/a.b/versions"],
  ])("an item %s is refused", async (_what, path) => {
    expect((await fleet.admin.post(path, { files: [file("x")] })).body.code).toBe("validation");
  });

  test.each([
    ["a version that is not there", { version: "feedfeed" }],
    ["the beginning of a hash that is too short", { version: "a" }],
    ["a tag that is not there", { version: "stable" }],
  ])("a change to %s is not found", async (_what, body) => {
    await pushed("one");
    expect((await change(body)).body.code).toBe("not_found");
    expect((await fleet.admin.call("PATCH", "/v1/catalogue/agent/none", { active: true })).status).toBe(404);
  });
});
