// Environments and variables of a start reach the commands of the agent wherever the session runs. It may run in
// the local stack, by a start over the API or by a schedule, or below another session.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeAll(async () => {
  project = await ModelProject.open();
  // `lead` delegates first, and each agent then looks at its variables.
  project.script = ({ system, messages }) => {
    const answers = messages.filter(({ role }) => role === "assistant").length;
    const isLead = system.includes("You lead");
    if (isLead && answers === 0)
      return { toolCalls: [{ name: "delegate", input: { agent: "below", input: "go" } }] };
    return answers === (isLead ? 1 : 0)
      ? { toolCalls: [{ name: "shell", input: { command: 'env | grep -E "^(REGION|RELEASE)" | sort' } }] }
      : { text: "done" };
  };
  const variables = "  variables: [REGION, RELEASE]\n  approvals:\n    allow: [shell]\n";
  const fileOf = (name: string, more: string, prompt: string) =>
    project.write(
      `.holdfast/agents/${name}.md`,
      `---\nname: ${name}\ndescription: D.\nholdfast:\n${variables}${more}---\n${prompt}\n`,
    );
  fileOf("deployer", "", "You deploy.");
  fileOf("nightly", "", "You deploy.");
  fileOf("lead", "  agents: [below]\n", "You lead.");
  fileOf("below", "", "You help.");
  await project.run("env", "set", "base", "REGION=eu");
  await project.run("env", "set", "production", "REGION=us", "RELEASE=0.9.0");
  await project.run("agents", "trust");
  const started = await project.run("local", "start", "--port", "0");
  expect(started.code, started.stderr).toBe(0);
});
afterAll(async () => {
  await project.run("local", "stop");
  await project.dispose();
});

async function send(method: "POST" | "PUT" | "GET", path: string, body?: object) {
  const { url } = await project.json<{ url: string }>("local", "status");
  const token = readFileSync(join(project.home, ".local/share/holdfast/admin-token"), "utf8").trim();
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const logs = async (sessionId: string): Promise<string> => (await project.run("logs", sessionId)).stdout;

test("--env and --env-ref reach a session of the local stack, by a file and by a name", async () => {
  const byFile = await project.run("run", "deployer", "go", "--env", "RELEASE=1.2.0", "--session", "file");
  expect(byFile.code, byFile.stderr).toBe(0);
  expect(byFile.stderr).toContain("local stack");
  expect(await logs("file")).toContain("REGION=eu RELEASE=1.2.0");
  const named = ["run", "--agent", "deployer", "--input", '"go"', "--session", "named"];
  const byName = await project.run(...named, "--env-ref", "production", "--env", "RELEASE=1.3.0");
  expect(byName.code, byName.stderr).toBe(0);
  expect(await logs("named")).toContain("REGION=us RELEASE=1.3.0");
});

test("the agents below have the environments and variables of the start", async () => {
  const { code, stderr } = await project.run(
    "run",
    "lead",
    "go",
    "--env",
    "RELEASE=2.0.0",
    "--session",
    "tree",
  );
  expect(code, stderr).toBe(0);
  const { sessions } = (await send("GET", "/v1/sessions?agent=below")).body as {
    sessions: { sessionId: string }[];
  };
  expect(await logs(sessions[0]!.sessionId)).toContain("RELEASE=2.0.0");
  expect(await logs("tree")).toContain("RELEASE=2.0.0");
});

test("a start without a value that the agent needs is refused before there is a session, and names the variable", async () => {
  const refused = await send("POST", "/v1/sessions", { agent: "deployer", input: "go", sessionId: "none" });
  expect(refused).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: "/environment/values/RELEASE" }] },
  });
  expect(JSON.stringify(refused.body)).toContain("--env RELEASE=VALUE");
  expect((await send("GET", "/v1/sessions/none")).status).toBe(404);
  const byName = await project.run("run", "--agent", "deployer", "--input", '"go"');
  expectError(byName, 2, "E_INVALID_INPUT", ["the variable RELEASE has no value"]);
  const scheduled = await send("PUT", "/v1/schedules/nightly", {
    cron: "0 3 * * *",
    start: { agent: "deployer", input: "go" },
  });
  expect(scheduled.status).toBe(422);
  const given = { values: { RELEASE: "3.0.0" } };
  const other = { agent: "deployer", input: "go", sessionId: "given", environment: given };
  expect((await send("POST", "/v1/sessions", other)).status).toBe(201);
  const repeated = { ...other, environment: { values: { RELEASE: "4.0.0" } } };
  expect((await send("POST", "/v1/sessions", repeated)).status).toBe(409);
});

test("on a runner that serves several people, a start names no other environment than the agent", async () => {
  const coordinator = await startCoordinator(project);
  const file = ".holdfast/agents/deployer.md";
  const runner = await startRunnerProcess(project, coordinator, "shared", ["-p", ".", "--agents", file]);
  const env = { HOLDFAST_URL: coordinator.url, HOLDFAST_TOKEN: coordinator.adminToken };
  const start = ["run", "--agent", "deployer", "--input", '"go"', "--env", "RELEASE=6.0.0"];
  const refused = await project.finish([...start, "--env-ref", "production"], { env });
  expect(refused.stderr).toContain('asks for the environment "production", which is not there');
  const own = await project.finish([...start, "--session", "own"], { env });
  expect(own.code, own.stderr).toBe(0);
  expect((await project.finish(["logs", "own"], { env })).stdout).toContain("REGION=eu RELEASE=6.0.0");
  for (const process of [runner, coordinator.process]) process.kill("SIGTERM");
  await Promise.all([runner.finished, coordinator.process.finished]);
});

test("a schedule keeps the environments and variables of each session that it starts", async () => {
  const line = ["schedule", "add", "* * * * * *", "--run", "nightly", "--input", '"go"', "--id", "often"];
  const added = await project.run(...line, "--env", "RELEASE=5.0.0", "--env-ref", "production");
  expect(added.code, added.stderr).toBe(0);
  const { body } = await send("GET", "/v1/schedules");
  expect(body).toMatchObject({
    schedules: [{ start: { environment: { references: ["production"], values: { RELEASE: "5.0.0" } } } }],
  });
  const ended = async () => {
    const { sessions } = (await send("GET", "/v1/sessions?status=completed&agent=nightly")).body;
    return (sessions as { sessionId: string }[] | undefined)?.[0]?.sessionId;
  };
  await expect.poll(ended, { timeout: 20_000 }).toBeDefined();
  expect(await logs((await ended())!)).toContain("REGION=us RELEASE=5.0.0");
});
