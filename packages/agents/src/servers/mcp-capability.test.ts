// MCP servers in sessions, with a real server program: names, environment, the end of a server, and each kind
// of misbehaviour.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import type { AgentPlaces } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { type McpServer, McpServers } from "@holdfast/mcp";
import { trustFolder } from "../files/trust-project.ts";
import { writeEnvironment } from "../environments/environment-file.ts";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { mcpCapability } from "./mcp-capability.ts";
import { variablesOfServers, withMcpServers } from "./session-servers.ts";

const PROGRAM = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
const ALLOW = [{ decision: "allow", tool: "mcp__*", pattern: null }] as const;
let folder: string;
let log = "";
let places: AgentPlaces;
let runtime: Runtime | undefined;
let servers: McpServers;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-")));
  mkdirSync(join(folder, "work"));
  log = join(folder, "log");
  places = {
    project: join(folder, "work"),
    home: folder,
    env: { TEST_TOKEN: "canary-7731" },
    trustFile: join(folder, "data/trusted-folders.json"),
  };
  servers = new McpServers({ variable: (name) => places.env[name] });
});

afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  await servers.close();
  rmSync(folder, { recursive: true, force: true });
});

function program(mode = "good", change: object = {}): McpServer {
  return { type: "stdio", command: process.execPath, args: [PROGRAM, mode, log], env: {}, ...change };
}

async function run(
  server: McpServer,
  calls: readonly string[],
  change: Partial<AgentRecord> = {},
  input: unknown = "hi",
) {
  const model = fakeModel((_request, number) => {
    const name = calls[number];
    return name === undefined
      ? { text: "Done." }
      : { calls: [[`mcp__test__${name}`, { text: "you", at: number }]] };
  });
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: places.project,
    capabilities: [mcpCapability(servers)],
  });
  runtime = createRuntime({ storage: new MemoryStorage() });
  const record = { ...RECORD, mcpServers: { test: server }, permissions: ALLOW, ...change };
  await (await runtime.start(loop.agent(record), input)).result();
  const results = (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [content as { text: string; isError: boolean }] : [],
  );
  return { requests: model.requests, results };
}

const logged = (): readonly string[] => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
const starts = (): number => logged().filter((line) => line.startsWith("start")).length;

test(
  "tools appear by server and name, and one process of a session answers its calls",
  ofCampaign,
  async () => {
    const { requests, results } = await run(program("greeting"), ["greet", "greet"]);
    expect(requests[0]?.tools?.map(({ name }) => name)).toContain("mcp__test__greet");
    expect(requests[0]?.system).toContain("Greet first.");
    expect(results.map(({ text }) => text)).toEqual(["Hello you, no token.", "Hello you, no token."]);
    expect(starts()).toBe(1);
  },
);

test("a server ends with its session, and each session has its own", ofCampaign, async () => {
  await run(program(), ["greet"]);
  await runtime?.close();
  expect(logged()).toContain("end");
  const again = await run(program(), ["greet"]);
  expect(again.results[0]?.isError).toBe(false);
  expect(starts()).toBe(2);
});

test("a server that fails again and again is not started without end", ofCampaign, async () => {
  const { results } = await run(
    program(),
    Array.from({ length: 7 }, () => "die"),
  );
  expect(results.at(-1)?.text).toMatch(
    /MCP server test failed 5 times and is not started again for 10 minutes/,
  );
  expect(starts()).toBe(5);
});

test("enabled tools and denied tools limit the offer", async () => {
  const { requests } = await run(program("good", { enabledTools: ["greet", "count", "missing"] }), [], {
    deniedTools: ["mcp__test__count"],
  });
  const names = requests[0]?.tools?.map(({ name }) => name).filter((name) => name.startsWith("mcp__"));
  expect(names).toEqual(["mcp__test__greet"]);
  expect(requests[0]?.system).toContain("missing (the server has no such tool)");
});

test("X7: a server gets declared variables alone, and a value is not recorded", async () => {
  process.env["HOLDFAST_MCP_CANARY"] = "1";
  const { results } = await run(program("good", { env: { TEST_TOKEN: "${TEST_TOKEN}" } }), [
    "environment",
    "greet",
  ]);
  delete process.env["HOLDFAST_MCP_CANARY"];
  expect(results[0]?.text).toContain("TEST_TOKEN");
  expect(results[0]?.text).not.toContain("HOLDFAST_MCP_CANARY");
  expect(JSON.stringify(results)).not.toContain("canary-7731");
});

