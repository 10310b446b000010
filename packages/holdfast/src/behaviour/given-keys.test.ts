// The key of a model, given in each way: the call of the model has it, and nothing that is kept has it.

import { CanaryScan } from "@holdfast/testkit";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ExternalProject } from "../testing/external-project.ts";
import { ModelProject } from "../testing/model-project.ts";

/** For a line of a shell, which no secret of the search may be in. */
const KEY = "sk-ant-test-0123456789abcdef";

let project: ModelProject;
let scan: CanaryScan;
let env: Record<string, string | undefined>;
beforeEach(async () => {
  project = await ModelProject.open({ HOLDFAST_SCRIPTED_MODEL_URL: undefined });
  scan = new CanaryScan();
  env = { ANTHROPIC_BASE_URL: project.server.url, ...keyFileEnv() };
  project.write("named.md", "---\nname: named\ndescription: N.\nmodel: sonnet\n---\nYou help.\n");
  project.write("free.md", "---\nname: free\ndescription: F.\n---\nYou help.\n");
});
afterEach(async () => {
  scan.searchFolder(project.folder);
  await project.dispose();
  expect(scan.found).toEqual([]);
});

/** The key that encrypts the file of secrets. */
function keyFileEnv(): Record<string, string> {
  const path = join(project.home, "key");
  mkdirSync(project.home, { recursive: true });
  writeFileSync(path, "0123456789abcdef".repeat(4), { mode: 0o600 });
  return { HOLDFAST_SECRET_KEY_FILE: path };
}

function keysSent(): readonly unknown[] {
  return project.server.requests.map(({ headers }) => headers["x-api-key"]);
}

async function store(value = scan.secret): Promise<void> {
  const set = ["secret", "set", "ANTHROPIC_API_KEY", "--to", "file"];
  const { code, stderr } = await project.start(set, { stdin: value, env }).finished;
  expect(code, stderr).toBe(0);
}

describe("a call of the model has its key", () => {
  test.each(["named", "free"])("which was stored, for the agent %s", async (agent) => {
    await store();
    const { code, stdout, stderr } = await project.finish(["run", `${agent}.md`, "Hi."], { env });
    expect([code, stdout], stderr).toEqual([0, "Done.\n"]);
    expect(keysSent()).toEqual([scan.secret]);
  });

  test("which was stored, for a program that runs the agent", async () => {
    await store();
    const packages = fileURLToPath(new URL("../../../../node_modules", import.meta.url));
    symlinkSync(packages, project.path("node_modules"));
    project.write(
      "program.ts",
      'import { runAgentFile } from "holdfast";\nconsole.log(await runAgentFile("named.md", "Hi."));\n',
    );
    const { code, stdout, stderr } = await project.shell("node --no-warnings program.ts", { env });
    expect([code, stdout], stderr).toEqual([0, "Done.\n"]);
    expect(keysSent()).toEqual([scan.secret]);
  });

  test("which was piped to standard input", async () => {
    const run = ["run", "named.md", "Hi.", "--secret-stdin", "ANTHROPIC_API_KEY"];
    const { code, stdout, stderr } = await project.finish(run, { env, stdin: `${scan.secret}\n` });
    expect([code, stdout], stderr).toEqual([0, "Done.\n"]);
    expect(keysSent()).toEqual([scan.secret]);
  });

  test.each(["named", "free"])("which a person typed, for the agent %s", ofCampaign, async (agent) => {
    const asked = project.shellOnTerminal(
      `export ANTHROPIC_BASE_URL=${project.server.url}; holdfast run ${agent}.md Hi.`,
    );
    await asked.says("Enter ANTHROPIC_API_KEY: ");
    asked.child.stdin.write(`${scan.secret}\r`);
    const { code, stdout } = await asked.finished;
    scan.search("the terminal", stdout);
    expect([code, stdout], stdout).toEqual([0, expect.stringContaining("Done.")]);
    expect(keysSent()).toEqual([scan.secret]);
    expect(stdout).toContain("bubblewrap and virtual isolate them");
    const again = project.shellOnTerminal(
      `export ANTHROPIC_API_KEY='${KEY}' ANTHROPIC_BASE_URL=${project.server.url}; holdfast run ${agent}.md Hi.`,
    );
    expect((await again.finished).stdout).not.toContain("isolate them");
  });

  test("which was stored after its lack had paused the session", async () => {
    const paused = await project.finish(["run", "named.md", "Hi.", "--session", "s"], { env });
    expect([paused.code, paused.stderr]).toEqual([
      3,
      expect.stringContaining("holdfast secret set ANTHROPIC_API_KEY"),
    ]);
    await store();
    const { code, stdout, stderr } = await project.finish(["resume", "s"], { env });
    expect([code, stdout], stderr).toEqual([0, "Done.\n"]);
    expect(keysSent()).toEqual([scan.secret]);
  });

  // In processes of their own, as a person calls them.
  test("which replaced a stored one that the server refused, as the advice says", async () => {
    const call = (...args: string[]) => project.start(args, { env, stdin: "" }).finished;
    const refused = "sk-ant-test-refused-0123456789";
    project.server.setFaults(({ headers }) =>
      headers["x-api-key"] === refused ? { type: "unauthorized" } : undefined,
    );
    await store(refused);
    const paused = await call("run", "named.md", "Hi.", "--session", "s");
    expect(paused.code, paused.stderr).toBe(5);
    expect(paused.stderr).toContain("the key in ANTHROPIC_API_KEY was refused (401)");
    expect(paused.stderr).toContain("`holdfast secret set ANTHROPIC_API_KEY`");
    expect((await call("doctor", "--json")).stdout).toContain("secret set ANTHROPIC_API_KEY");
    await store();
    const { code, stdout, stderr } = await call("resume", "s");
    expect([code, stdout], stderr).toEqual([0, "Done.\n"]);
  });

  test("which the local stack was given, stored or typed at its start", ofCampaign, async () => {
    await store();
    const started = ["local", "start", "--agents", "named.md", "--port", "0"];
    expect((await project.finish(started, { env })).code).toBe(0);
    const run = await project.finish(["run", "named.md", "Hi."], { env });
    expect([run.code, run.stdout], run.stderr).toEqual([0, "Done.\n"]);
    await project.run("local", "stop");
    await project.finish(["secret", "delete", "ANTHROPIC_API_KEY"], { env });
    const asked = project.shellOnTerminal(
      `export ANTHROPIC_BASE_URL=${project.server.url}; holdfast ${started.join(" ")}`,
    );
    await asked.says("Enter ANTHROPIC_API_KEY: ");
    asked.child.stdin.write(`${scan.secret}\r`);
    expect((await asked.finished).code).toBe(0);
    const again = await project.finish(["run", "named.md", "Hi."], { env });
    expect([again.code, again.stdout], again.stderr).toEqual([0, "Done.\n"]);
    await project.run("local", "stop");
    expect(keysSent()).toEqual([scan.secret, scan.secret]);
  });
});

