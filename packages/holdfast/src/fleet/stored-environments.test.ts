// Environments of a coordinator in sessions of pushed agents: real coordinators and runners, whose policy decides.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { registrationToken, startSession, userToken } from "../testing/coordinator-client.ts";
import { startCoordinator, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";
import { ModelProject } from "../testing/model-project.ts";

const SERVER = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
const OF_ADA = "the-token-of-ada-4711";
const OF_BOB = "the-token-of-bob-0815";
const OF_SHOP = "the-token-of-the-shop-42";
const PATIENCE = { timeout: 30_000, interval: 100 };

/** The command shows plain variables and a hash of the secret, and then the secret itself, which is replaced. */
const COMMAND = 'echo "region=$REGION hash=$(printf %s "$TOKEN" | sha256sum | cut -c1-12) token=$TOKEN"';
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

const FIELDS = `holdfast:
  environment: [staging]
  variables: [REGION, TOKEN]
  approvals: { allow: [shell] }
`;
const POLICY = {
  agentFiles: {
    allow: ["*"],
    tools: ["shell"],
    variables: ["REGION", "TOKEN"],
    coordinatorEnvironments: true,
  },
};

let project: ModelProject;
let coordinator: CoordinatorProcess;
let ada: string;
let bob: string;
beforeEach(async () => {
  project = await ModelProject.open();
  mkdirSync(project.path("work"));
  project.script = ({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool");
    if (results.length === 0) return { toolCalls: [{ name: "shell", input: { command: COMMAND } }] };
    return { text: JSON.stringify(results) };
  };
  for (const name of ["first", "second"])
    writeFileSync(project.path(`${name}.key`), `${name} key `.repeat(6), { mode: 0o600 });
  coordinator = await startCoordinator(project, { folder: "data", environmentKeys: ["first.key"] });
  [ada, bob] = [await userToken(coordinator, "ada"), await userToken(coordinator, "bob")];
});
afterEach(() => project.dispose());

async function holdfast(token: string, args: readonly string[], stdin = ""): Promise<string> {
  const env = { HOLDFAST_TOKEN: token, HOLDFAST_URL: coordinator.url };
  const { code, stdout, stderr } = await project.finish(args, { env, stdin });
  expect(code, stderr).toBe(0);
  return stdout;
}
const setSecret = (token: string, name: string, value: string, ...more: string[]): Promise<string> =>
  holdfast(token, ["env", "set", name, "TOKEN", "--secret", "--url", coordinator.url, ...more], `${value}\n`);
const setPlain = (token: string, name: string, text: string, ...more: string[]): Promise<string> =>
  holdfast(token, ["env", "set", name, text, "--url", coordinator.url, ...more]);

async function push(name = "helper", fields = FIELDS): Promise<void> {
  const path = project.path(`${name}.md`);
  writeFileSync(path, `---\nname: ${name}\ndescription: Helps.\n${fields}---\nYou help.\n`);
  await holdfast(coordinator.adminToken, ["agents", "push", path]);
}

async function startRunner(
  name = "box",
  policy: object = POLICY,
  ...more: string[]
): Promise<HoldfastProcess> {
  writeFileSync(project.path(`${name}.json`), JSON.stringify(policy));
  const started = project.start(
    ["runner", "-c", coordinator.url, "-p", "work", "--policy", `${name}.json`, "--name", name, ...more],
    { env: { HOLDFAST_TOKEN: await registrationToken(coordinator, name) }, stdin: "" },
  );
  await started.says("waiting for runs");
  return started;
}

async function read(path: string, token = coordinator.adminToken) {
  const response = await fetch(`${coordinator.url}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const start = (token: string, more: object = {}): Promise<string> =>
  startSession(coordinator, { agent: "helper", input: "go", ...more }, token);

async function outputOf(sessionId: string): Promise<string> {
  return vi.waitFor(async () => {
    const { body } = await read(`/v1/sessions/${sessionId}`);
    expect(body["status"], JSON.stringify(body)).toBe("completed");
    return JSON.stringify((await read(`/v1/sessions/${sessionId}/result`)).body["output"]);
  }, PATIENCE);
}

/** The coordinator ends, and another one begins on its database and port. */
async function restart(environmentKeys: readonly string[]): Promise<void> {
  coordinator.process.kill("SIGTERM");
  await coordinator.process.finished;
  const port = Number(new URL(coordinator.url).port);
  coordinator = await startCoordinator(project, { folder: "data", port, environmentKeys });
}

async function statusBecomes(sessionId: string, status: string): Promise<void> {
  await vi.waitFor(async () => {
    const { body } = await read(`/v1/sessions/${sessionId}`);
    expect(body["status"], JSON.stringify(body)).toBe(status);
  }, PATIENCE);
}

/** A session that has run a command and asks, at a runner that is then killed. */
async function askingSession(): Promise<string> {
  project.script = ({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool");
    if (results.length === 1) return { toolCalls: [{ name: "ask_user", input: { question: "Again?" } }] };
    if (results.length < 3) return { toolCalls: [{ name: "shell", input: { command: COMMAND } }] };
    return { text: JSON.stringify(results) };
  };
  await push();
  await setPlain(ada, "staging", "REGION=eu");
  await setSecret(ada, "staging", OF_ADA);
  const runner = await startRunner("box", ASKING);
  const session = await start(ada);
  await statusBecomes(session, "input_required");
  runner.kill("SIGKILL");
  await runner.finished;
  return session;
}

const ASKING = { agentFiles: { ...POLICY.agentFiles, tools: ["shell", "ask_user"] } };

/** The answer of a start that is refused. */
async function refused(token: string, more: object = {}) {
  const response = await fetch(`${coordinator.url}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent: "helper", input: "go", sessionId: "none", ...more }),
  });
  expect((await read("/v1/sessions/none")).status).toBe(404);
  return { status: response.status, body: (await response.json()) as { detail: string; code: string } };
}

