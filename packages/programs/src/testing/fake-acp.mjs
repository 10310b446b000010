// A program that speaks the Agent Client Protocol, version 1, as OpenCode and Gemini CLI were observed to, for tests. Each word of the prompt's
// last line is an act. It stores its sessions in $HOME/.acp.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { atGate, beStubborn, fault, OLD_ANSWER, PLANS, resumedId, writeMessage } from "./fake-acts.mjs";
import { inputOf, sessionTools } from "./fake-session-tools.mjs";

const { HOME = "/" } = process.env;
if (process.argv[2] === "--version") {
  console.log("1.18.33");
  process.exit(0);
}
const sessions = join(HOME, ".acp");
mkdirSync(sessions, { recursive: true });
appendFileSync(join(HOME, "acp.log"), `${JSON.stringify(process.argv.slice(2))}\n`);

const write = (message) => writeMessage({ jsonrpc: "2.0", ...message });
const fileOf = (id) => join(sessions, id);
let sessionId;
let servers = [];
let cancel = () => {};
let requests = 0;
const waiting = new Map();

const update = (fields) => write({ method: "session/update", params: { sessionId, update: fields } });
const say = (text) => {
  for (const piece of text.match(/.{1,4}/g) ?? [])
    update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: piece } });
};
function ask(toolCall) {
  const id = `ask-${++requests}`;
  const options = [
    { optionId: "yes", name: "Yes", kind: "allow_once" },
    { optionId: "always", name: "Always", kind: "allow_always" },
    { optionId: "no", name: "No", kind: "reject_once" },
  ];
  const answered = new Promise((resolve) => waiting.set(id, resolve));
  write({ id, method: "session/request_permission", params: { sessionId, toolCall, options } });
  return answered;
}

async function act(word) {
  const [name, value = ""] = word.split(":");
  const toolCallId = randomUUID();
  switch (name) {
    case "think":
      return update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "I think." } });
    case "write": {
      // OpenCode names the folder of a call before the model has written the rest of its input.
      const begun = { title: "write", kind: "edit", status: "pending", rawInput: { cwd: process.cwd() } };
      update({ sessionUpdate: "tool_call", toolCallId, ...begun });
      const rawInput = { filePath: value };
      update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress", rawInput });
      appendFileSync(value, "x\n");
      const content = [{ type: "content", content: { type: "text", text: `wrote ${value}` } }];
      return update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
    }
    case "plan": {
      const entries = PLANS[value].map(([content, status]) => ({ content, status, priority: "medium" }));
      return update({ sessionUpdate: "plan", entries });
    }
    case "session": {
      const [, tool, text] = word.split(":");
      const rawInput = inputOf(tool, text);
      const title = `holdfast_session_${tool}`;
      update({
        sessionUpdate: "tool_call",
        toolCallId,
        title,
        kind: "other",
        status: "in_progress",
        rawInput,
      });
      const server = servers.find((one) => one.name === "holdfast_session");
      const env = Object.fromEntries(server.env.map(({ name: variable, value: given }) => [variable, given]));
      const given = await sessionTools({ ...server, env })(tool, rawInput);
      const content = [{ type: "content", content: { type: "text", text: given.text } }];
      const status = given.isError ? "failed" : "completed";
      return update({ sessionUpdate: "tool_call_update", toolCallId, status, content });
    }
    case "ask": {
      // The call was not named before, as with Gemini CLI, which gives no input either.
      const isGemini = process.argv.includes("--acp");
      const named = isGemini
        ? { title: `Writing to ${value}`, locations: [{ path: join(process.cwd(), value) }] }
        : { title: "write", rawInput: { filePath: value } };
      const answer = await ask({ toolCallId, kind: "edit", ...named });
      appendFileSync(join(HOME, "answers"), `${JSON.stringify(answer)}\n`);
      const isAllowed = answer.outcome.optionId === "yes";
      if (isAllowed) appendFileSync(value, "x\n");
      return update({
        sessionUpdate: "tool_call_update",
        toolCallId,
        status: isAllowed ? "completed" : "failed",
      });
    }
    case "step": {
      // The program remembers in its session which steps it has done.
      const file = fileOf(sessionId);
      if (readFileSync(file, "utf8").includes(`"step ${value} done"`)) return undefined;
      const rawInput = { command: `step ${value}` };
      update({
        sessionUpdate: "tool_call",
        toolCallId,
        title: "bash",
        kind: "execute",
        status: "in_progress",
        rawInput,
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
      appendFileSync("steps", `${value}\n`);
      appendFileSync(file, `"step ${value} done"\n`);
      const content = [{ type: "content", content: { type: "text", text: `step ${value} is done` } }];
      return update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
    }
    case "hang": {
      const mark = join(HOME, "hung");
      if (existsSync(mark)) return undefined;
      writeFileSync(mark, "");
      const rawInput = { command: "sleep 1000" };
      update({
        sessionUpdate: "tool_call",
        toolCallId,
        title: "bash",
        kind: "execute",
        status: "in_progress",
        rawInput,
      });
      const daemon = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
      appendFileSync(join(HOME, "pids"), `${process.pid}\n${daemon.pid}\n`);
      return new Promise(() => setInterval(() => {}, 1_000));
    }
    case "gate":
      return atGate(value);
    case "stubborn": {
      const mark = join(HOME, "was-stubborn");
      if (existsSync(mark)) return undefined;
      writeFileSync(mark, "");
      const rawInput = { command: "sleep 1000" };
      update({
        sessionUpdate: "tool_call",
        toolCallId,
        title: "bash",
        kind: "execute",
        status: "in_progress",
        rawInput,
      });
      return beStubborn();
    }
    case "cancelled":
      cancel();
      return new Promise(() => {});
    case "garbage":
      process.stdout.write('no JSON\n[1]\n{"jsonrpc":"1.0"}\n');
      write({ method: "_tomorrow/news", params: { unknown: true } });
      write({ method: "session/update", params: "a text" });
      return update({ sessionUpdate: "tomorrow", content: 1 });
    case "huge":
      process.stdout.on("error", () => process.exit(1));
      return process.stdout.write("x".repeat(20 * 1024 * 1024));
    default:
      return undefined;
  }
}

