// Agents of a fleet over A2A, called by the official client over HTTP and by our own adapter.

import { randomUUID } from "node:crypto";
import { Role, TaskState, type Message, type Part, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import { until } from "@holdfast/testkit/test-runtime";
import { a2aAgent, externalAgent } from "@holdfast/programs";
import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
let begun = 0;

const greet = defineAgent<{ prompt: string }, string>({
  name: "greet",
  run: async (ctx, { prompt }) => {
    await ctx.run("begin", async () => void begun++);
    ctx.appendEntry({ role: "assistant", content: { text: "I greet.", toolCalls: [] } });
    return `hello ${prompt}`;
  },
});
const deploy = defineAgent({
  name: "deploy",
  run: async (ctx) => {
    const { approved } = await ctx.requestInput({ prompt: "Deploy?" });
    const { approved: again } = await ctx.requestInput({ prompt: "Really?" });
    return approved && again ? "deployed" : "left alone";
  },
});
const talk = defineAgent<{ prompt: string }, string>({
  name: "talk",
  run: async (ctx, { prompt }) => {
    let answer = `first ${prompt}`;
    for (;;) {
      ctx.reportProgress({ answer });
      answer = `then ${await ctx.waitForSignal<string>("next_input")}`;
    }
  },
});
const hold = defineAgent({ name: "hold", run: async (ctx) => ({ went: await ctx.waitForSignal("go") }) });
const fail = defineAgent({
  name: "fail",
  run: async () => {
    throw new Error("out of luck");
  },
});

beforeAll(async () => {
  fleet = await openFleet();
  await fleet.runner({ agents: [greet, deploy, talk, hold, fail], graceMs: 0 });
});
afterAll(() => fleet.close());

async function connect(agent: string, token = fleet.adminToken): Promise<Client> {
  const asCaller: typeof fetch = (url, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    return fetch(url, { ...init, headers });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl: asCaller })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: asCaller }),
  });
  return factory.createFromUrl(`${fleet.url}/a2a/${agent}/`);
}

const text = (value: string): Part => ({
  content: { $case: "text", value },
  metadata: undefined,
  filename: "",
  mediaType: "",
});
const message = (said: string | Part, of: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  contextId: "",
  taskId: "",
  role: Role.ROLE_USER,
  parts: [typeof said === "string" ? text(said) : said],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...of,
});
const request = (sent: Message, returnImmediately = false) => ({
  tenant: "",
  message: sent,
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
  metadata: undefined,
});
const send = async (client: Client, sent: Message, returnImmediately = false): Promise<Task> =>
  (await client.sendMessage(request(sent, returnImmediately))) as Task;
const get = (client: Client, id: string) => client.getTask({ tenant: "", id });
const cancel = (client: Client, id: string) => client.cancelTask({ tenant: "", id, metadata: undefined });
const saidIn = (parts: readonly Part[] = []): string =>
  parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("\n");
const standOf = ({ status, artifacts }: Pick<Task, "status" | "artifacts">) => [
  TaskState[status!.state],
  saidIn(status?.message?.parts),
  saidIn(artifacts[0]?.parts),
];
const eventOf = ({ payload }: StreamResponse): readonly string[] =>
  payload?.$case === "task"
    ? ["task", ...standOf(payload.value)]
    : payload?.$case === "statusUpdate"
      ? ["status", ...standOf({ status: payload.value.status, artifacts: [] })]
      : payload?.$case === "artifactUpdate"
        ? ["artifact", saidIn(payload.value.artifact?.parts)]
        : ["other"];
const sessionOf = async (id: string) => (await fleet.storage.reader.session(id))!;
const call = async (body: unknown, headers: Record<string, string> = {}, path = "/a2a/greet/") => {
  const response = await fetch(`${fleet.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${fleet.adminToken}`,
      "content-type": "application/json",
      "a2a-version": "1.0",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
};
const rpc = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: 1, method, params });

test("a message starts a session, and one that is sent again starts no second one", async () => {
  const client = await connect("greet");
  const first = message("you");
  begun = 0;
  const [one, two] = await Promise.all([send(client, first), send(client, first)]);
  expect(standOf(one)).toEqual(["TASK_STATE_COMPLETED", "", "hello you"]);
  expect(two.id).toBe(one.id);
  expect((await send(client, first)).id).toBe(one.id);
  expect(begun).toBe(1);
  expect((await sessionOf(one.id)).agent.name).toBe("greet");
  expect(one.history.map(({ parts }) => saidIn(parts))).toEqual(["I greet."]);
  await expect(send(client, { ...first, parts: [text("me")] })).rejects.toThrow(
    "another message was sent under this id",
  );
  // The next message of the context is a task of its own in it.
  const next = await send(client, message("two", { contextId: one.contextId }));
  expect([next.contextId, next.id === one.id]).toEqual([one.contextId, false]);
  const listed = await client.listTasks({
    tenant: "",
    contextId: one.contextId,
    status: TaskState.TASK_STATE_UNSPECIFIED,
    pageToken: "",
    statusTimestampAfter: undefined,
  });
  expect(listed.tasks.map(({ id }) => id).toSorted()).toEqual([one.id, next.id].toSorted());
  await expect(send(client, message("again", { taskId: one.id }))).rejects.toThrow("has ended");
});

