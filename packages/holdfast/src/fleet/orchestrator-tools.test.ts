// The orchestrator's tools over a real fleet, called by the official MCP client: over HTTP in both versions of the protocol, and by
// `holdfast mcp`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { customAgent, externalAgent } from "@holdfast/programs";
import { defineAgent } from "@holdfast/runtime";
import { z } from "zod";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

const TOOLS = [
  "delete_all_agent_sessions",
  "get_agent_session_result",
  "get_agent_session_status",
  "list_agent_blueprints",
  "list_agent_sessions",
  "resume_agent_session",
  "start_agent_session",
];

let project: Project;
let fleet: Fleet;
let begun = 0;
const clients: Client[] = [];

const greet = defineAgent<{ prompt: string }, string>({
  name: "greet",
  run: async (ctx, { prompt }) => {
    await ctx.run("begin", async () => void begun++);
    return `hello ${prompt}`;
  },
});
const deploy = defineAgent({
  name: "deploy",
  run: async (ctx) => {
    const { approved } = await ctx.requestInput({ prompt: "Deploy?" });
    return approved ? "deployed" : "left alone";
  },
});
const talk = defineAgent<{ prompt: string }, string>({
  name: "talk",
  run: async (ctx, { prompt }) => {
    let answer = `first ${prompt}`;
    for (;;) {
      ctx.reportProgress({ answer });
      answer = `then ${(await ctx.waitForSignal<{ prompt: string }>("next_input")).prompt}`;
    }
  },
});
const hold = defineAgent({ name: "hold", run: async (ctx) => ctx.waitForSignal("go") });
const fail = defineAgent({
  name: "fail",
  run: async () => {
    throw new Error("out of luck");
  },
});

const order = defineAgent({
  name: "order",
  input: z.object({ size: z.enum(["small", "large"]), count: z.number().int().default(1) }),
  run: async (_ctx, { size }) => `one ${size}`,
});
/** An input like that of Claude Code: fields that it does not know are refused. */
const coder = externalAgent(
  customAgent({ name: "coder", protocol: "lines", command: ["true"], resumes: false, folder: "/" }),
  { folder: "/", permissionModes: ["default"] },
);
const survey = defineAgent({
  name: "survey",
  input: z.object({ prompt: z.string(), project_dir: z.string() }),
  run: async (_ctx, { prompt, project_dir: folder }) => `${prompt} in ${folder}`,
});
const echo = defineAgent({ name: "echo", run: async (_ctx, input) => input });

beforeAll(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet({ config: { mcp: { deleteSessions: true, agentTools: true } } });
  await fleet.runner({ agents: [greet, deploy, talk, hold, fail, order, coder, survey, echo], graceMs: 0 });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await project.dispose();
  await fleet.close();
});

interface Connection {
  readonly token?: string;
  readonly mode?: "auto" | "legacy";
  readonly headers?: Readonly<Record<string, string>>;
  /** The person's answer to a question. */
  readonly answer?: Readonly<Record<string, string | boolean>>;
}

