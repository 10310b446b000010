// The tools by which external agents reach their sessions, by the real command. The programs are fakes, which
// start the MCP server that they were given.

import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const run = (...args: string[]) => project.startHere(args).finished;
/** The results of calls, as the program got them. */
const results = (): readonly string[] => project.lines("session-results");

test(
  "a question of Claude Code outlives kill -9, is asked once, and its answer reaches the program once",
  ofCampaign,
  async () => {
    const first = project.startHere([
      "run",
      "claude-code",
      "write:a.txt session:request_input:Which?",
      "--session",
      "s",
    ]);
    while (!(await run("inbox")).stdout.includes("Which?")) await delay(20);
    first.kill("SIGKILL");
    await first.finished;
    expect((await run("answer", "s", '"blue"')).code).toBe(0);
    // The program repeats the call, as it does not remember a result.
    const { code, stdout, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("Done:");
    expect(results()).toEqual(["blue"]);
    const { entries } = await project.shown("s");
    const prompt = entries.find(({ role, content }) => role === "user" && String(content).includes("Verify"));
    expect(prompt?.content).toContain('You called request_input {"question":"Which?"}.');
    expect(prompt?.content).toContain("Its result: blue");
    expect((await run("inbox")).stdout).not.toContain("Which?");
  },
);

test(
  "a child signals its parent, asks a handler of its parent, and learns the rest of its budget",
  ofCampaign,
  async () => {
    writeFileSync(
      project.path("lead.ts"),
      `import { CODEX, externalAgent, LineAgent } from "@holdfast/programs";
import { defineAgent, defineTask, local } from "holdfast";
const folder = process.cwd();
const codex = externalAgent(new LineAgent({ facts: CODEX, folder }), { folder, permissionModes: ["default"] });
const ask_parent = defineTask({ name: "know", run: ({ question }: { question: string }) => "north, not " + question });
export default defineAgent({
  name: "lead",
  agents: [codex],
  handlers: { ask_parent },
  async run(ctx) {
    const words = ["signal_parent:half", "ask_parent:south", "remaining_budget"].map((call) => "session:" + call);
    const child = ctx.spawnAgent(local(codex), words.join(" "));
    const heard: unknown[] = [];
    for (;;) {
      const event = await ctx.waitForChildEvent(child);
      if (event.type === "signal") heard.push([event.name, event.payload]);
      if (event.type === "completed") return { heard, output: event.output };
      if (event.type === "failed" || event.type === "cancelled") return event;
    }
  },
});
`,
    );
    const { code, stdout, stderr } = await run(
      "run",
      "lead.ts",
      "--session",
      "l",
      "--budget",
      "100000tokens",
    );
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ heard: [["message", { text: "half" }]] });
    const [sent, answer, budget] = results();
    expect([sent, answer]).toEqual(["Sent.", "north, not south"]);
    // Its own calls are charged while it works.
    expect((JSON.parse(budget!) as { tokens: number }).tokens).toBeLessThan(100_000);
  },
);

test("an external agent starts the agents that it may start, and no others", ofCampaign, async () => {
  writeFileSync(
    project.path("lead.ts"),
    `import { ClaudeCode, CODEX, externalAgent, LineAgent } from "@holdfast/programs";
const folder = process.cwd();
const permissionModes = ["default"];
const codex = externalAgent(new LineAgent({ facts: CODEX, folder }), { folder, permissionModes });
export default externalAgent(new ClaudeCode({ folder }), { folder, permissionModes, agents: [codex] });
`,
  );
  const words = JSON.stringify("session:start_agent_session:pi session:start_agent_session:codex");
  const { code, stderr } = await run("run", "lead.ts", "--input", words, "--session", "l");
  expect(code, stderr).toBe(0);
  expect(results()).toEqual(['There is no agent "pi" that you may start.', "Done: write:b.txt"]);
  expect(project.lines("b.txt")).toEqual(["x"]);
});