test("a question is answered once by a message, which answers no later question when it is sent again", async () => {
  const client = await connect("deploy");
  const asked = await send(client, message("now"));
  expect(standOf(asked).slice(0, 2)).toEqual(["TASK_STATE_INPUT_REQUIRED", "Deploy?"]);
  await expect(send(client, message("perhaps", { taskId: asked.id }))).rejects.toThrow("asks for yes or no");
  const yes = message("yes", { taskId: asked.id, contextId: asked.contextId });
  const second = await send(client, yes);
  expect(standOf(second)[1]).toBe("Really?");
  expect(standOf(await send(client, yes))[1]).toBe("Really?");
  await expect(send(client, message("yes", { taskId: asked.id, contextId: "other" }))).rejects.toThrow(
    "the task is in another context",
  );
  const named = { question: second.status!.message!.parts[1]!, answer: { approved: false } };
  const { question } = (named.question.content as { value: { question: string } }).value;
  const part: Part = { ...text(""), content: { $case: "data", value: { question, answer: named.answer } } };
  const done = await send(client, message(part, { taskId: asked.id }));
  expect(standOf(done)).toEqual(["TASK_STATE_COMPLETED", "", "left alone"]);
});

test("a conversation waits for its next message with the answer of its turn", async () => {
  const client = await connect("talk");
  const first = await send(client, message("one"));
  expect(standOf(first).slice(0, 2)).toEqual(["TASK_STATE_INPUT_REQUIRED", "first one"]);
  const next = message("two", { taskId: first.id });
  expect(standOf(await send(client, next))[1]).toBe("then two");
  expect(standOf(await send(client, next))[1]).toBe("then two");
  expect(standOf(await cancel(client, first.id))[0]).toBe("TASK_STATE_CANCELED");
  expect(standOf(await cancel(client, first.id))[0]).toBe("TASK_STATE_CANCELED");
});

test("a stream begins with the task and ends with its result, and says what the agent says", async () => {
  const client = await connect("greet");
  const events: (readonly string[])[] = [];
  for await (const event of client.sendMessageStream(request(message("you")))) events.push(eventOf(event));
  expect(events[0]![0]).toBe("task");
  expect(events.filter(([type]) => type === "artifact")).toEqual([["artifact", "hello you"]]);
  expect(events.some(([, , said]) => said === "I greet.")).toBe(true);
  expect(events.at(-1)).toEqual(["status", "TASK_STATE_COMPLETED", "", ""]);
});

test("a client that subscribes again after a restart gets the result once", async () => {
  const client = await connect("hold");
  const { id } = await send(client, message("wait"), true);
  const cut: (readonly string[])[] = [];
  const first = (async () => {
    for await (const event of client.resubscribeTask({ tenant: "", id })) cut.push(eventOf(event));
  })().catch(() => {});
  await until(() => cut.length > 0, "the stream begins");
  await fleet.restart();
  await first;
  const events: (readonly string[])[] = [];
  const second = (async () => {
    for await (const event of client.resubscribeTask({ tenant: "", id })) {
      events.push(eventOf(event));
      if (events.length === 1) await fleet.remote.commit([signalOf(id)], Date.now());
    }
  })();
  await second;
  expect([...cut, ...events].filter(([type]) => type === "artifact")).toEqual([["artifact", '{"went":1}']]);
  expect(events.at(-1)![1]).toBe("TASK_STATE_COMPLETED");
  await expect(client.resubscribeTask({ tenant: "", id }).next()).rejects.toThrow("has ended");
  await expect(cancel(client, id)).rejects.toThrow("has ended");
});

const signalOf = (sessionId: string) =>
  ({ type: "send_signal", sessionId, signalId: `sig-${sessionId}`, name: "go", payload: "1" }) as const;

test("a task of another user, of another agent, or of nobody is not found", async () => {
  const [ada, bob] = await Promise.all([fleet.token("user", "ada"), fleet.token("user", "bob")]);
  const own = await connect("hold", ada);
  const { id } = await send(own, message("wait"), true);
  for (const client of [await connect("hold", bob), await connect("greet", ada)])
    for (const act of [get, cancel])
      await expect(act(client, id)).rejects.toMatchObject({ envelopeCode: -32_001 });
  await expect(get(own, "nothing")).rejects.toMatchObject({ envelopeCode: -32_001 });
  expect((await cancel(own, id)).id).toBe(id);
  const card = await fetch(`${fleet.url}/a2a/hold/.well-known/agent-card.json`);
  expect(card.status).toBe(401);
});