async function connect({ token, mode = "auto", headers = {}, answer }: Connection = {}): Promise<Client> {
  const client = clientOf(mode, answer);
  const authorization = `Bearer ${token ?? fleet.adminToken}`;
  const requestInit = { headers: { authorization, ...headers } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${fleet.url}/mcp`), { requestInit }));
  return client;
}

function clientOf(mode: "auto" | "legacy", answer: Connection["answer"]): Client {
  const capabilities = answer === undefined ? {} : { elicitation: {} };
  const client = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation: { mode } });
  if (answer !== undefined)
    client.setRequestHandler("elicitation/create", async () => ({
      action: "accept",
      content: { ...answer },
    }));
  clients.push(client);
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { content, isError, structuredContent } = await client.callTool({ name, arguments: args });
  const [first] = content as readonly { readonly text: string }[];
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
  return { isError: isError === true, text: first?.text ?? "", value: structuredContent as any };
}

const start = (agent: string, more: Record<string, unknown> = {}) => ({
  agent_name: agent,
  parameters: { prompt: "you" },
  ...more,
});

test.each(["auto", "legacy"] as const)(
  "a client of version %s starts an agent and gets its result",
  async (mode) => {
    const client = await connect({ mode });
    const names = (await client.listTools()).tools.map(({ name }) => name).toSorted();
    expect(names.filter((name) => !name.startsWith("agent_"))).toEqual(TOOLS);
    expect(names).toContain("agent_greet");
    expect((await call(client, "list_agent_blueprints")).value.agents).toContainEqual({
      name: "greet",
      versions: ["1"],
    });
    const prompt = `person of ${mode}`;
    const { value } = await call(client, "start_agent_session", start("greet", { parameters: { prompt } }));
    expect(value).toMatchObject({ status: "finished", result: `hello ${prompt}` });
    const again = await call(client, "get_agent_session_result", { session_id: value.session_id });
    expect(again.value).toMatchObject({ status: "finished", result: `hello ${prompt}` });
    expect((await call(client, "agent_greet", { prompt: "tool" })).value.result).toBe("hello tool");
  },
);

test("a repeated call with its key does the work once, and another key does it again", async () => {
  const client = await connect();
  const before = begun;
  const keyed = start("greet", { parameters: { prompt: "once" }, idempotency_key: "k-1" });
  const [first, second] = await Promise.all([1, 2].map(() => call(client, "start_agent_session", keyed)));
  expect(second!.value).toEqual(first!.value);
  expect(begun).toBe(before + 1);
  await call(client, "start_agent_session", { ...keyed, idempotency_key: "k-2" });
  expect(begun).toBe(before + 2);
});

test("an equal call finds the session while it works, and starts another one after its result was received", async () => {
  const client = await connect();
  const waiting = start("hold", { mode: "async_poll" });
  const first = (await call(client, "start_agent_session", waiting)).value.session_id as string;
  expect((await call(client, "start_agent_session", waiting)).value.session_id).toBe(first);
  const status = await call(client, "get_agent_session_status", { session_id: first });
  expect(status.value).toMatchObject({ session_id: first, status: "running" });
  const twice = start("greet", { parameters: { prompt: "twice" } });
  const [one, two] = [
    await call(client, "start_agent_session", twice),
    await call(client, "start_agent_session", twice),
  ];
  expect(two.value.session_id).not.toBe(one.value.session_id);
});

test.each([
  [true, "deployed"],
  [false, "left alone"],
])(
  "a question is put to the person at the client, and the answer %s reaches the session",
  async (approved, says) => {
    const client = await connect({ answer: { approved } });
    const { value } = await call(
      client,
      "start_agent_session",
      start("deploy", { idempotency_key: `ask-${says.length}` }),
    );
    expect(value).toMatchObject({ status: "finished", result: says });
  },
);

test("a client that cannot ask is told the question and how a person answers it", async () => {
  const client = await connect();
  const { value } = await call(
    client,
    "start_agent_session",
    start("deploy", { idempotency_key: "ask-nobody" }),
  );
  expect(value).toMatchObject({ status: "running", blocked: "it asks: Deploy?" });
  expect(value.next).toContain(`holdfast approve ${value.session_id}`);
});

test("a conversation that has answered is finished, and takes the next prompt", async () => {
  const client = await connect();
  const first = await call(client, "start_agent_session", start("talk"));
  expect(first.value).toMatchObject({ status: "finished", result: "first you" });
  const { session_id } = first.value;
  const next = { session_id, parameters: { prompt: "more" } };
  expect((await call(client, "resume_agent_session", next)).value).toMatchObject({ result: "then more" });
  const poll = await call(client, "resume_agent_session", { ...next, mode: "async_poll" });
  expect(poll.value).toEqual({ session_id, status: "running" });
});

test("a wrong input is refused with its places and the schema, and starts no session", async () => {
  const client = await connect();
  const listed = (await call(client, "list_agent_blueprints")).value.agents as readonly {
    readonly name: string;
  }[];
  expect(listed.find(({ name }) => name === "order")).toMatchObject({
    parameters_schema: { type: "object", required: ["size"] },
  });
  const wrong = { size: "huge", count: "two" };
  for (const mode of ["sync", "async_poll"]) {
    const refused = await call(client, "start_agent_session", start("order", { parameters: wrong, mode }));
    expect(refused.isError).toBe(true);
    for (const part of [
      '/input/size: must be one of "small", "large"',
      "/input/count: must be integer",
      '"required":["size"]',
    ])
      expect(refused.text).toContain(part);
  }
  const { sessions } = (await call(client, "list_agent_sessions")).value as {
    readonly sessions: readonly { readonly agent_name: string }[];
  };
  expect(sessions.filter(({ agent_name }) => agent_name === "order")).toEqual([]);
  const right = await call(client, "start_agent_session", start("order", { parameters: { size: "small" } }));
  expect(right.value).toMatchObject({ result: "one small" });
});

test("a project_dir reaches the agents that take one, and is refused for an agent that does not", async () => {
  const client = await connect();
  const folder = { project_dir: "/srv/project" };
  const executor = await call(client, "start_agent_session", start("echo", folder));
  expect(JSON.parse(executor.value.result)).toEqual({ parameters: { prompt: "you" }, ...folder });
  const declared = await call(client, "start_agent_session", start("survey", folder));
  expect(declared.value).toMatchObject({ result: "you in /srv/project" });
  const refused = await call(client, "start_agent_session", start("coder", folder));
  expect(refused.isError).toBe(true);
  expect(refused.text).toMatch(/agent "coder" takes no project_dir[^]*fix: leave project_dir out/);
  const { sessions } = (await call(client, "list_agent_sessions")).value as {
    readonly sessions: readonly { readonly agent_name: string }[];
  };
  expect(sessions.filter(({ agent_name }) => agent_name === "coder")).toEqual([]);
});

test("errors are results that say what to do", async () => {
  const client = await connect();
  const failed = await call(client, "start_agent_session", start("fail"));
  expect(failed).toMatchObject({ isError: true, value: { status: "finished" } });
  expect(failed.value.result).toContain("out of luck");
  expect((await call(client, "get_agent_session_status", { session_id: "none" })).value.status).toBe(
    "not_existent",
  );
  expect(await call(client, "get_agent_session_result", { session_id: "none" })).toMatchObject({
    isError: true,
  });
  const unnamed = await call(client, "start_agent_session", { parameters: {} });
  expect(unnamed.text).toMatch(
    /no agent is named\nexpected: one of coder, deploy, echo, fail, greet, hold, order, survey, talk/,
  );
  const callback = await call(client, "start_agent_session", start("greet", { mode: "async_callback" }));
  expect(callback.text).toContain("a callback needs the session that is called back");
  const huge = await call(
    client,
    "start_agent_session",
    start("greet", { parameters: { prompt: "x".repeat(100_001) } }),
  );
  expect(huge.isError).toBe(true);
});

test("a caller deletes its own ended sessions, and no session of another caller", async () => {
  // An admin sees the sessions of everybody.
  const [mine, other] = await Promise.all([
    connect({ token: await fleet.token("admin", "ops") }),
    connect({ token: await fleet.token("user", "bob") }),
  ]);
  const kept = (await call(other, "start_agent_session", start("greet"))).value.session_id as string;
  await call(mine, "start_agent_session", start("greet"));
  const live = (await call(mine, "start_agent_session", start("hold", { mode: "async_poll" }))).value
    .session_id;
  expect((await call(mine, "delete_all_agent_sessions")).value).toEqual({ deleted: 1, kept: 0 });
  expect((await call(mine, "get_agent_session_status", { session_id: live })).value.status).toBe("running");
  expect((await call(other, "get_agent_session_status", { session_id: kept })).value.status).toBe("finished");
  const { session_id: hidden } = (await call(mine, "start_agent_session", start("greet"))).value;
  expect((await call(other, "get_agent_session_status", { session_id: hidden })).value.status).toBe(
    "not_existent",
  );
});

test("a request without a token, with a runner's token or with demands that are no labels is refused", async () => {
  const send = (headers: Record<string, string>) =>
    fetch(`${fleet.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
    });
  expect((await send({})).status).toBe(401);
  const registration = await fleet.token("registration", "no");
  expect((await send({ authorization: `Bearer ${registration}` })).status).toBe(403);
  const admin = { authorization: `Bearer ${fleet.adminToken}` };
  expect((await send({ ...admin, origin: "https://example.com" })).status).toBe(403);
  expect((await send({ ...admin, "x-additional-demands": "[1]" })).status).toBe(422);
  expect((await send(admin)).status).toBe(200);
});