function expectNowhere(...values: readonly string[]): void {
  for (const file of readdirSync(project.path("data")).filter((name) => !name.endsWith("-socket")))
    for (const value of values)
      expect(readFileSync(project.path(`data/${file}`)).includes(value), `${file} has ${value}`).toBe(false);
}

test(
  "sessions of two persons at one runner have the values of their person, and no value is found anywhere",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    await push();
    await setPlain(ada, "staging", "REGION=eu");
    await setSecret(ada, "staging", OF_ADA);
    await setSecret(bob, "staging", OF_BOB);
    await setPlain(bob, "base", "REGION=us");
    const runner = await startRunner();
    const [first, second, third] = [await start(ada), await start(bob), await start(ada)];
    const outputs = await Promise.all([first, second, third].map(outputOf));
    expect(outputs[0]).toContain(`region=eu hash=${hashOf(OF_ADA)} token=[secret]`);
    expect(outputs[1]).toContain(`region=us hash=${hashOf(OF_BOB)} token=[secret]`);
    expect(outputs[2]).toContain(`region=eu hash=${hashOf(OF_ADA)} token=[secret]`);
    for (const session of [first, second]) {
      const texts = [
        (await read(`/v1/sessions/${session}/entries`)).body,
        (await read(`/v1/sessions/${session}/events`)).body,
        await holdfast(coordinator.adminToken, ["logs", session]),
        await holdfast(coordinator.adminToken, ["export", session]),
      ].map((text) => JSON.stringify(text));
      for (const text of texts) expect(text).not.toMatch(/the-token-of/);
    }
    const { rows } = (await read("/v1/audit?limit=100")).body as {
      rows: { action: string; actor: string; object: string; details?: unknown }[];
    };
    const releases = rows.filter(({ action }) => action === "environment.release");
    expect(releases.map(({ object }) => object).toSorted()).toEqual(
      [first, second, third].map((id) => `session:${id}`).toSorted(),
    );
    expect(JSON.stringify(releases)).toContain("staging.TOKEN");
    expect(
      runner.stdout + runner.stderr + coordinator.process.stdout + coordinator.process.stderr,
    ).not.toMatch(/the-token-of/);
    coordinator.process.kill("SIGTERM");
    await coordinator.process.finished;
    expectNowhere(OF_ADA, OF_BOB);
  },
);

test(
  "a start is refused before there is a session, without an environment or a variable that its agent needs",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    await push();
    await startRunner();
    const unnamed = await refused(ada);
    expect([unnamed.status, unnamed.body.code]).toEqual([422, "invalid_input"]);
    expect(unnamed.body.detail).toContain('needs the environment "staging"');
    await setPlain(ada, "staging", "REGION=eu");
    expect((await refused(ada)).body.detail).toContain("the variable TOKEN has no value");
    expect((await refused(bob)).body.detail).toContain('needs the environment "staging"');
    await setSecret(ada, "staging", OF_ADA);
    await setPlain(ada, "staging", "RELEASE", "--required");
    expect((await refused(ada)).body.detail).toContain("the variable RELEASE has no value");
    const unknown = await refused(ada, {
      environment: { references: ["production"], values: { RELEASE: "1" } },
    });
    expect(unknown.body.detail).toContain('needs the environment "production"');
    const given = await start(ada, { environment: { values: { RELEASE: "1", REGION: "asia" } } });
    expect(await outputOf(given)).toContain(`region=asia hash=${hashOf(OF_ADA)}`);
  },
);

