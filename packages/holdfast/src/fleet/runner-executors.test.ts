// `holdfast runner` with executors: the command line and the log lines of the earlier system, over a real
// coordinator.

import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { ExternalProject } from "../testing/external-project.ts";
import { outputOf, signal, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let fleet: Fleet;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  mkdirSync(project.path("profiles"));
  mkdirSync(project.path("executors/mine"), { recursive: true });
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

const TIMEOUT = { timeout: 60_000 };
const WAIT = { timeout: 45_000, interval: 50 };

/** A program in the project that has \`inv\` and \`call(method, path, body)\`. */
function program(body: string): void {
  writeFileSync(
    project.path("executors/mine/ao-mine-exec"),
    `#!${process.execPath}
const { existsSync, readFileSync, writeFileSync } = require("node:fs");
if (process.argv.includes("--schema")) process.exit(1);
const inv = JSON.parse(readFileSync(0, "utf8"));
const call = (method, path, body) => fetch(process.env.AGENT_ORCHESTRATOR_API_URL + path, {
  method, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});
(async () => { ${body} })();
`,
    { mode: 0o755 },
  );
}

function agentFile(name: string, body: string): void {
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  writeFileSync(
    project.path(`.holdfast/agents/${name}.md`),
    `---\nname: ${name}\ndescription: It works.\n---\n${body}\n`,
  );
}

async function registration(): Promise<Record<string, string>> {
  return { HOLDFAST_TOKEN: await fleet.token("registration", "r"), AGENT_ORCHESTRATOR_API_URL: fleet.url };
}

test("an executor by its name and one by its path exclude each other", TIMEOUT, async () => {
  const { code, stderr } = await project.start(["runner", "--executor", "a", "--executor-path", "b"])
    .finished;
  expect(code).toBe(2);
  expect(stderr).toMatch(/--executor and --executor-path exclude each other/);
});

test(
  "the list names the executors of the project and the problem of each that cannot be used",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    program("");
    writeFileSync(project.path("profiles/broken.json"), "{");
    const { code, stdout } = await project.start(["runner", "-l"]).finished;
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^broken +the profile cannot be used.*\nmine +\S*ao-mine-exec\ntest-executor +\S+\n$/,
      ),
    ]);
  },
);

test(
  "a program of the current folder is checked by its file name, and each broken clause says why",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    writeFileSync(project.path("mine.sh"), "#!/bin/sh\ncat > /dev/null\n", { mode: 0o755 });
    const { code, stdout, stderr } = await project.start(["runner", "--check-executor", "mine.sh"]).finished;
    expect([code, stdout]).toEqual([1, "4 clauses failed; docs/executors.md describes the protocol\n"]);
    expect(stderr).toContain("a start ends with a result: it ended its turn without a result");
    expect(stderr).toContain("with nothing as its input it must end with an exit code above 0");
  },
);

test.each(
  sampled([
    ["an unknown executor", ["-x", "nobody"], 4, 'there is no executor "nobody"'],
    ["a path where nothing is", ["-e", "nothing"], 2, "there is no executor"],
    ["a folder without a program", ["-x", "mine"], 3, "the executor mine has 0 programs"],
  ]),
)("%s ends the runner before it registers", TIMEOUT, async (_what, args, exit, text) => {
  const { code, stderr } = await project.start(["runner", ...args], { env: await registration() }).finished;
  expect([code, stderr]).toEqual([exit, expect.stringContaining(text)]);
  expect(stderr).not.toContain("Connecting");
});

test(
  "a runner without anything else offers the test-executor, and logs as the earlier system did",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    agentFile("researcher", "You search.");
    const runner = project.start(["runner"], { env: await registration() });
    await runner.says("Runner started - waiting for runs");
    const sessionId = await startSession(fleet, {
      agent: "test-executor",
      input: { prompt: "result 7", agent_name: "researcher" },
    });
    await sessionBecomes(fleet, sessionId, { status: "waiting" });
    expect(runner.stderr).toMatch(
      new RegExp(
        `^Connecting to Agent Coordinator at ${fleet.url}\nRegistered as rnr_\\S+\nRunner started - waiting for runs\n` +
          `\\S+ Received run run_${sessionId}\\.1 \\(start_session\\) of agent test-executor\n\\S+ Starting session ${sessionId} with agent researcher\n`,
      ),
    );
    runner.kill("SIGINT");
    expect((await runner.finished).code).toBe(130);
  },
);

test("AGENT_EXECUTOR_PATH names an executor in the project", { ...ofCampaign, ...TIMEOUT }, async () => {
  program('await call("POST", "/events", { event_type: "result", result_text: inv.prompt + " done" });');
  const env = { ...(await registration()), AGENT_EXECUTOR_PATH: "executors/mine/ao-mine-exec" };
  const runner = project.start(["runner"], { env });
  await runner.says("Runner started");
  const sessionId = await startSession(fleet, { agent: "mine", input: "work" });
  await sessionBecomes(fleet, sessionId, { status: "waiting" });
  await signal(fleet, sessionId, "next_input", "more");
  await runner.says(`Resuming session ${sessionId} with agent mine`);
});