test(
  "a question that the program does not wait for begins its next turn with the answer",
  ofCampaign,
  async () => {
    writeFileSync(
      project.path("agent.sh"),
      `#!/bin/sh
read -r prompt
case "$prompt" in *"Its result: "*) echo '{"type": "done", "text": "I know."}'; exit;; esac
echo '{"type": "call", "id": "1", "tool": "request_input", "input": {"question": "May I?", "approval": true}}'
echo '{"type": "done", "text": "I have asked."}'
`,
      { mode: 0o755 },
    );
    writeFileSync(
      project.path("mine.ts"),
      `import { customAgent, externalAgent } from "@holdfast/programs";
const folder = process.cwd();
const program = customAgent({ name: "mine", protocol: "lines", command: ["./agent.sh"], resumes: true, folder });
export default externalAgent(program, { folder, permissionModes: ["default"] });
`,
    );
    const running = project.startHere(["run", "mine.ts", "begin", "--session", "s"]);
    await running.says("May I?");
    expect((await run("approve", "s", "--no", "--reason", "not today")).code).toBe(0);
    const { code, stdout, stderr } = await running.finished;
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("I know.\n");
    const said = JSON.stringify((await project.shown("s")).entries);
    expect(said).toContain("Its result: No. The reason: not today");
  },
);

/** A program that asks a second one for two answers, and looks at it. A later line takes an id of an earlier result. */
const DELEGATING = `import { createInterface } from "node:readline";
import { appendFileSync } from "node:fs";
const say = (message) => console.log(JSON.stringify(message));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
let count = 0;
const call = async (tool, input = {}) => {
  say({ type: "call", id: String(++count), tool, input });
  const { text, isError } = await next();
  appendFileSync("results", JSON.stringify([tool, isError, text]) + "\\n");
  return text;
};
await next();
const parameters = { prompt: "write:b.txt", conversation: true };
const { session_id } = JSON.parse(await call("start_agent_session", { agent_name: "codex", parameters, mode: "async_poll" }));
let status;
do status = JSON.parse(await call("get_agent_session_status", { session_id })).status; while (status === "running");
await call("get_agent_session_result", { session_id });
await call("resume_agent_session", { session_id, parameters: { prompt: "write:c.txt" } });
await call("get_agent_session_result", { session_id: "another" });
await call("start_agent_session", { agent_name: "codex", parameters: { prompt: "write:d.txt" } });
await call("delete_all_agent_sessions");
await call("list_agent_sessions");
say({ type: "done", text: "I have asked." });
process.exit(0);
`;

test("the tools of the orchestrator reach the sessions that the agent has started, and no others", async () => {
  writeFileSync(project.path("lead.mjs"), DELEGATING);
  mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
  const command = JSON.stringify([process.execPath, project.path("lead.mjs")]);
  writeFileSync(
    project.path(".holdfast/profiles/lead.yaml"),
    `custom: { protocol: lines, command: ${command}, resumes: true }\nagents: [codex]\ndeletesSessions: true\n`,
    { mode: 0o600 },
  );
  const { code, stderr } = await project.finishHere(["run", "lead", "begin", "--session", "l"]);
  expect(code, stderr).toBe(0);
  const made = project.lines("results").map((line) => JSON.parse(line) as [string, boolean, string]);
  const given = made.filter(([tool]) => tool !== "get_agent_session_status");
  const id = (JSON.parse(given[0]![2]) as { session_id: string }).session_id;
  const answer = (text: string): string =>
    JSON.stringify({ session_id: id, status: "finished", result: text });
  expect(given).toEqual([
    ["start_agent_session", false, JSON.stringify({ session_id: id, status: "running" })],
    ["get_agent_session_result", false, answer("Done: write:b.txt")],
    ["resume_agent_session", false, answer("Done: write:c.txt")],
    [
      "get_agent_session_result",
      true,
      "You have started no session another. list_agent_sessions lists yours.",
    ],
    ["start_agent_session", false, "Done: write:d.txt"],
    ["delete_all_agent_sessions", false, JSON.stringify({ deleted: 1, kept: 1 })],
    [
      "list_agent_sessions",
      false,
      JSON.stringify({
        sessions: [{ session_id: id, agent_name: "codex", status: "finished", detail: "waiting" }],
      }),
    ],
  ]);
});

test("a profile of the user lets a session start the agents that it names, and no others", async () => {
  mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
  writeFileSync(project.path(".holdfast/profiles/lead.yaml"), "agents: [pi]\n", { mode: 0o600 });
  const words = "session:start_agent_session:codex session:start_agent_session:pi";
  const { code, stderr } = await project.finishHere(["run", "claude-code", words, "--profile", "lead"]);
  expect(code, stderr).toBe(0);
  expect(project.lines("session-results")).toEqual([
    'There is no agent "codex" that you may start.',
    "Done: write:b.txt",
  ]);
  expect(project.lines("b.txt")).toEqual(["x"]);
});