test("a stored key reaches the program of a coding agent", ofCampaign, async () => {
  const external = new ExternalProject();
  const place = { ...external.environment(), ...keyFileEnv(), ANTHROPIC_API_KEY: undefined };
  const set = ["secret", "set", "ANTHROPIC_API_KEY", "--to", "file"];
  await external.start(set, { stdin: scan.secret, env: place }).finished;
  const { code, stderr } = await external.finish(["run", "claude-code", "env"], { env: place });
  expect(code, stderr).toBe(0);
  expect(external.starts()[0]?.env).toContain("ANTHROPIC_API_KEY");
  await external.dispose();
});

test("a stored secret reaches an MCP server whose settings name it", ofCampaign, async () => {
  const program = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
  const settings = {
    command: process.execPath,
    args: [program, "good"],
    env: { TEST_TOKEN: "${TEST_TOKEN}" },
  };
  project.write(".mcp.json", JSON.stringify({ mcpServers: { test: settings } }));
  project.write(
    ".holdfast/agents/helper.md",
    "---\nname: helper\ndescription: H.\nmodel: sonnet\ntools: mcp__test__*\nholdfast: { approvals: { allow: [mcp__test__*] } }\nmcpServers: [test]\n---\nHelp.\n",
  );
  project.script = ({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? { text: "Done." }
      : { toolCalls: [{ name: "mcp__test__greet", input: { text: "you" } }] };
  await project.finish(["agents", "trust"], { env });
  await store();
  const set = ["secret", "set", "TEST_TOKEN", "--to", "file"];
  await project.start(set, { stdin: "a token of 20 letters", env }).finished;
  const { code, stderr } = await project.finish(["run", "helper", "Hi.", "--session", "s"], { env });
  expect(code, stderr).toBe(0);
  expect((await project.finish(["logs", "s"], { env })).stdout).toContain("Hello you, ");
});

test("an agent whose shell prints the key of its model records [secret]", async () => {
  await store();
  project.write(
    "shell.md",
    "---\nname: shell\ndescription: S.\nmodel: sonnet\ntools: Bash\nholdfast: { approvals: { allow: [Bash] } }\n---\nWork.\n",
  );
  project.script = ({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? { text: "Done." }
      : { toolCalls: [{ name: "shell", input: { command: `echo ${scan.secret}` } }] };
  const { code, stderr } = await project.finish(["run", "shell.md", "Hi.", "--session", "s"], { env });
  expect(code, stderr).toBe(0);
  const { stdout } = await project.finish(["logs", "s", "--json"], { env });
  expect(stdout).toContain("[secret]");
});
