// `holdfast chat`, by the real command against a scripted model server.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const SLOW = { timeout: 180_000 };

let project: Project;
let server: ScriptedModelServer;
let script: (conversation: Conversation) => Reply;
let env: Record<string, string | undefined>;

beforeEach(async () => {
  project = new Project();
  server = await startScriptedModelServer({ script: (conversation) => script(conversation) });
  mkdirSync(project.path("home"));
  env = { HOME: project.path("home"), XDG_DATA_HOME: undefined, HOLDFAST_SCRIPTED_MODEL_URL: server.url };
  mkdirSync(project.path(".holdfast/agents"), { recursive: true });
  write("helper", "");
  write("typed", "holdfast:\n  input: { type: object }\n");
  writeFileSync(project.path("code.ts"), "export default async () => 1;\n");
  script = (conversation) => ({ text: `answer ${requestsOf(conversation).length}` });
});

afterEach(async () => {
  await project.dispose();
  await server.close();
});

function write(name: string, frontMatter: string): void {
  writeFileSync(
    project.path(`.holdfast/agents/${name}.md`),
    `---\nname: ${name}\ndescription: Helps.\n${frontMatter}---\nYou help.\n`,
  );
}

const AGENT_FILE = ".holdfast/agents/helper.md";
const requestsOf = ({ messages }: Conversation) => messages.filter(({ role }) => role === "user");
const lastOf = ({ messages }: Conversation) => JSON.stringify(messages.at(-1));
const run = (args: readonly string[], stdin = "") => project.finish(args, { env, stdin });
const open = (...args: string[]): HoldfastProcess => project.start(args, { env });

/** Asks for a call that appends a line to a file, once. */
const appending = (conversation: Conversation): Reply =>
  lastOf(conversation).includes("append")
    ? { toolCalls: [{ name: "shell", input: { command: "echo line >> lines.txt" } }] }
    : { text: "appended" };

describe.each(["a database", "a coordinator"])("over %s", (place) => {
  let where: readonly string[];

  beforeEach(async () => {
    where = [];
    if (place === "a database") return;
    const coordinator = await startCoordinator(project);
    where = ["--url", coordinator.url];
    env = { ...env, HOLDFAST_TOKEN: tokenIn(coordinator) };
  });

  test(
    "piped lines are messages, and standard output has the answers alone",
    { ...ofCampaign, ...SLOW },
    async () => {
      const first = await run(["chat", AGENT_FILE, "--session", "c", ...where], "one\n\ntwo\n");
      expect(first.code, first.stderr).toBe(0);
      expect(first.stdout).toBe("answer 1\nanswer 2\n");
      expect(first.stderr).toMatch(/continue with: holdfast chat --session c/);
      const second = await run(["chat", "--session", "c", ...where], "three\n/exit\nfour\n");
      expect(second.stdout, second.stderr).toBe("answer 3\n");
      expect(second.stderr).toContain("you: two");
      const third = await run(["chat", AGENT_FILE, "four", "--session", "c", ...where]);
      expect(third.stdout, third.stderr).toBe("answer 4\n");
    },
  );

  test(
    "a chat that is killed at a question asks it again, and the call runs once",
    { ...ofCampaign, ...SLOW },
    async () => {
      script = appending;
      const killed = open("chat", AGENT_FILE, "append", "--session", "c", ...where);
      await killed.says("type y or n");
      const question = async () =>
        JSON.parse((await run(["inbox", "--json", ...where])).stdout).items[0] as Record<string, unknown>;
      const before = await question();
      expect(before).toMatchObject({ tool: "shell", action: "echo line >> lines.txt" });
      killed.kill("SIGKILL");
      await killed.finished;
      expect((await question())["id"]).toBe(before["id"]);
      if (place === "a coordinator") await released("c");
      const refused = await run(["chat", "--session", "c", ...where], "perhaps\n");
      expect(refused.stderr).toContain("the question is still open: type y or n");
      const done = await run(["chat", "--session", "c", ...where], "y\n");
      expect(done.stdout, done.stderr).toBe("appended\n");
      expect(readFileSync(project.path("lines.txt"), "utf8")).toBe("line\n");
      const logs = (await run(["logs", "c", ...where])).stdout;
      expect(logs.match(/tool: exit code 0/g)).toHaveLength(1);
    },
  );

  /** At a coordinator the claim of a dead process lasts as long as its lease. */
  async function released(sessionId: string): Promise<void> {
    const isReleased = async (): Promise<boolean> =>
      !(await run(["runs", "--session", sessionId, "--json", ...where])).stdout.includes('"claimed"');
    await vi.waitUntil(isReleased, { timeout: 60_000, interval: 500 });
  }
});