async function prompt(params) {
  const cancelled = new Promise((resolve) => (cancel = () => resolve("cancelled")));
  const words = params.prompt[0].text.split("\n").at(-1).split(" ");
  appendFileSync(fileOf(sessionId), `${JSON.stringify(params.prompt)}\n`);
  appendFileSync(join(HOME, "chosen"), `${chosen.model} ${chosen.mode}\n`);
  const work = (async () => {
    for (const word of words) await act(word);
    say(`Done: ${words.join(" ")}`);
    return "end_turn";
  })();
  return { stopReason: await Promise.race([work, cancelled]), usage: { inputTokens: 10, outputTokens: 1 } };
}

/** A new process begins with the first of each, as programs do. */
const chosen = { model: "first", mode: "auto" };
const offered = { model: ["first", "second"], mode: ["auto", "default", "build", "plan", "read-only"] };
const configOptions = () =>
  Object.entries(offered).map(([category, values]) => ({
    id: `own-${category}`,
    category,
    type: "select",
    currentValue: chosen[category],
    // The first value is in a group.
    options: [
      { group: "g", options: [{ value: values[0] }] },
      ...values.slice(1).map((value) => ({ value })),
    ],
  }));

const METHODS = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, sessionCapabilities: {} },
    ...(fault("steering") === undefined ? {} : { _meta: { steering: { supported: true } } }),
    agentInfo: { name: "fake", version: "1.18.33" },
  }),
  "session/new": (params) => {
    servers = params.mcpServers;
    sessionId = `fake_${randomUUID()}`;
    writeFileSync(fileOf(sessionId), "");
    return { sessionId, configOptions: configOptions() };
  },
  "session/load": (params) => {
    sessionId = params.sessionId;
    servers = params.mcpServers;
    if (!existsSync(fileOf(sessionId))) throw new Error("no such session");
    // The history is repeated, as the protocol says.
    if (readFileSync(fileOf(sessionId), "utf8") !== "")
      update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: OLD_ANSWER } });
    sessionId = resumedId(sessionId);
    return { configOptions: configOptions() };
  },
  "session/set_config_option": ({ configId, value }) => {
    chosen[configId.slice("own-".length)] = value;
    return { configOptions: configOptions() };
  },
  "session/prompt": prompt,
  "session/cancel": () => cancel(),
  "_session/steering": (params) => {
    say(`You say: ${params.prompt[0].text}`);
    return { outcome: "injected" };
  },
};

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params, result } = JSON.parse(line);
    if (method === undefined) return waiting.get(id)?.(result);
    void (async () => {
      try {
        const given = await METHODS[method](params);
        if (id !== undefined) write({ id, result: given ?? {} });
      } catch (error) {
        if (id !== undefined) write({ id, error: { code: -32603, message: error.message } });
      }
    })();
  })
  .on("close", () => process.exit(0));