test(
  "holdfast mcp serves the same tools over standard input and output, and ends with its client",
  ofCampaign,
  async () => {
    const client = clientOf("auto", { approved: true });
    const env = { HOME: project.folder, HOLDFAST_URL: fleet.url, HOLDFAST_TOKEN: fleet.adminToken };
    const transport = new StdioClientTransport({ command: process.execPath, args: [LAUNCHER, "mcp"], env });
    await client.connect(transport);
    expect((await client.listTools()).tools.map(({ name }) => name).toSorted()).toEqual(TOOLS);
    const { value } = await call(
      client,
      "start_agent_session",
      start("deploy", { idempotency_key: "over-stdio" }),
    );
    expect(value).toMatchObject({ status: "finished", result: "deployed" });
    const refused = await call(client, "delete_all_agent_sessions");
    expect(refused.text).toContain("deleting sessions is not enabled here");
    const { pid } = transport;
    await client.close();
    expect(() => process.kill(pid!, 0)).toThrow("ESRCH");
    // The refusal names the option that enables it.
    expect(refused.text).toContain("holdfast mcp --allow-delete");
    const allowed = clientOf("auto", undefined);
    const args = [LAUNCHER, "mcp", "--allow-delete"];
    await allowed.connect(new StdioClientTransport({ command: process.execPath, args, env }));
    expect((await call(allowed, "delete_all_agent_sessions")).isError).toBe(false);
    await allowed.close();
  },
);