test(
  "defect 5.2 m: a killed runner leaves no executor, and another one resumes the turn under the bound id",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    program(`
    if (inv.mode === "start") {
      await call("POST", "/bind", { session_id: inv.session_id, executor_session_id: "own-9" });
      writeFileSync("bound", ""); setInterval(() => {}, 1000);
    } else {
      const answer = await fetch(process.env.AGENT_ORCHESTRATOR_API_URL + "/sessions/" + inv.session_id + "/affinity");
      const { affinity } = await answer.json();
      await call("POST", "/events", { event_type: "result", result_text: inv.mode + " " + affinity.executor_session_id });
    }`);
    writeFileSync(
      project.path("profiles/mine.json"),
      '{"command":"executors/mine/ao-mine-exec","conversation_ttl_seconds":0}',
    );
    const env = await registration();
    const first = project.start(["runner", "-x", "mine"], { env });
    await first.says("Runner started");
    const sessionId = await startSession(fleet, { agent: "mine", input: "delete it" });
    await vi.waitUntil(() => existsSync(project.path("bound")), WAIT);
    first.kill("SIGKILL");
    await first.finished;
    await vi.waitUntil(() => executorsIn(project.folder) === 0, WAIT);
    const second = project.start(["runner", "-x", "mine"], { env });
    const session = () => fleet.storage.reader.session(sessionId);
    await vi.waitUntil(async () => (await session())?.endedAt !== undefined, WAIT);
    const { output = "null" } = (await session())!;
    expect(JSON.parse(output)).toEqual({ result_text: "resume own-9", result_data: null });
    second.kill("SIGINT");
    await second.finished;
  },
);

test(
  "an executor reports while the coordinator is away, and each report is stored once before the turn ends",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    program(`
    writeFileSync("begun", "");
    while (!existsSync("away")) await new Promise((resolve) => setTimeout(resolve, 20));
    const report = (n) => call("POST", "/events", { event_type: "message", role: "assistant", content: String(n) });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => report(n)));
    writeFileSync("answered", JSON.stringify(answers.map(({ status }) => status)));
    call("POST", "/events", { event_type: "result", result_text: "done" }).then(() => process.exit(0));`);
    const runner = project.start(["runner", "-x", "mine"], { env: await registration() });
    await runner.says("Runner started");
    const sessionId = await startSession(fleet, { agent: "mine", input: "work" });
    await vi.waitUntil(() => existsSync(project.path("begun")), WAIT);
    const restarted = fleet.restart(1_500);
    writeFileSync(project.path("away"), "");
    await restarted;
    const progress = async () => (await fleet.storage.reader.session(sessionId))?.progress ?? "{}";
    await vi.waitUntil(async () => (await progress()).includes('"done"'), WAIT);
    const texts = (await entriesOf(sessionId))
      .slice(1)
      .map(({ content }) => (JSON.parse(content) as { readonly text: string }).text);
    const contents = texts.filter((text) => text !== "done").map(Number);
    expect(contents.toSorted((a, b) => a - b)).toEqual([...Array(30).keys()]);
    expect(new Set(JSON.parse(readFileSync(project.path("answered"), "utf8")) as number[]).size).toBe(1);
    runner.kill("SIGINT");
    await runner.finished;
  },
);

const entriesOf = (sessionId: string) => fleet.storage.reader.entries(sessionId, 0, 1_000);

/** Processes of executors that work in this folder. */
function executorsIn(folder: string): number {
  if (process.platform !== "linux") return 0;
  return readdirSync("/proc").filter((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readlinkSync(`/proc/${name}/cwd`) === folder &&
        readlinkSync(`/proc/${name}/exe`) === process.execPath
      );
    } catch {
      return false;
    }
  }).length;
}

test(
  "an executor gets the blueprint of the agent that its session names, from the project",
  TIMEOUT,
  async () => {
    program(
      'const result_data = inv.agent_blueprint; await call("POST", "/events", { event_type: "result", result_data });',
    );
    agentFile("researcher", "You search.");
    const runner = project.start(["runner", "-x", "mine"], { env: await registration() });
    await runner.says("Runner started");
    const input = { prompt: "go", agent_name: "researcher" };
    const sessionId = await startSession(fleet, { agent: "mine", input });
    const { progress = "null" } = await sessionBecomes(fleet, sessionId, { status: "waiting" });
    expect(JSON.parse(progress)).toMatchObject({
      data: { name: "researcher", system_prompt: "You search." },
    });
    const unknown = await startSession(fleet, {
      agent: "mine",
      input: { prompt: "go", agent_name: "nobody" },
    });
    await sessionBecomes(fleet, unknown, { status: "failed" });
  },
);

test("the name of an included program starts its adapter, and says what is missing", TIMEOUT, async () => {
  const env = { ...(await registration()), PATH: "/nowhere" };
  const { code, stderr } = await project.start(["runner", "-x", "claude-code"], { env }).finished;
  expect([code, stderr]).toEqual([3, expect.stringContaining("claude")]);
  const machine = new ExternalProject();
  try {
    const runner = machine.startHere(["runner", "-x", "claude-code"], await registration());
    await runner.says("Runner started");
    const sessionId = await startSession(fleet, { agent: "claude-code", input: { prompt: "hello" } });
    expect(await outputOf(fleet, sessionId)).toMatch(/hello/);
  } finally {
    await machine.dispose();
  }
});