test("cards are below each agent, and one for all is only where there is one agent", async () => {
  const headers = { authorization: `Bearer ${fleet.adminToken}` };
  const card = await (await fetch(`${fleet.url}/a2a/greet/.well-known/agent-card.json`, { headers })).json();
  expect(card).toMatchObject({
    name: "greet",
    supportedInterfaces: [
      { url: `${fleet.url}/a2a/greet/`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false },
  });
  for (const path of ["/.well-known/agent-card.json", "/a2a/.well-known/agent-card.json"]) {
    const response = await fetch(`${fleet.url}${path}`, { headers });
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining("/a2a/greet/")]);
  }
  expect((await fetch(`${fleet.url}/a2a/none/.well-known/agent-card.json`, { headers })).status).toBe(404);
  expect((await fetch(`${fleet.url}/a2a/greet/`, { headers })).status).toBe(405);
  expect((await fetch(`${fleet.url}/a2a/greet/v1/other`, { headers })).status).toBe(404);
});

test("a failed agent is a failed task with its reason", async () => {
  expect(standOf(await send(await connect("fail"), message("now")))).toEqual([
    "TASK_STATE_FAILED",
    expect.stringContaining("out of luck"),
    "",
  ]);
});

test.each([
  ["no JSON", "{", {}, -32_700],
  ["another protocol", { method: "GetTask" }, {}, -32_600],
  ["a batch", [rpc("GetTask", { id: "a" })], {}, -32_600],
  ["an unknown method", rpc("message/send", {}), {}, -32_601],
  ["no parameters", rpc("GetTask", undefined), {}, -32_602],
  ["parameters that are a list", rpc("GetTask", []), {}, -32_602],
  ["no message", rpc("SendMessage", {}), {}, -32_602],
  ["a part that is nothing", rpc("SendMessage", { message: raw({ parts: [null] }) }), {}, -32_602],
  ["no parts", rpc("SendMessage", { message: raw({ parts: [] }) }), {}, -32_602],
  ["a message of an agent", rpc("SendMessage", { message: raw({ role: "ROLE_AGENT" }) }), {}, -32_602],
  ["an unusable context", rpc("SendMessage", { message: raw({ contextId: "a b" }) }), {}, -32_602],
  ["a file", rpc("SendMessage", { message: raw({ parts: [{ url: "https://a.example" }] }) }), {}, -32_005],
  ["a call back", rpc("SendMessage", { message: raw({}), configuration: PUSH() }), {}, -32_003],
  ["push notifications", rpc("CreateTaskPushNotificationConfig", { taskId: "a" }), {}, -32_003],
  ["the extended card", rpc("GetExtendedAgentCard", {}), {}, -32_004],
  ["no version", rpc("GetTask", { id: "a" }), { "a2a-version": "" }, -32_009],
  ["an old version", rpc("GetTask", { id: "a" }), { "a2a-version": "0.3" }, -32_009],
  ["an unknown task", rpc("SubscribeToTask", { id: "a" }), {}, -32_001],
  ["a time that is none", rpc("ListTasks", { statusTimestampAfter: "yesterday" }), {}, -32_602],
  ["a negative history", rpc("GetTask", { id: "a", historyLength: -1 }), {}, -32_602],
])("a bad request is answered by the code of the protocol: %s", async (_name, body, headers, code) => {
  const { body: answer } = await call(body, headers);
  expect(answer.error?.code, JSON.stringify(answer)).toBe(code);
  expect(JSON.stringify(answer)).not.toMatch(/\bat .*\.(ts|js):\d+|TypeError|Cannot read/);
});

test("an agent that nobody offers starts nothing, and lists may be empty", async () => {
  const { body } = await call(rpc("SendMessage", { message: raw({}) }), {}, "/a2a/none/");
  expect(body.error).toMatchObject({ code: -32_004, message: expect.stringContaining("no runner offers") });
  expect((await call(rpc("ListTasks", { pageSize: 0 }), {}, "/a2a/none/")).body.result).toEqual({
    tasks: [],
    nextPageToken: "",
    pageSize: 50,
    totalSize: 0,
  });
});

test("our own adapter talks to our own server, over its question to its result", async () => {
  const remote = a2aAgent({
    name: "remote",
    url: `${fleet.url}/a2a/greet`,
    token: fleet.adminToken,
    pollMs: 50,
  });
  const agent = externalAgent(remote, { folder: process.cwd(), permissionModes: ["default"] });
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [agent] });
  const session = await runtime.start(agent, { text: "from afar" });
  expect(JSON.stringify(await session.result())).toContain("hello from afar");
  await runtime.close();
});

function raw(of: object): object {
  return { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "you" }], ...of };
}

function PUSH(): object {
  return { taskPushNotificationConfig: { url: "https://a.example" } };
}
