// The orchestrator's tools for a client that names agents: by their tags, in its header or with
// `holdfast mcp --tag`, and by names that nothing has.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { defineAgent } from "@holdfast/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

let project: Project;
let fleet: Fleet;
const clients: Client[] = [];

const agent = (name: string, tags: readonly string[]) => defineAgent({ name, tags, run: async () => name });

beforeAll(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet({ config: { mcp: { agentTools: true } } });
  const agents = [agent("greet", []), agent("hold", ["internal"]), agent("deploy", ["internal", "ops"])];
  await fleet.runner({ agents, graceMs: 0 });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await project.dispose();
  await fleet.close();
});

async function connect(transport: Parameters<Client["connect"]>[0]): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  clients.push(client);
  await client.connect(transport);
  return client;
}

function overHttp(tags: string): Promise<Client> {
  const headers = { authorization: `Bearer ${fleet.adminToken}`, "X-Agent-Tags": tags };
  const url = new URL(`${fleet.url}/mcp`);
  return connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { content, structuredContent } = await client.callTool({ name, arguments: args });
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
  return { text: JSON.stringify(content), value: structuredContent as any };
}

async function named(client: Client): Promise<readonly string[]> {
  const { value } = await call(client, "list_agent_blueprints");
  return value.agents.map(({ name }: { readonly name: string }) => name);
}

test("a client with tags sees and starts the agents that have all of them, and no others", async () => {
  expect(await named(await overHttp("internal"))).toEqual(["deploy", "hold"]);
  expect(await named(await overHttp("internal,none"))).toEqual([]);
  expect(await named(await overHttp(" "))).toEqual(["deploy", "greet", "hold"]);
  const client = await overHttp(" internal, ops");
  expect(await named(client)).toEqual(["deploy"]);
  const tools = (await client.listTools()).tools.map(({ name }) => name);
  expect(tools.filter((name) => name.startsWith("agent_"))).toEqual(["agent_deploy"]);
  const refused = await call(client, "start_agent_session", { agent_name: "greet", parameters: {} });
  expect(refused.text).toContain("with the tags internal, ops");
  // The only one that is left needs no name.
  const started = await call(client, "start_agent_session", { parameters: {} });
  expect(started.value).toMatchObject({ status: "finished", result: "deploy" });
});

test("an agent that no runner offers is refused at once in each mode, and no session waits for it", async () => {
  const client = await overHttp(" ");
  for (const mode of ["sync", "async_poll"]) {
    const args = { agent_name: "gret", parameters: {}, mode };
    const { text } = await call(client, "start_agent_session", args);
    expect(text).toMatch(
      /no runner offers the agent .*gret.*; did you mean greet.*one of deploy, greet, hold/,
    );
  }
  expect((await call(client, "list_agent_sessions")).text).not.toContain("gret\\");
});

test("`holdfast mcp --tag` filters as the header does", async () => {
  const env = { HOME: project.folder, HOLDFAST_URL: fleet.url, HOLDFAST_TOKEN: fleet.adminToken };
  const args = [LAUNCHER, "mcp", "--tag", "ops"];
  expect(
    await named(await connect(new StdioClientTransport({ command: process.execPath, args, env }))),
  ).toEqual(["deploy"]);
});
