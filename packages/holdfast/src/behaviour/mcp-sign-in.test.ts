// `holdfast mcp login` through the real command, against a real issuer: an agent then uses the server, and no
// file has a token.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  startMcpHttpServer,
  startOauthServer,
  startScriptedModelServer,
  type McpHttpServer,
  type OauthServer,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let home: string;
let oauth: OauthServer;
let http: McpHttpServer;
let model: ScriptedModelServer;

beforeEach(async () => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  writeFileSync(join(home, "key"), "k".repeat(40), { mode: 0o600 });
  oauth = await startOauthServer();
  http = await startMcpHttpServer({ issuer: oauth.url, authorization: () => `Bearer ${oauth.token()}` });
  model = await startScriptedModelServer({
    script: ({ messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: "Done." }
        : { toolCalls: [{ name: "mcp__issues__greet", input: {} }] },
  });
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  writeFileSync(
    project.path(".holdfast/agents/helper.md"),
    "---\nname: helper\ndescription: Helps.\nholdfast: { approvals: { allow: [mcp__issues__greet] } }\nmcpServers: [issues]\n---\nYou help.\n",
  );
});

afterEach(async () => {
  await project.dispose();
  await http.close();
  await oauth.close();
  await model.close();
  rmSync(home, { recursive: true, force: true });
});

const start = (...args: readonly string[]) =>
  project.start([...args], {
    stdin: "",
    env: {
      HOME: home,
      XDG_DATA_HOME: undefined,
      HOLDFAST_SECRET_KEY_FILE: join(home, "key"),
      HOLDFAST_SCRIPTED_MODEL_URL: model.url,
    },
  });
const run = (...args: readonly string[]) => start(...args).finished;

/** Every file below a folder that has the text. */
function filesWith(folder: string, text: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}

test(
  "an agent uses a server after a sign-in, and no file has the token in plain text",
  ofCampaign,
  async () => {
    await run("mcp", "add", "issues", "--user", "--url", http.url);
    await run("agents", "trust");
    const before = await run("run", "helper", "Greet.", "--session", "s1");
    expect(before.code).not.toBe(0);
    expect(before.stderr).toContain("holdfast mcp login issues");

    const login = start("mcp", "login", "issues");
    await login.says(/http:\/\/127\.0\.0\.1:\d+\/authorize\S+/);
    const [address = ""] = /http:\/\/127\.0\.0\.1:\d+\/authorize\S+/.exec(login.stdout + login.stderr) ?? [];
    expect(await oauth.approve(address)).toMatchObject({ status: 200 });
    expect((await login.finished).stdout).toContain(`signed in to issues at ${oauth.url}`);
    expect((await run("mcp", "list")).stdout).toMatch(/issues +usable +address +signed in/);

    const after = await run("run", "helper", "Greet.", "--session", "s2");
    expect(after.code, after.stderr).toBe(0);
    expect((await run("logs", "s2")).stdout).toContain("Hello, Bearer [secret].");
    for (const token of ["access-1", "refresh-1"])
      expect([...filesWith(home, token), ...filesWith(project.folder, token)]).toEqual([]);

    expect((await run("mcp", "logout", "issues")).stdout).toContain("deleted");
    expect((await run("mcp", "list", "--check")).stdout).toMatch(
      /issues +failed .*holdfast mcp login issues/,
    );
  },
);

test("nobody signs in to a program or to a server that is not there, or out without a sign-in", async () => {
  const servers = { files: { command: "true" }, issues: { url: "https://mcp.example.org" } };
  writeFileSync(project.path(".mcp.json"), JSON.stringify({ mcpServers: servers }));
  await run("agents", "trust");
  const refusals = await Promise.all([
    run("mcp", "login", "nothing"),
    run("mcp", "login", "files"),
    run("mcp", "logout", "issues"),
  ]);
  expect(refusals.map(({ code }) => code)).not.toContain(0);
  expect(refusals.map(({ stderr }) => stderr)).toEqual([
    expect.stringContaining("there is no MCP server nothing"),
    expect.stringContaining("is a program, and nobody signs in to it"),
    expect.stringContaining("nobody has signed in"),
  ]);
});
