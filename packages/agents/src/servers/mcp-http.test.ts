// MCP servers at an address in sessions, with a real HTTP server: both versions of the protocol, losses,
// limits, addresses and redirects.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { startMcpHttpServer, type McpHttpOptions, type McpHttpServer } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { type McpServer, McpServers } from "@holdfast/mcp";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { mcpCapability } from "./mcp-capability.ts";

let folder: string;
let runtime: Runtime | undefined;
let servers: McpServers;
let http: McpHttpServer | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-http-")));
  servers = new McpServers({ variable: (name) => (name === "TOKEN" ? "canary-7731" : undefined) });
});

afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  await servers.close();
  await http?.close();
  http = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function run(calls: readonly string[], options: McpHttpOptions = {}, change: Partial<McpServer> = {}) {
  http = await startMcpHttpServer(options);
  return use(calls, { type: "http", url: http.url, headers: {}, ...change } as McpServer);
}

async function use(calls: readonly string[], server: McpServer) {
  const model = fakeModel((_request, number) => {
    const name = calls[number];
    return name === undefined ? { text: "Done." } : { calls: [[`mcp__test__${name}`, {}]] };
  });
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: folder,
    capabilities: [mcpCapability(servers)],
  });
  runtime = createRuntime({ storage: new MemoryStorage() });
  const permissions = [{ decision: "allow", tool: "mcp__*", pattern: null }] as const;
  await (
    await runtime.start(loop.agent({ ...RECORD, mcpServers: { test: server }, permissions }), "hi")
  ).result();
  const texts = (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [(content as { text: string }).text] : [],
  );
  return { requests: model.requests, texts };
}

const calls = (name: string): number =>
  (http?.log ?? []).filter((line) => line === `tools/call ${name}`).length;

test.each(["2026-07-28", "2025-11-25"] as const)("a server of %s answers calls", async (version) => {
  const { requests, texts } = await run(["greet", "count"], { version });
  expect(texts).toEqual(["Hello, stranger.", "counted"]);
  expect(requests[0]?.tools?.map(({ name }) => name)).toContain("mcp__test__greet");
  expect(http?.log).toContain(version === "2026-07-28" ? "server/discover" : "initialize");
});

test("a header is filled in, and its value is not recorded", async () => {
  const change = { headers: { Authorization: "Bearer ${TOKEN}" } };
  const { texts } = await run(["greet"], { authorization: "Bearer canary-7731" }, change);
  expect(texts).toEqual(["Hello, [secret]."]);
});

test("a call whose stream is cut off is sent once and reported as uncertain", async () => {
  const { texts } = await run(["cut", "greet"]);
  expect(texts[0]).toMatch(/did not answer the call of cut: .*nobody knows whether/);
  expect(texts[1]).toBe("Hello, stranger.");
  expect(calls("cut")).toBe(1);
});

test("a reading call whose stream is cut off is sent again", async () => {
  await run(["cut_reading"]);
  expect(calls("cut_reading")).toBeGreaterThan(1);
});

test("a call that the server has not begun is sent again, and a gateway's error is a loss", async () => {
  const { texts } = await run(["busy", "gateway"]);
  expect(texts[0]).toBe("done");
  expect(texts[1]).toMatch(/nobody knows whether/);
  expect(calls("gateway")).toBe(1);
});

test("a result of 100 MB is cut off with an error", ofCampaign, async () => {
  const { texts } = await run(["flood", "greet"]);
  expect(texts[0]).toMatch(/it sent a message of more than/);
  expect(texts[1]).toBe("Hello, stranger.");
});

test.each([
  ["page", /refused the call of page: Unexpected content type/],
  ["unauthorized", /401 Unauthorized.*\nA person must sign in.*holdfast mcp login test/],
  ["expired", /Unauthorized. A person must sign in/],
])("a server that answers %s inside a 200 gives a clear result", async (name, message) => {
  const { texts } = await run([name]);
  expect(texts[0]).toMatch(message);
});

test("an answer in a stream is taken", async () => {
  expect((await run(["stream"])).texts).toEqual(["The call has no result."]);
});

describe("before the first call", () => {
  test("a server that wants a sign-in names the command", async () => {
    await expect(run([], { authorization: "Bearer other" })).rejects.toThrow(/holdfast mcp login test/);
  });

  test("X8: a redirect to another origin is not followed, and that origin gets no header", async () => {
    const seen: string[] = [];
    const other = createServer((request, response) => {
      seen.push(request.url ?? "");
      response.end();
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const intercept: McpHttpOptions["intercept"] = (response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${port}/elsewhere` }).end();
      return true;
    };
    const change = { headers: { Authorization: "Bearer ${TOKEN}" } };
    await expect(run([], { intercept }, change)).rejects.toThrow(/not followed/);
    await new Promise((resolve) => other.close(resolve));
    expect(seen).toEqual([]);
  });

  test.each([
    ["a server that is not there", "http://127.0.0.1:1/mcp", /ECONNREFUSED/],
    ["the address of cloud metadata", "http://169.254.169.254/mcp", /no server of MCP may have/],
    [
      "a private address in other settings",
      "http://10.1.2.3/mcp",
      /which is private: name the server in your own/,
    ],
    ["a mapped address", "http://[::ffff:10.1.2.3]/mcp", /which is private/],
    ["a decimal address", "http://167838211/mcp", /which is private/],
    ["a public address without TLS", "http://93.184.216.34/mcp", /without TLS; use https/],
    [
      "an address with a user name",
      "https://a:b@example.org/mcp",
      /no URL of http or https without a user name/,
    ],
    ["a placeholder without a value", "https://example.org/${NOTHING}", /\$\{NOTHING\} has no value/],
    [
      "a placeholder of Holdfast's own token",
      "https://example.org/${env.HOLDFAST_TOKEN:-x}",
      /\$\{env\.HOLDFAST_TOKEN:-x\} names a variable of Holdfast itself/,
    ],
  ])("X8: %s fails the session with its reason", async (_what, url, message) => {
    await expect(use([], { type: "http", url, headers: {} })).rejects.toThrow(message);
  });
});
