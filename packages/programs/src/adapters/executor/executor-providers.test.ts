// An executor that calls a model provider through the gateway of its run: its profile names the provider, and
// the executor never holds the key.

import { CanaryScan, startScriptedModelServer, turns, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorld, type World } from "../../testing/executor-world.ts";

const scan = new CanaryScan();
let world: World;
let server: ScriptedModelServer;
beforeEach(async () => {
  world = await openWorld();
  server = await startScriptedModelServer({
    script: turns([{ text: "hello from the model" }]),
    apiKeys: [scan.secret],
  });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await world.close();
  await server.close();
});

/** Asks the model as a provider's own client does, and reports all that the program can read of its environment. */
const ASK = `
  const { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: token } = process.env;
  const answer = await fetch(base + "/v1/messages", {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
  });
  writeFileSync("seen", JSON.stringify(process.env) + (existsSync("/proc/self/environ") ? readFileSync("/proc/self/environ", "latin1") : ""));
  await event("result", { result_text: answer.status + " " + await answer.text(), result_data: base });`;

const environment = (changes: Record<string, string> = {}) => ({
  environment: { ...process.env, ANTHROPIC_BASE_URL: server.url, ...changes },
});

test(
  "the gateway adds the key of a provider that the profile names, and the executor has only an address",
  ofCampaign,
  async () => {
    vi.stubEnv("TEAM_KEY", scan.secret); // The runtime's source of secrets.
    const profile = await world.node(ASK, { providers: { anthropic: "TEAM_KEY" } });
    const { runtime, agent } = world.open(profile, environment());
    const endWatch = scan.watch();
    const handle = await runtime.start(agent, "work");
    const { result_text: text, result_data: base } = (await handle.result()) as Record<string, string>;
    endWatch();
    expect(text).toMatch(/^200 .*hello from the model/s);
    expect(base).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/providers\/anthropic$/);
    expect(server.requests[0]?.headers["x-api-key"]).toBe(scan.secret);
    scan.search("the result", text!);
    scan.search(
      "the journal",
      JSON.stringify(await world.storage.reader.journal(handle.sessionId, 0, 1_000)),
    );
    scan.searchFolder(world.folder); // With what the executor has seen.
    expect([scan.found, scan.looked > 4]).toEqual([[], true]);
  },
);

test(
  "the key is added only for the run and while it lasts: what an ended run knew reaches no provider",
  ofCampaign,
  async () => {
    vi.stubEnv("TEAM_KEY", scan.secret);
    const script = `
    const { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: token } = process.env;
    const ask = (base, token) => fetch(base + "/v1/messages", {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": token, "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
    }).then(({ status }) => status, () => "unreachable");
    const earlier = existsSync("earlier") ? JSON.parse(readFileSync("earlier", "utf8")) : undefined;
    const statuses = [await ask(base, token)];
    if (earlier) statuses.push(await ask(base, earlier.token), await ask(earlier.base, earlier.token));
    writeFileSync("earlier", JSON.stringify({ base, token }));
    await event("result", { result_data: statuses });`;
    const { runtime, agent } = world.open(
      await world.node(script, { providers: { anthropic: "TEAM_KEY" } }),
      environment(),
    );
    expect(await (await runtime.start(agent, "first")).result()).toMatchObject({ result_data: [200] });
    expect(await (await runtime.start(agent, "second")).result()).toMatchObject({
      result_data: [200, 401, "unreachable"],
    });
    expect(server.requests).toHaveLength(2);
  },
);

test("an executor whose profile names no provider has no route to one", ofCampaign, async () => {
  vi.stubEnv("TEAM_KEY", scan.secret);
  const profile = await world.node(`
    const answer = await fetch(process.env.AGENT_ORCHESTRATOR_API_URL + "/providers/anthropic/v1/messages", { method: "POST", body: "{}" });
    await event("result", { result_data: [answer.status, process.env.ANTHROPIC_BASE_URL ?? null] });`);
  const { runtime, agent } = world.open(profile, environment());
  expect(await (await runtime.start(agent, "work")).result()).toMatchObject({ result_data: [404, null] });
  expect(server.requests).toEqual([]);
});

test("a provider whose key has no value fails the turn before the program starts", async () => {
  const profile = await world.node(ASK, { providers: { anthropic: "NO_SUCH_KEY" } });
  const { runtime, agent } = world.open(profile, environment());
  await expect((await runtime.start(agent, "work")).result()).rejects.toThrow("the secret NO_SUCH_KEY");
  expect(server.requests).toEqual([]);
});

test("an address to which the key would go in the clear is refused before there is a session", async () => {
  const profile = await world.node(ASK, { providers: { anthropic: "TEAM_KEY" } });
  expect(() => world.open(profile, environment({ ANTHROPIC_BASE_URL: "http://models.example.org" }))).toThrow(
    "the address of the provider anthropic cannot be used",
  );
});
