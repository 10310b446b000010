// Questions of MCP servers during a call, as durable questions of the session: forms, addresses, both
// versions of the protocol, and limits.

import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { startMcpHttpServer, type McpHttpServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { type McpServer, McpServers, contentOf } from "@holdfast/mcp";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { mcpCapability } from "./mcp-capability.ts";

const PROGRAM = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
let folder: string;
let runtime: Runtime;
let servers: McpServers;
let storage: MemoryStorage;
let http: McpHttpServer | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-ask-")));
  storage = new MemoryStorage();
});

afterEach(async () => {
  await runtime.close();
  await servers.close();
  await http?.close();
  http = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const log = (): string => join(folder, "log");
const logged = (): readonly string[] =>
  existsSync(log()) ? readFileSync(log(), "utf8").trim().split("\n") : [];
const program = (): McpServer => ({
  type: "stdio",
  command: process.execPath,
  args: [PROGRAM, "good", log()],
  env: {},
});

/** A process with a loop; a second call is the next process of the same sessions. */
function open(tool: string, server: McpServer) {
  servers = new McpServers({ variable: () => undefined });
  const model = fakeModel((_request, number) =>
    number === 0 ? { calls: [[`mcp__test__${tool}`, {}]] } : { text: "Done." },
  );
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: folder,
    capabilities: [mcpCapability(servers)],
  });
  const agent = loop.agent({
    ...RECORD,
    mcpServers: { test: server },
    permissions: [{ decision: "allow", tool: "mcp__*", pattern: null }],
  });
  runtime = createRuntime({ storage, agents: [agent] });
  const text = (): string =>
    (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
      role === "tool" ? [(content as { text: string }).text] : [],
    )[0] ?? "";
  return { agent, text };
}

/** Waits for an open question with this text. */
async function asked(text: string): Promise<void> {
  const prompt = async (): Promise<string> => {
    const session = await storage.reader.session("s");
    return session?.waits.find((wait) => wait.type === "input")?.prompt ?? "";
  };
  await expect.poll(prompt, { timeout: 30_000 }).toContain(text);
}

test(
  "a form is asked for, a wrong answer is asked for again, and the call gets the fields",
  ofCampaign,
  async () => {
    const { agent, text } = open("ask", program());
    const handle = await runtime.start(agent, "hi", { sessionId: "s" });
    await asked(
      "The MCP server test asks during ask: Which size? Fields: size (small or large), count (integer, optional).",
    );
    await runtime.answer("s", { size: "huge" });
    await asked("does not fit: the field size needs one of small, large");
    await runtime.answer("s", { size: "large" });
    await handle.result();
    expect(text()).toBe("accept large 1");
    expect(logged().filter((line) => line === "call ask")).toHaveLength(1);
  },
);

test("a person who says no declines", ofCampaign, async () => {
  const { agent, text } = open("ask", program());
  const handle = await runtime.start(agent, "hi", { sessionId: "s" });
  await asked("Which size?");
  await runtime.answer("s", { approved: false });
  await handle.result();
  expect(text()).toBe("decline undefined undefined");
});

test("an address is shown and not opened", async () => {
  const { agent, text } = open("ask_address", program());
  const handle = await runtime.start(agent, "hi", { sessionId: "s" });
  await asked("Open https://pay.example/1 if you trust it");
  await runtime.answer("s", { approved: true });
  await handle.result();
  expect(text()).toBe("accept");
});

test("a server that asks without end is given up, and the call is uncertain", ofCampaign, async () => {
  const { agent, text } = open("ask_forever", program());
  const handle = await runtime.start(agent, "hi", { sessionId: "s" });
  for (let at = 1; at <= 10; at++) {
    await asked(`Question ${at}?`);
    await runtime.answer("s", { approved: false });
  }
  await handle.result();
  expect(text()).toMatch(/asked more than 10 questions.*nobody knows whether it took effect/);
});