test(
  "a session of a project has the environments of the project, with those of its person over them",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    await push();
    const shop = ["--project", "shop"];
    await setPlain(coordinator.adminToken, "base", "REGION=eu", ...shop);
    await setSecret(coordinator.adminToken, "staging", OF_SHOP, ...shop);
    await setSecret(ada, "staging", OF_ADA);
    await startRunner("box", POLICY, "--label", "project=shop");
    const demands = { project: "shop" };
    const [ofAda, ofBob] = [await start(ada, { demands }), await start(bob, { demands })];
    expect(await outputOf(ofAda)).toContain(`region=eu hash=${hashOf(OF_ADA)}`);
    expect(await outputOf(ofBob)).toContain(`region=eu hash=${hashOf(OF_SHOP)}`);
    expect((await refused(bob)).body.detail).toContain('needs the environment "staging"');
  },
);

test(
  "a machine whose policy does not say so gets nothing, and says why",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    await push();
    await setPlain(ada, "staging", "REGION=eu");
    const { coordinatorEnvironments: _, ...agentFiles } = POLICY.agentFiles;
    const runner = await startRunner("box", { agentFiles });
    expect(runner.stderr).toContain("the policy of this runner does not give the environment staging");
    expect(runner.stderr).toContain("coordinatorEnvironments");
    const narrow = { agentFiles: { ...POLICY.agentFiles, variables: ["REGION"] } };
    const other = await startRunner("other", narrow);
    expect(other.stderr).toContain("the policy of this runner does not give the variable TOKEN");
  },
);

test(
  "a session goes on over a rotation of the key, and has a changed secret from its next claim on",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    const session = await askingSession();
    await restart(["second.key", "first.key"]);
    await holdfast(coordinator.adminToken, ["env", "rotate", "--url", coordinator.url]);
    await restart(["second.key"]);
    await setSecret(ada, "staging", "a-changed-token-of-ada");
    await startRunner("box", ASKING);
    await holdfast(ada, ["answer", session, '"yes"']);
    const output = await outputOf(session);
    expect(output).toContain(hashOf(OF_ADA));
    expect(output).toContain(hashOf("a-changed-token-of-ada"));
    expect(output).not.toMatch(/the-token-of|a-changed/);
  },
);

test(
  "a session pauses at a coordinator that has lost the key, and goes on when the key is back",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    const session = await askingSession();
    await restart([]);
    await startRunner("box", ASKING);
    await holdfast(ada, ["answer", session, '"yes"']);
    await statusBecomes(session, "paused");
    expect(await holdfast(ada, ["show", session])).toContain("the coordinator has no key");
    await restart(["first.key"]);
    await holdfast(ada, ["unpause", session]);
    expect(await outputOf(session)).toContain(hashOf(OF_ADA));
  },
);

test(
  "a script as a whole agent and an MCP server of the machine have the secret of the session",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    const manifest = { name: "count", description: "Counts.", script_file: "count.sh" };
    project.write(".holdfast/scripts/count/script.json", JSON.stringify(manifest));
    project.write(".holdfast/scripts/count/count.sh", `${COMMAND}\n`);
    await holdfast(coordinator.adminToken, ["agents", "trust"]);
    await holdfast(coordinator.adminToken, ["script", "push", "count", "--catalogue"]);
    await push("counter", `holdfast:\n  script: count\n  variables: [REGION, TOKEN]\n`);
    const server = [
      "mcp",
      "add",
      "test",
      "--user",
      "--env",
      "TEST_TOKEN=${TOKEN}",
      "--",
      process.execPath,
      SERVER,
    ];
    await holdfast(ada, server);
    await push(
      "caller",
      `tools: mcp__test__*\nmcpServers: [test]\n${FIELDS.replace("shell", "mcp__test__greet")}`,
    );
    await setPlain(ada, "base", "REGION=eu");
    await setSecret(ada, "base", OF_ADA);
    await setPlain(ada, "staging", "REGION=us");
    const tools = ["script__count", "mcp__test__*"];
    const runner = await startRunner("box", {
      agentFiles: { ...POLICY.agentFiles, tools },
      allowScripts: "all",
    });
    expect(runner.stderr).not.toContain("is not offered");
    const counted = await outputOf(await start(ada, { agent: "counter", input: {} }));
    expect(counted).toContain(`region=eu hash=${hashOf(OF_ADA)} token=[secret]`);
    project.script = ({ messages }) =>
      messages.some(({ role }) => role === "tool")
        ? { text: JSON.stringify(messages) }
        : { toolCalls: [{ name: "mcp__test__greet", input: { text: "you" } }] };
    const called = await outputOf(await start(ada, { agent: "caller" }));
    expect(called).toContain("Hello you, [secret].");
  },
);
