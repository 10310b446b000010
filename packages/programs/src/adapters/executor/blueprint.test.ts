// The blueprint that an executor gets, and the tools of its session, over real programs, processes and
// gateways.

import { afterEach, beforeEach, expect, test } from "vitest";

import { openWorld, type World } from "../../testing/executor-world.ts";
import { worker } from "../../testing/orchestration.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const SHOW = 'await event("result", { result_data: { inv, env: process.env } });';

interface Shown {
  readonly inv: { readonly agent_blueprint: unknown; readonly agent_name?: string };
  readonly env: Readonly<Record<string, string>>;
}

async function shown(input: unknown, options: Parameters<World["open"]>[1] = {}): Promise<Shown> {
  const profile = await world.node(SHOW, { schemaVersion: "2.2" });
  const { runtime, agent } = world.open(profile, options);
  return ((await (await runtime.start(agent, input)).result()) as { result_data: Shown }).result_data;
}

test("the placeholders of a blueprint have the values of the turn, and a prompt keeps what is none", async () => {
  const servers = {
    orchestrator: {
      type: "http",
      url: "${AGENT_ORCHESTRATOR_MCP_URL}",
      headers: { "X-Agent-Session-Id": "${AGENT_SESSION_ID}", "X-Topic": "${params.topic}" },
    },
    own: { type: "http", url: "${runner.orchestrator_mcp_url}", headers: { "X-Home": "${HOME}" } },
    other: { type: "stdio", command: "tool", args: ["--to", "${NOT_GIVEN:-nowhere}"] },
  };
  const blueprint = {
    name: "researcher",
    system_prompt: "You are ${AGENT_SESSION_ID}; run echo ${x}.",
    mcp_servers: servers,
  };
  const { inv, env } = await shown({
    parameters: { prompt: "go", topic: "tea" },
    agent_blueprint: blueprint,
  });
  const id = env["AGENT_SESSION_ID"];
  const url = env["AGENT_ORCHESTRATOR_MCP_URL"];
  expect(inv.agent_blueprint).toEqual({
    name: "researcher",
    system_prompt: `You are ${id}; run echo \${x}.`,
    mcp_servers: {
      orchestrator: { type: "http", url, headers: { "X-Agent-Session-Id": id, "X-Topic": "tea" } },
      own: { type: "http", url, headers: { "X-Home": env["HOME"] } },
      other: { type: "stdio", command: "tool", args: ["--to", "nowhere"] },
    },
  });
});

test.each([
  ["a variable that the executor does not get", "${PRIVATE_KEY}"],
  ["a scope", "${scope.key}"],
  ["a field that the input lacks", "${params.missing}"],
])("a placeholder without a value refuses the turn before a program starts: %s", async (_what, url) => {
  const environment = { ...process.env, PRIVATE_KEY: "canary" };
  const input = { prompt: "go", agent_blueprint: { mcp_servers: { one: { type: "http", url } } } };
  await expect(shown(input, { environment })).rejects.toThrow(`the placeholder ${url} has no value`);
});

test("the blueprint of an agent is found by its name, and an unknown name refuses the turn", async () => {
  const blueprint = (name: string) => {
    if (name !== "researcher") throw new Error(`there is no agent ${name}`);
    return { name, system_prompt: "You search." };
  };
  const { inv } = await shown({ prompt: "go", agent_name: "researcher" }, { blueprint });
  expect(inv).toMatchObject({ agent_name: "researcher", agent_blueprint: { system_prompt: "You search." } });
  await expect(shown({ prompt: "go", agent_name: "nobody" }, { blueprint })).rejects.toThrow(
    "no agent nobody",
  );
});

test("an executor reaches the tools of its session by MCP at the address of its blueprint", async () => {
  const program = await world.node(
    `const url = inv.agent_blueprint.mcp_servers.orchestrator.url;
     const ask = async (id, method, params) => {
       const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
       const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...(id && { id }), method, params }) });
       return answer.status === 202 ? null : (await answer.json()).result;
     };
     const { protocolVersion } = await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } });
     const noted = await ask(0, "notifications/initialized");
     const { tools } = await ask(2, "tools/list");
     const started = await ask(3, "tools/call", { name: "start_agent_session", arguments: { agent_name: "worker", parameters: { prompt: "all green" } } });
     await event("result", { result_data: { protocolVersion, noted, tools: tools.map(({ name }) => name), said: started.content[0].text } });`,
    { schemaVersion: "2.2" },
  );
  const { runtime, agent } = world.open(program, {}, [worker]);
  const servers = { orchestrator: { type: "http", url: "${AGENT_ORCHESTRATOR_MCP_URL}" } };
  const handle = await runtime.start(agent, { prompt: "go", agent_blueprint: { mcp_servers: servers } });
  expect(await handle.result()).toMatchObject({
    result_data: {
      protocolVersion: "2025-06-18",
      noted: null,
      tools: expect.arrayContaining(["start_agent_session", "ask_parent"]) as unknown,
      said: "all green",
    },
  });
});