test("a chat that is killed in the middle of a stream continues, and has the answer once", SLOW, async () => {
  script = () => ({ text: "one two three" });
  server.setFaults({ 1: { type: "hang", afterChunks: 5 } });
  const killed = open("chat", AGENT_FILE, "hi", "--session", "c", "--json");
  await killed.says('"type":"token"');
  killed.kill("SIGKILL");
  await killed.finished;
  const done = await run(["chat", "--session", "c"]);
  expect(done.stdout, done.stderr).toBe("one two three\n");
  const logs = (await run(["logs", "c"])).stdout;
  expect(logs.match(/assistant: one two three/g)).toHaveLength(1);
});

test("Ctrl-C interrupts the turn, and the next message is answered", { ...ofCampaign, ...SLOW }, async () => {
  script = () => ({ text: "after" });
  server.setFaults({ 1: { type: "hang" } });
  const chat = open("chat", AGENT_FILE, "hang", "--session", "c");
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), { timeout: 30_000 });
  chat.kill("SIGINT");
  await chat.says("interrupting; Ctrl-C again leaves");
  chat.type("hello");
  chat.type("/help"); // Obeyed once the answer is there and the session waits.
  await chat.says("Ctrl-C interrupts the agent");
  expect(chat.stdout).toBe("after\n");
  chat.type("/exit");
  const { code, stderr } = await chat.finished;
  expect(code).toBe(0);
  expect(stderr).toContain("continue with: holdfast chat --session c");
  const logs = (await run(["logs", "c"])).stdout;
  expect(logs).toContain("The user interrupted you here.");
});

test(
  "an interrupted question is withdrawn, and its call gets a result",
  { ...ofCampaign, ...SLOW },
  async () => {
    script = appending;
    const chat = open("chat", AGENT_FILE, "append", "--session", "c");
    await chat.says("type y or n");
    chat.kill("SIGINT");
    await chat.says("interrupting");
    chat.type("go on");
    await chat.says("appended");
    chat.type("/exit");
    expect((await chat.finished).code).toBe(0);
    expect((await run(["logs", "c"])).stdout).toContain("The user interrupted this call.");
    expect(JSON.parse((await run(["inbox", "--json"])).stdout)).toEqual({ items: [] });
  },
);

test(
  "a conversation is steered and continued by signals of another process",
  { ...ofCampaign, ...SLOW },
  async () => {
    script = (conversation) => {
      const last = lastOf(conversation);
      if (last.includes("do both"))
        return {
          toolCalls: [
            { name: "shell", input: { command: "echo 1 >> lines.txt" } },
            { name: "shell", input: { command: "echo 2 >> lines.txt" } },
          ],
        };
      return { text: last.includes("stop") ? "stopped" : "again" };
    };
    const chat = open("chat", AGENT_FILE, "do both", "--session", "c");
    await chat.says("type y or n");
    expect((await run(["signal", "c", "steer", '"stop"'])).code).toBe(0);
    expect((await run(["approve", "c"])).code).toBe(0);
    await chat.says("stopped");
    expect(readFileSync(project.path("lines.txt"), "utf8")).toBe("1\n");
    expect((await run(["signal", "c", "next_input", '"more"'])).code).toBe(0);
    await chat.says("again");
    chat.type("/exit");
    expect((await chat.finished).code).toBe(0);
  },
);

test(
  "a allows the same call for the rest of the session, and no other call",
  { ...ofCampaign, ...SLOW },
  async () => {
    const commands = ["echo one", "echo one", "echo two"];
    script = ({ messages }) => {
      const command = commands[messages.filter(({ role }) => role === "assistant").length];
      return command === undefined
        ? { text: "done" }
        : { toolCalls: [{ name: "shell", input: { command } }] };
    };
    const chat = open("chat", AGENT_FILE, "go", "--session", "c");
    await chat.says("or a to allow shell(echo one) in this session");
    chat.type("a");
    await chat.says("or a to allow shell(echo two) in this session");
    chat.type("y");
    await chat.says("done");
    chat.type("/exit");
    expect((await chat.finished).code).toBe(0);
    expect((await run(["logs", "c"])).stdout.match(/tool: exit code 0/g)).toHaveLength(3);
  },
);

test(
  "on a terminal the text is streamed and a line that is typed meanwhile steers",
  { ...ofCampaign, ...SLOW },
  async () => {
    script = (conversation) => {
      const last = lastOf(conversation);
      if (last.includes("begin")) return { toolCalls: [{ name: "shell", input: { command: "echo go" } }] };
      return { text: last.includes("turn left") ? "steered" : "straight" };
    };
    const line = `HOLDFAST_SCRIPTED_MODEL_URL=${server.url} holdfast chat ${AGENT_FILE} --session c`;
    const chat = project.shellOnTerminal(line);
    await chat.says("> ");
    chat.type("begin");
    await chat.says("type y or n");
    expect((await run(["signal", "c", "steer", '"turn left"'])).code).toBe(0);
    chat.type("y");
    await chat.says("steered");
    chat.type("/help");
    await chat.says("Ctrl-C interrupts the agent");
    chat.type("/exit");
    const { code, stdout } = await chat.finished;
    expect(code, stdout).toBe(0);
    expect(stdout).toContain("holdfast chat --session c");
  },
);