// ---- tasks of the extension ------------------------------------------------------------------------------------------

const TASKS = "io.modelcontextprotocol/tasks";
const anyResult = z.looseObject({ resultType: z.string().optional() });

/** A client that knows tasks, over HTTP or over the standard streams of `holdfast mcp`. The SDK decodes no result of type "task". */
async function taskClient(over: "http" | "stdio") {
  const created: Record<string, unknown>[] = [];
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { elicitation: {}, extensions: { [TASKS]: {} } }, versionNegotiation: { mode: "auto" } },
  );
  clients.push(client);
  const env = { HOME: project.folder, HOLDFAST_URL: fleet.url, HOLDFAST_TOKEN: fleet.adminToken };
  const requestInit = { headers: { authorization: `Bearer ${fleet.adminToken}` } };
  const transport =
    over === "http"
      ? new StreamableHTTPClientTransport(new URL(`${fleet.url}/mcp`), { requestInit })
      : new StdioClientTransport({ command: process.execPath, args: [LAUNCHER, "mcp"], env });
  await client.connect(transport);
  const deliver = transport.onmessage!;
  const receive: typeof deliver = (message) => {
    if (!("result" in message) || message.result["resultType"] !== "task") return deliver(message);
    created.push({ ...message.result });
    return deliver({ ...message, result: { resultType: "complete", content: [] } });
  };
  Object.assign(transport, { onmessage: receive });
  const ask = (method: string, params: Record<string, unknown>) =>
    client.request({ method, params }, anyResult) as Promise<Record<string, any>>; // oxlint-disable-line typescript/no-explicit-any -- results of any method.
  const begin = async (agent: string, idempotency_key: string): Promise<string> => {
    await client.callTool({ name: "start_agent_session", arguments: start(agent, { idempotency_key }) });
    return created.at(-1)?.["taskId"] as string;
  };
  const get = (taskId: string) => ask("tasks/get", { taskId });
  return { client, created, ask, begin, get };
}

