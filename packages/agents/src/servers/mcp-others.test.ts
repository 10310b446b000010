// MCP servers that others wrote, over their standard input and over HTTP. The servers are installed into a
// scratch folder, so these tests are a campaign (`HOLDFAST_CAMPAIGN`).

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { type McpServer, McpServers, describeServer } from "@holdfast/mcp";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { mcpCapability } from "./mcp-capability.ts";

const PACKAGES = [
  "@modelcontextprotocol/server-everything@2026.8.31",
  "@modelcontextprotocol/server-filesystem@2026.8.31",
];
let folder: string;
let http: ChildProcess;
let port: number;

const entry = (name: string): string =>
  join(folder, "node_modules/@modelcontextprotocol", name, "dist/index.js");
const program = (name: string, ...args: readonly string[]): McpServer => ({
  type: "stdio",
  command: process.execPath,
  args: [entry(name), ...args],
  env: {},
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const found = (server.address() as AddressInfo).port;
  await new Promise((resolve) => server.close(resolve));
  return found;
}

/** Runs the calls in a session. @returns the results. */
async function run(
  server: McpServer,
  calls: readonly (readonly [tool: string, input: object])[],
  answers: readonly unknown[] = [],
) {
  const servers = new McpServers({ variable: () => undefined });
  const model = fakeModel((_request, number) => {
    const call = calls[number];
    return call === undefined ? { text: "Done." } : { calls: [[`mcp__test__${call[0]}`, call[1]]] };
  });
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: join(folder, "work"),
    capabilities: [mcpCapability(servers)],
  });
  const permissions = [{ decision: "allow", tool: "mcp__*", pattern: null }] as const;
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage });
  const agent = loop.agent({ ...RECORD, mcpServers: { test: server }, permissions });
  const handle = await runtime.start(agent, "hi", { sessionId: "s" });
  for (const answer of answers) {
    await expect
      .poll(async () => (await storage.reader.session("s"))?.status, { timeout: 30_000 })
      .toBe("input_required");
    await runtime.answer("s", answer);
  }
  await handle.result();
  await runtime.close();
  await servers.close();
  return (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [(content as { text: string }).text] : [],
  );
}

// The servers are installed from the network, which takes too long for every run.
describe("servers of others", ofCampaign, () => {
  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-others-")));
    mkdirSync(join(folder, "work"));
    writeFileSync(join(folder, "work/notes.txt"), "buy milk");
    execFileSync(
      "npm",
      ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, ...PACKAGES],
      {
        cwd: folder,
        stdio: "ignore",
      },
    );
    port = await freePort();
    http = spawn(process.execPath, [entry("server-everything"), "streamableHttp"], {
      env: { ...process.env, PORT: String(port) },
      stdio: ["ignore", "ignore", "pipe"],
    });
    await new Promise<void>((resolve) =>
      http.stderr?.on("data", (text) => String(text).includes(String(port)) && resolve()),
    );
  }, 300_000);

  afterAll(() => {
    http.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(["standard input", "HTTP"])(
    "server-everything answers over %s",
    async (how) => {
      const server: McpServer =
        how === "HTTP"
          ? { type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} }
          : program("server-everything");
      const servers = new McpServers({ variable: () => undefined });
      const described = await describeServer(servers, { name: "test", server, folder });
      await servers.close();
      expect(described).toMatchObject({ status: "reached", leftOut: [] });
      const texts = await run(
        server,
        [
          ["echo", { message: "hello" }],
          ["get-sum", { a: 2, b: 40 }],
          ["trigger-long-running-operation", { duration: 1, steps: 2 }],
          ["get-tiny-image", {}],
          ["trigger-elicitation-request", {}],
          ["nothing", {}],
        ],
        [{ name: "Ada" }],
      );
      expect(texts[0]).toContain("hello");
      expect(texts[1]).toContain("42");
      expect(texts[2]).toMatch(/completed/i);
      expect(texts[3]).toContain("[image: image/png, ");
      expect(texts[4]).toContain("Ada");
      expect(texts[5]).toContain('There is no tool "mcp__test__nothing"');
    },
    120_000,
  );

  test("server-filesystem reads and writes in its folder, and refuses other files", async () => {
    const work = join(folder, "work");
    const texts = await run(program("server-filesystem", work), [
      ["read_text_file", { path: join(work, "notes.txt") }],
      ["write_file", { path: join(work, "new.txt"), content: "tea" }],
      ["read_text_file", { path: "/etc/passwd" }],
    ]);
    expect(texts[0]).toContain("buy milk");
    expect(readFileSync(join(work, "new.txt"), "utf8")).toBe("tea");
    expect(texts[2]).toMatch(/denied/);
  }, 120_000);
});
