// Tasks between our own MCP client, in an agent file, and our own MCP servers: `/mcp` of a coordinator, and
// `holdfast mcp`.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent } from "@holdfast/runtime";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

let project: Project;
let home: string;
let fleet: Fleet;
let model: ScriptedModelServer;

const deploy = defineAgent({
  name: "deploy",
  run: async (ctx) => {
    const { approved } = await ctx.requestInput({ prompt: "Deploy?" });
    return approved ? "deployed at noon" : "left alone";
  },
});
const hold = defineAgent({ name: "hold", run: async (ctx) => ctx.waitForSignal("go") });

beforeAll(async () => {
  project = new Project({ eachAsProcess: true });
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  fleet = await openFleet();
  await fleet.runner({ agents: [deploy, hold], graceMs: 0 });
  model = await startScriptedModelServer({
    script: ({ messages }) => {
      if (messages.some(({ role }) => role === "assistant")) return { text: "Done." };
      const [request = ""] = /deploy|hold/.exec(JSON.stringify(messages)) ?? [];
      const input = { agent_name: request, parameters: { prompt: "go" } };
      return { toolCalls: [{ name: "mcp__fleet__start_agent_session", input }] };
    },
  });
  const env = { HOLDFAST_URL: fleet.url, HOLDFAST_TOKEN: "${FLEET_TOKEN}" };
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  write("stdio", { command: process.execPath, args: [LAUNCHER, "mcp"], env });
  write("http", {
    type: "http",
    url: `${fleet.url}/mcp`,
    headers: { Authorization: "Bearer ${FLEET_TOKEN}" },
  });
  await run("agents", "trust");
});

afterAll(async () => {
  await project.dispose();
  await model.close();
  await fleet.close();
  rmSync(home, { recursive: true, force: true });
});

function write(name: string, server: object): void {
  writeFileSync(
    project.path(`.holdfast/agents/${name}.md`),
    `---\nname: ${name}\ndescription: Starts sessions.\nholdfast: { approvals: { allow: [mcp__fleet__*] } }\nmcpServers:\n  - fleet: ${JSON.stringify(server)}\n---\nYou start sessions.\n`,
  );
}

const environment = () => ({
  HOME: home,
  XDG_DATA_HOME: undefined,
  HOLDFAST_SCRIPTED_MODEL_URL: model.url,
  FLEET_TOKEN: fleet.adminToken,
});
const run = (...args: string[]) => project.finish(args, { stdin: "", env: environment() });
const start = (...args: string[]) => project.start(args, { stdin: "", env: environment() });

test.each(["http", "stdio"])(
  "over %s a command that was killed goes on with its task, whose question a person answers meanwhile",
  ofCampaign,
  async (over) => {
    const killed = start("run", over, "deploy", "--session", over);
    const shown = async (): Promise<string> => {
      const { stdout } = await run("show", over);
      return `${stdout}${killed.stderr}`;
    };
    await expect.poll(shown, { timeout: 120_000, interval: 500 }).toContain("Deploy?");
    killed.kill("SIGKILL");
    await killed.finished;
    const answered = await run("answer", over, '{"approved": true}');
    expect(answered.code, answered.stderr).toBe(0);
    const resumed = await run("resume", over);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect((await run("logs", over)).stdout).toContain("deployed at noon");
  },
);

test("a cancelled session cancels the session that its task stands for", async () => {
  const running = start("run", "http", "hold", "--session", "held");
  const statuses = async () =>
    (await fleet.remote.reader.sessions({ agent: "hold", limit: 10 })).map(({ status }) => status);
  await expect.poll(statuses, { timeout: 90_000 }).toEqual(["waiting"]);
  await run("cancel", "held");
  await running.finished;
  await expect.poll(statuses, { timeout: 90_000 }).toEqual(["cancelled"]);
});