test.each(sampled(["http", "stdio"] as const))(
  "over %s a long call is a task that is polled, asks its question by a signed key, and has the result of the call",
  async (over) => {
    const { client, ask, begin, get, created } = await taskClient(over);
    expect(client.getServerCapabilities()?.extensions).toHaveProperty([TASKS]);
    const taskId = await begin("deploy", `task-${over}`);
    expect(created.at(-1)).toMatchObject({ status: "input_required", ttlMs: null });
    expect(created.at(-1)).not.toHaveProperty("inputRequests");
    const asked = await get(taskId);
    expect(asked).toMatchObject({ taskId, status: "input_required" });
    const [[key, request]] = Object.entries(asked["inputRequests"]) as [[string, { params: object }]];
    expect(request.params).toMatchObject({ message: expect.stringContaining("Deploy?") });
    const yes = { action: "accept", content: { approved: true } };
    await ask("tasks/update", { taskId, inputResponses: { deploy: yes, ["0".repeat(32)]: yes } });
    expect(await get(taskId)).toMatchObject({ status: "input_required", inputRequests: { [key]: request } });
    await ask("tasks/update", { taskId, inputResponses: { [key]: yes } });
    await ask("tasks/update", { taskId, inputResponses: { [key]: yes } });
    await expect.poll(async () => (await get(taskId))["status"], { timeout: 30_000 }).toBe("completed");
    expect((await get(taskId))["result"]).toMatchObject({
      resultType: "complete",
      structuredContent: { session_id: taskId, status: "finished", result: "deployed" },
    });
  },
);

test("a task is cancelled with its session, and an unknown one is an error", ofCampaign, async () => {
  const { ask, begin, get, created } = await taskClient("http");
  const taskId = await begin("hold", "task-cancel");
  expect(created.at(-1)).toMatchObject({ status: "working" });
  expect(await begin("hold", "task-cancel")).toBe(taskId);
  await ask("tasks/cancel", { taskId });
  await expect.poll(async () => (await get(taskId))["status"], { timeout: 30_000 }).toBe("cancelled");
  await ask("tasks/cancel", { taskId });
  await expect(get("none")).rejects.toThrow("there is no task none");
});

test("a question is answered by the key of the caller to whom it was given", async () => {
  const other = await taskClient("http");
  const taskId = await other.begin("deploy", "task-keys");
  const keyOf = async (token: string): Promise<string> => {
    const client = new Client(
      { name: "test", version: "1" },
      {
        capabilities: { elicitation: {}, extensions: { [TASKS]: {} } },
        versionNegotiation: { mode: "auto" },
      },
    );
    clients.push(client);
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${fleet.url}/mcp`), { requestInit }));
    const task = (await client.request({ method: "tasks/get", params: { taskId } }, anyResult)) as {
      readonly inputRequests?: object;
    };
    return Object.keys(task.inputRequests ?? {})[0] ?? "";
  };
  const ops = await keyOf(await fleet.token("admin", "ops-2"));
  expect(ops).not.toBe("");
  expect(ops).not.toBe(await keyOf(fleet.adminToken));
  const yes = { action: "accept", content: { approved: true } };
  await other.ask("tasks/update", { taskId, inputResponses: { [ops]: yes } });
  expect(await other.get(taskId)).toMatchObject({ status: "input_required" });
});