test("values of environments, of the call and of secrets reach the servers that name them, and no other", async () => {
  const environments = join(folder, "environments.json");
  writeEnvironment(environments, "base", {
    TEST_TOKEN: { value: "of-the-base" },
    OTHER_KEY: { secret: true },
  });
  const env = { TEST_TOKEN: "${TEST_TOKEN}" };
  const mcpServers = {
    plain: program("good", { env }),
    secret: program("good", { env: { TEST_TOKEN: "${env.OTHER_KEY}" } }),
    none: program(),
  };
  const agent = { ...RECORD, mcpServers, permissions: ALLOW, secrets: ["OTHER_KEY"] };
  const environment = { values: { TEST_TOKEN: "of-the-call" } };
  const model = fakeModel((_request, number) => {
    const name = Object.keys(mcpServers)[number];
    return name === undefined ? { text: "Done." } : { calls: [[`mcp__${name}__greet`, { text: name }]] };
  });
  const storage = new MemoryStorage();
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: places.project,
    capabilities: [mcpCapability(servers, { environments, secrets: ["OTHER_KEY"] })],
  });
  runtime = createRuntime({ storage, secrets: new Map([["OTHER_KEY", "canary-5512-key"]]) });
  const handle = await runtime.start(loop.agent(agent), "hi", { environment });
  await handle.result();
  const results = (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [(content as { text: string }).text] : [],
  );
  expect(results).toEqual(["Hello plain, of-the-call.", "Hello secret, [secret].", "Hello none, no token."]);
  const records = JSON.stringify(await storage.reader.journal(handle.sessionId, 0, 1_000));
  expect(records).toContain("of-the-call");
  expect(records).not.toContain("canary-5512-key");
});

test("a call whose answer is lost is sent once and reported as uncertain", ofCampaign, async () => {
  const { results } = await run(program(), ["die", "greet"]);
  expect(results[0]).toMatchObject({ isError: true });
  expect(results[0]?.text).toMatch(
    /MCP server test did not answer the call of die: .*7.*nobody knows whether/,
  );
  expect(results[1]?.text).toBe("Hello you, no token.");
  expect(logged().filter((line) => line === "call die")).toHaveLength(1);
  expect(starts()).toBe(2);
});

test("a reading call whose answer is lost is sent again to a new process", ofCampaign, async () => {
  const { results } = await run(program(), ["die_reading"]);
  expect(results[0]?.isError).toBe(true);
  expect(logged().filter((line) => line === "call die_reading").length).toBeGreaterThan(1);
});

test(
  "a call that hangs ends by its time-out, with the server, and is reported as uncertain",
  ofCampaign,
  async () => {
    servers = new McpServers({ variable: () => undefined, callMs: 200 });
    const { results } = await run(program(), ["wait", "greet"]);
    expect(results[0]?.text).toMatch(
      /did not answer the call of wait: it was silent for too long.*nobody knows/,
    );
    expect(results[1]?.text).toBe("Hello you, no token.");
    expect(starts()).toBe(2);
  },
);