// The model calls a tool that ends once the file is there, so the messages come in the middle of the work.
test(
  "a queued message is the request after the answer, a typed line steers before, and both have receipts",
  { ...ofCampaign, ...SLOW },
  async () => {
    script = (conversation) => {
      if (lastOf(conversation).includes("begin"))
        return { toolCalls: [{ name: "shell", input: { command: "until [ -e go ]; do sleep 0.05; done" } }] };
      return {
        text: `answer to ${requestsOf(conversation)
          .map(({ text }) => text)
          .join(" then ")}`,
      };
    };
    write("free", "holdfast: { approvals: { allow: [shell] } }\n");
    const line = `HOLDFAST_SCRIPTED_MODEL_URL=${server.url} holdfast chat .holdfast/agents/free.md --session c`;
    const chat = project.shellOnTerminal(line);
    await chat.says("> ");
    chat.type("begin");
    await chat.says("until [ -e go ]");
    chat.type("/queue and the tests");
    await chat.says("it is the next message, after this answer");
    chat.type("turn left");
    await chat.says("it reaches the agent before its next call");
    writeFileSync(project.path("go"), "");
    await chat.says("your message reached the agent in the middle of its work");
    await chat.says("answer to begin then turn left");
    await chat.says("your message waited for the answer, and is the request now");
    await chat.says("answer to begin then turn left then and the tests");
    chat.type("/exit");
    expect((await chat.finished).code).toBe(0);
    const entries = (await project.json<{ entries: { role: string; content: unknown }[] }>("show", "c"))
      .entries;
    expect(entries.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual([
      "begin",
      { text: "turn left", delivery: "steer" },
      { text: "and the tests", delivery: "queue" },
    ]);
    expect((await run(["logs", "c"])).stdout).toContain("user (queue): and the tests");
  },
);

test.each([
  ["no agent", [], 2, "the agent is missing"],
  ["three arguments", [AGENT_FILE, "a", "b"], 2, "is one argument too many"],
  ["an id that is none", [AGENT_FILE, "--session", "../x"], 2, "cannot be the id of a session"],
  ["a session that is not there", ["--session", "gone"], 4, "gone"],
  ["an agent that is not there", ["nobody", "hi"], 3, "there is no agent nobody"],
  ["a file that is not there", ["nothing.md", "hi"], 2, "nothing.md"],
  ["an agent of code", ["code.ts", "hi"], 2, "a chat needs an agent file"],
  [
    "an agent with an input schema",
    [".holdfast/agents/typed.md", "hi"],
    2,
    "takes another input than a text",
  ],
  ["a first message of blanks", [AGENT_FILE, "  "], 2, "the message is empty"],
  ["a budget that is none", [AGENT_FILE, "hi", "--budget", "much"], 2, "much"],
  ["an option that is misspelt", [AGENT_FILE, "--sesion", "a"], 2, "--session"],
  ["an agent that has not been trusted", ["helper", "hi"], 12, "not trusted"],
  ["a session of another agent", ["code.ts", "hi", "--session", "ended"], 6, "has ended"],
])("%s is an error with its exit code, and leaves no session", SLOW, async (_name, args, exit, message) => {
  await run(["run", "code.ts", "--session", "ended"]);
  const { code, stderr } = await run(["chat", ...args]);
  expect(stderr).toContain(message);
  expect(code, stderr).toBe(exit);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(JSON.parse((await run(["list", "--json"])).stdout)).toHaveLength(1);
});

test("a chat heeds strict bounds and traces of the configuration, as other starts do", SLOW, async () => {
  const configure = (config: object): void =>
    writeFileSync(project.path(".holdfast/config.json"), JSON.stringify(config));
  configure({ strictBounds: true });
  const refused = await run(["chat", AGENT_FILE, "hi"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("may take turns for ever");
  expect((await run(["chat", AGENT_FILE, "hi", "--budget", "9turns"])).stdout).toContain("answer 1");
  mkdirSync(project.path("home/.config/holdfast"), { recursive: true });
  configure({});
  const user = project.path("home/.config/holdfast/config.json");
  writeFileSync(user, JSON.stringify({ trace: `file:${project.path("trace.ndjson")}` }));
  expect((await run(["chat", AGENT_FILE, "hi", "--session", "traced"])).stdout).toContain("answer 1");
  expect(readFileSync(project.path("trace.ndjson"), "utf8")).toContain('"traced"');
});

test("a chat without a line leaves no session", SLOW, async () => {
  const { code, stdout, stderr } = await run(["chat", AGENT_FILE], "\n/unknown\n");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(stderr).toContain("there is no command /unknown");
  expect((await run(["list"])).stderr).toContain("no sessions");
});
