// The orchestrator's tools, called by clients that others wrote: Claude Code, and the command of the MCP
// Inspector. Each is tried with `/mcp` of a coordinator and with `holdfast mcp`.
// `npm run campaign -- real-clients` installs them, and names their folder in `HOLDFAST_REAL_PROGRAMS`.

import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { defineAgent } from "@holdfast/runtime";
import { startScriptedModelServer, type Conversation, type Reply } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFleet, type Fleet } from "../../packages/holdfast/src/testing/fleet.ts";
import { LAUNCHER, Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { REAL_AGENTS } from "./real-agents.ts";

const PROGRAMS = process.env["HOLDFAST_REAL_PROGRAMS"];
const CALL_MS = 120_000;
const run = promisify(execFile);

const greet = defineAgent<{ prompt: string }, string>({
  name: "greet",
  run: async (_ctx, { prompt }) => `hello ${prompt}`,
});
const hold = defineAgent({ name: "hold", run: async (ctx) => ctx.waitForSignal("go") });

let project: Project;
let fleet: Fleet;
/** A session of the agent `hold`, on whose behalf the clients call. */
let parent: string;

beforeEach(async () => {
  project = new Project();
  fleet = await openFleet();
  await fleet.runner({ agents: [greet, hold] });
  ({ sessionId: parent } = (await ask("POST", "sessions", { agent: "hold" })) as {
    readonly sessionId: string;
  });
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${fleet.adminToken}`, "content-type": "application/json" };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  return (await fetch(`${fleet.url}/v1/${path}`, init)).json();
}

/** The outputs of the sessions below the parent. */
async function below(): Promise<readonly unknown[]> {
  const { sessions = [] } = (await ask("GET", `sessions?parentSessionId=${parent}`)) as {
    readonly sessions?: readonly { readonly output?: unknown }[];
  };
  return sessions.map(({ output }) => output);
}

/** The variables of `holdfast mcp`. */
const variables = () => ({
  HOME: project.folder,
  HOLDFAST_URL: fleet.url,
  HOLDFAST_TOKEN: fleet.adminToken,
});
const stdioArgs = () => [LAUNCHER, "mcp", "--parent", parent];
const bin = (name: string): string => join(PROGRAMS!, name, "node_modules/.bin");
const path = (name: string): string =>
  [bin(name), dirname(process.execPath), process.env["PATH"]].join(delimiter);

// The programs have half a gigabyte.
describe.runIf(PROGRAMS !== undefined)("clients of the orchestrator's tools", () => {
  test.each(["/mcp", "holdfast mcp"])(
    "the Inspector's command lists the tools of %s, and starts an agent",
    { timeout: CALL_MS },
    async (over) => {
      const overHttp = [
        `${fleet.url}/mcp`,
        "--header",
        `Authorization: Bearer ${fleet.adminToken}`,
        `X-Agent-Session-Id: ${parent}`,
      ];
      const overStdio = [
        process.execPath,
        ...stdioArgs(),
        ...Object.entries(variables()).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
      ];
      const inspect = async (...args: string[]): Promise<string> => {
        const target = over === "/mcp" ? overHttp : overStdio;
        const env = { PATH: path("inspector"), HOME: project.folder };
        const { stdout } = await run("mcp-inspector", ["--cli", ...target, ...args], {
          env,
          cwd: project.folder,
        });
        return stdout;
      };
      const { tools } = JSON.parse(await inspect("--method", "tools/list")) as {
        readonly tools: readonly { readonly name: string }[];
      };
      expect(tools.map(({ name }) => name)).toContain("start_agent_session");
      const call = ["--method", "tools/call", "--tool-name", "start_agent_session"];
      const said = await inspect(
        ...call,
        "--tool-arg",
        "agent_name=greet",
        'parameters={"prompt":"inspector"}',
      );
      expect(said).toContain("hello inspector");
      expect(await below()).toEqual(["hello inspector"]);
    },
  );

  test.each(["/mcp", "holdfast mcp"])(
    "Claude Code starts an agent by %s, and its model gets the result",
    { timeout: CALL_MS },
    async (over) => {
      const server = await startScriptedModelServer({ script: claudeReply });
      try {
        const headers = { Authorization: `Bearer ${fleet.adminToken}`, "X-Agent-Session-Id": parent };
        const holdfast =
          over === "/mcp"
            ? { type: "http", url: `${fleet.url}/mcp`, headers }
            : { command: process.execPath, args: stdioArgs(), env: variables() };
        const claude = REAL_AGENTS.find(({ name }) => name === "claude-code")!;
        mkdirSync(project.path("home"));
        const env = {
          ...claude.settings(project.path("home"), server),
          PATH: path("claude-code"),
          HOME: project.path("home"),
        };
        const servers = { holdfast: { ...holdfast, alwaysLoad: true } };
        const args = [
          "-p",
          "start",
          "--model",
          "claude-sonnet-4-5",
          "--strict-mcp-config",
          "--mcp-config",
          JSON.stringify({ mcpServers: servers }),
          "--allowedTools",
          "mcp__holdfast__start_agent_session",
        ];
        const asked = run("claude", args, { env, cwd: project.folder, timeout: CALL_MS - 20_000 });
        asked.child.stdin?.end();
        expect((await asked).stdout).toContain("hello claude");
        expect(await below()).toEqual(["hello claude"]);
      } finally {
        await server.close();
      }
    },
  );
});

/** Calls the tool once, and answers with its result. */
function claudeReply({ messages, tools }: Conversation): Reply {
  const [result] = messages.flatMap(({ toolResults }) => toolResults);
  if (result !== undefined) return { text: result.text };
  const tool = tools.find(({ name }) => name === "mcp__holdfast__start_agent_session");
  if (tool === undefined) return { text: "A title" };
  const input = { agent_name: "greet", parameters: { prompt: "claude" }, mode: "sync" };
  return { toolCalls: [{ name: tool.name, input }] };
}