test("a result that is too large is cut with a note", async () => {
  const { results } = await run(program(), ["large"]);
  expect(results[0]?.text).toMatch(/^beginx+\n\[\d+ characters left out; read_result/);
  expect(results[0]?.text.length).toBeLessThan(30_000);
});

test("a message without end ends the server with an error", ofCampaign, async () => {
  const { results } = await run(program(), ["flood", "greet"]);
  expect(results[0]?.text).toContain("it sent a message of more than");
  expect(results[1]?.text).toBe("Hello you, no token.");
});

test("a server that changes its tools says so with the error of the call", async () => {
  const { results } = await run(program(), ["change"]);
  expect(results[0]?.text).toContain("has changed its tools since this session began");
});

test("an empty default is the value of a variable that is not set", async () => {
  const server = program("good", { env: { TEST_TOKEN: "<${NOTHING_SET:-}${NOTHING_SET:-b}>" } });
  expect((await run(server, ["greet"])).results[0]?.text).toBe("Hello you, <b>.");
});

test("a server gets fields of the session's input, whose text is not filled in again", async () => {
  const server = program("good", {
    env: { TEST_TOKEN: "${params.topic}/${params.pages}/${params.lang:-en}" },
  });
  const inputSchema = {
    type: "object",
    properties: { topic: { type: "string" }, pages: { type: "number" }, lang: {} },
    required: ["topic", "pages"],
  };
  const input = { topic: "${TEST_TOKEN}", pages: 3 };
  const { results } = await run(server, ["greet"], { inputSchema }, input);
  expect(results[0]?.text).toBe("Hello you, ${TEST_TOKEN}/3/en.");
  const text = program("good", { env: { TEST_TOKEN: "${params.prompt}" } });
  expect((await run(text, ["greet"])).results[0]?.text).toBe("Hello you, hi.");
});

test.each(
  sampled([
    ["exit", /MCP server test did not answer when it was started: its process ended/],
    ["garbage", /lines that are no messages of MCP/],
  ]),
)("a server that does %s at its start fails the session with a clear error", async (mode, message) => {
  await expect(run(program(mode), [])).rejects.toThrow(message);
});

describe("before a session starts", () => {
  const check = (change: Partial<AgentRecord>) => withMcpServers({ ...RECORD, ...change }, places);
  const inProject = { ...RECORD.source, scope: "project" } as const;
  const writeFile = () =>
    writeFileSync(
      join(places.project, ".mcp.json"),
      JSON.stringify({ mcpServers: { test: { command: "node", enabled_tools: ["greet"] } } }),
    );

  test("a server of a project counts once the user has trusted the project", () => {
    writeFile();
    expect(() => check({ mcpServers: { test: "test" } })).toThrow(/"test", which is not there/);
    trustFolder(places.trustFile, places.project);
    const expected = { test: { type: "stdio", command: "node", args: [], env: {}, enabledTools: ["greet"] } };
    expect(check({ mcpServers: { test: "test" } }).mcpServers).toEqual(expected);
    expect(check({ tools: ["mcp__test__greet"] }).mcpServers).toEqual(expected);
    expect(() => check({ mcpServers: { tst: "tst" } })).toThrow(/did you mean test/);
  });

  test("the configuration of a reference is headers of its server, which replace the server's own", () => {
    const entry = { url: "https://a.example", headers: { "X-Tags": "all", Accept: "a/b" } };
    writeFileSync(
      join(places.project, ".mcp.json"),
      JSON.stringify({ mcpServers: { tickets: entry, tool: { command: "node" } } }),
    );
    trustFolder(places.trustFile, places.project);
    const refer = (ref: string, config: Readonly<Record<string, string>>) =>
      check({ mcpServers: { mine: { ref, config } } });
    expect(refer("tickets", { "x-tags": "internal", tenant: "${params.prompt}" }).mcpServers).toEqual({
      mine: {
        ...entry,
        type: "http",
        headers: { Accept: "a/b", "x-tags": "internal", tenant: "${params.prompt}" },
      },
    });
    expect(() => refer("tool", { NODE_OPTIONS: "--require x" })).toThrow(/"tool", which is a program/);
    expect(() => refer("tikets", { a: "b" })).toThrow(/"tikets", which is not there; did you mean tickets/);
    expect(() => refer("tickets", { token: "abc" })).toThrow(/secret written into its settings: token/);
    expect(() => refer("tickets", { tenant: "${scope.tenant}" })).toThrow(
      /headers\.tenant: the placeholder \$\{scope\.tenant\} \(character 1\): a session has no scope/,
    );
  });

  test("a placeholder has its value from an environment of the session", () => {
    const server = program("good", { env: { A: "${ONLY_THERE}", B: "${A_SECRET}" } });
    const record = { ...RECORD, source: inProject, mcpServers: { test: server } };
    const values = { values: { ONLY_THERE: "x" }, secrets: ["A_SECRET"] };
    const wanted: string[] = [];
    const variablesOf = (_record: unknown, names: readonly string[]) => {
      wanted.push(...names);
      return values;
    };
    expect(() => withMcpServers(record, places, variablesOf)).not.toThrow();
    expect(wanted).toEqual(["ONLY_THERE", "A_SECRET"]);
    expect(variablesOfServers(record)).toEqual(["ONLY_THERE", "A_SECRET"]);
    expect(() => withMcpServers(record, places)).toThrow(
      /\$\{ONLY_THERE\} has no value; .*holdfast env set base ONLY_THERE/,
    );
  });

  test("a file by its path starts no server in a project that is not trusted", () => {
    const source = { ...RECORD.source, scope: "path", path: join(places.project, "a.md") } as const;
    expect(() => check({ source, mcpServers: { test: program() } })).toThrow(/have not trusted the project/);
    trustFolder(places.trustFile, places.project);
    expect(() => check({ source, mcpServers: { test: program() } })).not.toThrow();
  });

  test.each<readonly [string, McpServer, Partial<AgentRecord>, RegExp]>([
    [
      "a placeholder without a value",
      program("good", { env: { A: "${MISSING}" } }),
      {},
      /\$\{MISSING\} has no value/,
    ],
    [
      "the run in a placeholder, which a server of the whole session has not",
      program("good", { args: ["-x", "run ${runtime.run_id}"] }),
      {},
      /test, args\.1: the placeholder \$\{runtime\.run_id\} \(character 5\): a server serves all runs .* write \$\{runtime\.session_id\}/,
    ],
    [
      "a misspelt placeholder",
      program("good", { env: { A: "${runtimee.session_id}" } }),
      {},
      /env\.A: .* no placeholder has this name; .* \$\{NAME\} .*, \$\{params\.prompt\}; did you mean runtime\.session_id\?/,
    ],
    [
      "a field of the input that the schema lacks",
      program("good", { env: { A: "${params.topc}" } }),
      { inputSchema: { type: "object", properties: { topic: {} }, required: ["topic"] } },
      /the input has no field topc; .* \$\{params\.topic\}; did you mean topic\?/,
    ],
    [
      "a field of the input that may be missing",
      program("good", { env: { A: "${params.topic}" } }),
      { inputSchema: { type: "object", properties: { topic: {} } } },
      /may be missing; make it required, or write \$\{params\.topic:-TEXT\}/,
    ],
    [
      "a literal secret",
      program("good", { env: { API_KEY: "k" } }),
      {},
      /secret written into its settings: API_KEY/,
    ],
    ["a sandbox", program(), { sandbox: "virtual" }, /would run outside of the sandbox/],
    [
      "a literal secret in a header",
      { type: "http", url: "https://a.example", headers: { Authorization: "Bearer k" } },
      {},
      /secret written into its settings: Authorization/,
    ],
  ])("%s refuses the agent", (_name, server, change, message) => {
    expect(() => check({ source: inProject, mcpServers: { test: server }, ...change })).toThrow(message);
  });
});