test.each(
  sampled([
    ["ask", /was cut off while it waited for an answer. .*nobody knows whether it took effect/, 1, true],
    ["ask_reading", /^accept small 1$/, 2, false],
  ]),
)(
  "an answer after a crash continues %s as its effect allows, and a person is told before",
  async (tool, message, count, isSaid) => {
    const first = open(tool, program());
    await runtime.start(first.agent, "hi", { sessionId: "s" });
    await asked("Which size?");
    const waits = (await storage.reader.session("s"))?.waits ?? [];
    expect(
      JSON.stringify(waits).includes("A later answer does not reach it: the call then counts as uncertain."),
    ).toBe(isSaid);
    await runtime.close();
    await servers.close();
    const second = open(tool, program());
    await runtime.answer("s", { size: "small" });
    await (await runtime.resume("s")).result();
    expect(second.text()).toMatch(message);
    expect(logged().filter((line) => line === `call ${tool}`)).toHaveLength(count);
  },
);

test("a server of 2026-07-28 gets the answers with its note, also from another process", async () => {
  http = await startMcpHttpServer({
    call: ({ params: { name, inputResponses, requestState } }) => {
      if (name !== "ask") return undefined;
      const said = JSON.stringify([inputResponses, requestState]);
      if (inputResponses !== undefined)
        return { result: { resultType: "complete", content: [{ type: "text", text: said }] } };
      const params = {
        message: "Which size?",
        requestedSchema: { type: "object", properties: { size: { type: "string" } }, required: ["size"] },
      };
      const inputRequests = { size: { method: "elicitation/create", params } };
      return { result: { resultType: "input_required", inputRequests, requestState: "note-1" } };
    },
  });
  const server: McpServer = { type: "http", url: http.url, headers: {} };
  const first = open("ask", server);
  await runtime.start(first.agent, "hi", { sessionId: "s" });
  await asked("Which size?");
  await runtime.close();
  await servers.close();
  const second = open("ask", server);
  await runtime.answer("s", { size: "small" });
  await (await runtime.resume("s")).result();
  expect(second.text()).toBe('[{"size":{"action":"accept","content":{"size":"small"}}},"note-1"]');
  expect(http.log.filter((line) => line === "tools/call ask")).toHaveLength(2);
});

test.each([
  [
    "another request than a question",
    { method: "sampling/createMessage", params: {} },
    /Invalid|does not offer/,
  ],
  [
    "an address that is no web page",
    { method: "elicitation/create", params: { mode: "url", message: "x", url: "file:///etc/passwd" } },
    /no address of the web/,
  ],
])("a server of 2026-07-28 that asks for %s gets a clear refusal", async (_what, request, message) => {
  const result = { resultType: "input_required", inputRequests: { one: request } };
  http = await startMcpHttpServer({ call: ({ params }) => (params.name === "ask" ? { result } : undefined) });
  const { agent, text } = open("ask", { type: "http", url: http.url, headers: {} });
  await (await runtime.start(agent, "hi", { sessionId: "s" })).result();
  expect(text()).toMatch(message);
});

test.each([
  ["no object", "text", "the answer is no object with the fields"],
  ["another field", { other: 1 }, "there is no field other"],
  ["a missing field", {}, "the field name is missing"],
  ["a text that is too short", { name: "" }, "the field name is too short or too long"],
  ["a number in the place of a text", { name: 1 }, "the field name needs a text"],
  ["a broken number", { name: "a", size: 1.5 }, "the field size needs a integer"],
  ["a number that is too large", { name: "a", size: 11 }, "the field size is not within its bounds"],
  ["a text in the place of a boolean", { name: "a", isBig: "yes" }, "the field isBig needs true or false"],
  ["another choice", { name: "a", colours: ["pink"] }, "the field colours needs a list of red, blue"],
  ["all fields", { name: "a", size: 1, isBig: true, colours: ["red"] }, undefined],
])("an answer with %s is judged by the form", (_what, given, problem) => {
  const schema = {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1 },
      size: { type: "integer", minimum: 1, maximum: 10 },
      isBig: { type: "boolean" },
      colours: { type: "array", items: { type: "string", enum: ["red", "blue"] } },
    },
    required: ["name"],
  };
  expect(contentOf(schema, given)).toEqual(problem ?? given);
});
