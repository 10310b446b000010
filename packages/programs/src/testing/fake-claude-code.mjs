// A program that speaks the stream-json protocol of Claude Code as it was observed, for tests. Each word of the prompt's first line is an act,
// such as `write:notes.txt`. It stores its session in $HOME/.claude as the real program does, and a line of each start in $HOME/claude.log.

import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  atGate,
  beStubborn,
  CHOICES,
  fault,
  FORM,
  OLD_ANSWER,
  PLANS,
  resumedId,
  writeMessage,
} from "./fake-acts.mjs";
import { inputOf, sessionTools } from "./fake-session-tools.mjs";

const { HOME = "/", FAKE_CLAUDE_VERSION = "2.1.329" } = process.env;
const args = process.argv.slice(2);
if (args[0] === "--version") {
  console.log(`${FAKE_CLAUDE_VERSION} (Claude Code)`);
  process.exit(0);
}

if (args[0] === "--help") {
  if (!existsSync(join(HOME, "no-budget-option")))
    console.log("  --max-budget-usd <amount>  Maximum dollar amount");
  process.exit(0);
}

const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
/** As the real program, it reads its MCP servers before it says that it begins. */
const servers = args
  .filter((path, at) => args[at - 1] === "--mcp-config" && existsSync(path))
  .reduce((all, path) => ({ ...all, ...JSON.parse(readFileSync(path, "utf8")).mcpServers }), {});
const [startId, resumeId] = [option("--session-id"), option("--resume")];
const id = startId ?? resumeId;
const sessions = join(HOME, ".claude/projects/-fake");
const file = join(sessions, `${id}.jsonl`);
const model = option("--model") ?? "claude-sonnet-4-5";
const sumOf = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length : 0);

appendFileSync(
  join(HOME, "claude.log"),
  `${JSON.stringify({ args, env: Object.keys(process.env), cwd: process.cwd(), pid: process.pid })}\n`,
);

/** The id that it writes. */
const writtenId = resumeId === undefined ? id : resumedId(id);
const say = (message) => writeMessage({ ...message, session_id: writtenId });
let stores = true;
const store = (line) => {
  if (!stores) return;
  mkdirSync(sessions, { recursive: true });
  appendFileSync(file, `${JSON.stringify(line)}\n`);
};
const storeUser = (content) => store({ type: "user", message: { role: "user", content } });
const result = (fields) =>
  say({
    type: "result",
    subtype: "success",
    is_error: false,
    terminal_reason: "completed",
    queued_turn_count: 0,
    ...fields,
  });

if (startId !== undefined && existsSync(file)) {
  process.stderr.write(`Error: Session ID ${id} is already in use.\n`);
  process.exit(1);
}
if (resumeId !== undefined && !existsSync(file)) {
  const errors = [`No conversation found with session ID: ${id}`];
  result({ subtype: "error_during_execution", is_error: true, terminal_reason: undefined, errors });
  process.exitCode = 1;
  process.exit();
}

/** The sums of this process, as the real program reports them by model. */
const used = { inputTokens: 0, outputTokens: 0, cacheReadInputTokens: 0 };
/** @param parent the call that started the sub-agent whose message this is. */
function assistant(block, usage = { input_tokens: 10, output_tokens: 5 }, parent = null) {
  const message = { id: `msg_${randomUUID()}`, model, role: "assistant" };
  const requestRef = randomUUID();
  const stop_reason = block.type === "tool_use" ? "tool_use" : "end_turn";
  if (parent === null) store({ type: "api-request", id: requestRef }); // A sub-agent has a file of its own.
  const { output_tokens, ...input } = usage;
  used.inputTokens += input.input_tokens;
  used.outputTokens += output_tokens;
  used.cacheReadInputTokens += input.cache_read_input_tokens ?? 0;
  const stream = (event) => say({ type: "stream_event", event, parent_tool_use_id: parent });
  stream({
    type: "message_start",
    message: { ...message, content: [], usage: { ...input, output_tokens: 1 } },
  });
  if (block.type === "text") {
    stream({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
    stream({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: block.text } });
  }
  const stored = { ...message, content: [block], usage };
  if (parent === null) store({ type: "assistant", requestRef, message: { ...stored, stop_reason } });
  say({ type: "assistant", message: stored, parent_tool_use_id: parent });
  stream({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens } });
  stream({ type: "message_stop" });
}
function toolCall(name, input, parent = null) {
  const callId = `toolu_${randomUUID()}`;
  assistant({ type: "tool_use", id: callId, name, input }, undefined, parent);
  return callId;
}
function toolResult(callId, text, isError = false, parent = null) {
  const content = [{ type: "tool_result", tool_use_id: callId, content: text, is_error: isError }];
  if (parent === null) storeUser(content);
  say({ type: "user", message: { role: "user", content }, parent_tool_use_id: parent });
}
/** Acts that happen in the first turn alone. */
const once = (word) => {
  const mark = join(HOME, `done-${word.replaceAll(/\W/g, "_")}`);
  if (existsSync(mark)) return false;
  writeFileSync(mark, "");
  return true;
};
/** Messages after the answer, before the end of the turn. */
const afterAnswer = [];
const never = () => new Promise(() => setInterval(() => {}, 1_000));

const answers = new Map();
/** Asks the host and waits for its answer. */
async function permission(tool, input, callId) {
  const requestId = `ask-${callId}`;
  const answered = new Promise((resolve) => answers.set(requestId, resolve));
  const request = { subtype: "can_use_tool", tool_name: tool, tool_use_id: callId, input };
  say({ type: "control_request", request_id: requestId, request });
  const answer = await answered;
  appendFileSync(join(HOME, "answers"), `${JSON.stringify(answer)}\n`);
  toolResult(callId, answer.behavior === "allow" ? "allowed" : answer.message, answer.behavior !== "allow");
  return answer;
}

async function endless() {
  const piece = "x".repeat(1024 * 1024);
  process.stdout.on("error", () => process.exit(1));
  for (;;)
    if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once("drain", resolve));
}

async function act(word) {
  const [name, value = ""] = word.split(":");
  switch (name) {
    // Asks its model, as the real program does, and says the reply.
    case "ask-model": {
      const { ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY } = process.env;
      const response = await fetch(`${ANTHROPIC_BASE_URL}/v1/messages`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "anthropic-version": "2023-06-01",
          "x-api-key": ANTHROPIC_API_KEY ?? "none",
        },
        body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: "user", content: "hello" }] }),
      });
      const { content, detail } = await response.json();
      return assistant({ type: "text", text: content?.[0]?.text ?? `${response.status} ${detail}` });
    }
    // Runs a script of the folder, as a command of its model.
    case "script":
      spawnSync("sh", [value], { stdio: "ignore" });
      return undefined;
    case "think":
      return assistant({ type: "thinking", thinking: "I think." });
    case "write": {
      const call = toolCall("Write", { file_path: value, content: "x" });
      appendFileSync(value, "x\n");
      return toolResult(call, `wrote ${value}`);
    }
    case "plan": {
      const todos = PLANS[value].map(([content, status]) => ({ content, status, activeForm: content }));
      return toolResult(toolCall("TodoWrite", { todos }), "Todos have been modified");
    }
    case "sub-agent": {
      const prompt = "Look around.";
      const parent = toolCall("Task", { description: "look", prompt, subagent_type: "Explore" });
      const content = [{ type: "text", text: prompt }];
      say({ type: "user", message: { role: "user", content }, parent_tool_use_id: parent });
      assistant({ type: "thinking", thinking: "The sub-agent thinks." }, undefined, parent);
      toolResult(toolCall("Bash", { command: "ls" }, parent), "listed", false, parent);
      const block = { type: "text", text: "The sub-agent has looked." };
      if (value === "late") afterAnswer.push(() => assistant(block, undefined, parent));
      else assistant(block, undefined, parent);
      return toolResult(parent, block.text);
    }
    case "ask": {
      const input = { file_path: value, content: "x" };
      const answer = await permission("Write", input, toolCall("Write", input));
      return answer.behavior === "allow" && appendFileSync(answer.updatedInput.file_path, "x\n");
    }
    case "session": {
      const [, tool, text] = word.split(":");
      const input = inputOf(tool, text);
      const callId = toolCall(`mcp__holdfast_session__${tool}`, input);
      const given = await sessionTools(servers.holdfast_session)(tool, input);
      appendFileSync(join(HOME, "session-results"), `${given.text}\n`);
      return toolResult(callId, given.text, given.isError);
    }
    case "unknown-request":
      return say({
        type: "control_request",
        request_id: "other",
        request: { subtype: "request_user_dialog" },
      });
    case "choose": {
      const questions = CHOICES.map(({ id: _ofCodex, ...question }) => question);
      return permission("AskUserQuestion", { questions }, toolCall("AskUserQuestion", { questions }));
    }
    case "elicit": {
      const answered = new Promise((resolve) => answers.set("elicit", resolve));
      const { message, schema } = FORM;
      const request = { subtype: "elicitation", mcp_server_name: "notes", mode: "form", message };
      say({
        type: "control_request",
        request_id: "elicit",
        request: { ...request, requested_schema: schema },
      });
      return appendFileSync(join(HOME, "answers"), `${JSON.stringify(await answered)}\n`);
    }
    case "withdraw": {
      const callId = toolCall("Bash", { command: "ls" });
      void permission("Bash", { command: "ls" }, callId);
      await new Promise((resolve) => setTimeout(resolve, 300));
      say({ type: "control_cancel_request", request_id: `ask-${callId}` });
      return toolResult(callId, "withdrawn", true);
    }
    case "step": {
      // The program remembers in its session which steps it has done.
      if (existsSync(file) && readFileSync(file, "utf8").includes(`"step ${value} done"`)) return undefined;
      const callId = toolCall("Bash", { command: `step ${value}` });
      await new Promise((resolve) => setTimeout(resolve, 100));
      appendFileSync("steps", `${value}\n`);
      store(`step ${value} done`);
      return toolResult(callId, `step ${value} is done`);
    }
    case "gate":
      return atGate(value);
    case "restless": // It works of itself, after its answer.
      setTimeout(() => assistant({ type: "text", text: "Nobody asked." }), 300);
      return undefined;
    case "rm-folder":
      rmSync(process.cwd(), { recursive: true });
      return toolResult(toolCall("Bash", { command: "rm -rf ." }), "removed");
    case "env":
      return toolResult(toolCall("Bash", { command: "env" }), JSON.stringify(process.env));
    case "die": // In the middle of a call of a tool.
      if (!once(word)) return undefined;
      toolCall("Bash", { command: "make deploy" });
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
      return never();
    case "always-die":
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
      return never();
    case "hang": {
      if (!once(word)) return undefined;
      toolCall("Bash", { command: "sleep 1000" });
      const daemon = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
      appendFileSync(join(HOME, "pids"), `${process.pid}\n${daemon.pid}\n`);
      return never();
    }
    case "no-answer": // Once; its model does not answer.
      if (!once(word)) return undefined;
      store({ type: "api-request", id: randomUUID() });
      return never();
    case "stubborn":
      if (!once(word)) return undefined;
      toolCall("Bash", { command: "sleep 1000" });
      return beStubborn();
    case "forget": // Dies before its session is on the disk.
      return undefined;
    case "garbage":
      process.stdout.write('this is no JSON\n{"type": \n[1]\n\n');
      process.stdout.write(Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]));
      say({ type: "tomorrow", what: { is: "unknown" } });
      return say({ type: "user", message: { content: "a text" } });
    case "bytes": // A text with bytes that are no UTF-8.
      return process.stdout.write(
        Buffer.concat([
          Buffer.from('{"type":"assistant","message":{"content":[{"type":"text","text":"a'),
          Buffer.from([0xff]),
          Buffer.from('b"}]}}\n'),
        ]),
      );
    case "huge":
      return endless();
    case "api-error":
      result({ is_error: true, terminal_reason: "api_error", result: "Invalid API key · Please run /login" });
      return process.exit(1);
    case "limit": {
      // Once; the value says how long from now it lasts, in seconds.
      if (!once(word)) return undefined;
      const resetsAt = Math.floor(Date.now() / 1_000) + Number(value);
      say({
        type: "rate_limit_event",
        rate_limit_info: { status: "rejected", resetsAt, rateLimitType: "five_hour" },
      });
      result({ is_error: true, terminal_reason: "api_error", result: "You've hit your session limit" });
      return process.exit(1);
    }
    case "own-limit":
      if (!once(word)) return undefined;
      result({
        subtype: "error_max_budget_usd",
        is_error: true,
        terminal_reason: "budget_exhausted",
        errors: ["Reached maximum budget"],
      });
      return process.exit(1);
    case "logged-out":
      if (!once(word)) return undefined;
      result({ is_error: true, terminal_reason: "api_error", result: "Invalid API key · Please run /login" });
      return process.exit(1);
    case "exit":
      process.stderr.write("error: unknown option '--verbose'\n");
      return process.exit(1);
    default:
      return undefined;
  }
}

let running = false;
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "control_request" && message.request.subtype === "interrupt") {
    say({
      type: "control_response",
      response: { subtype: "success", request_id: message.request_id, response: {} },
    });
    if (running)
      result({ subtype: "error_during_execution", is_error: true, terminal_reason: "aborted_tools" });
    process.exit(0);
  }
  if (message.type === "control_response") {
    const { request_id: requestId, subtype, response, error } = message.response;
    if (subtype === "error") appendFileSync(join(HOME, "answers"), `${error}\n`);
    return answers.get(requestId)?.(response);
  }
  if (message.type !== "user") return;
  const prompt = message.message.content[0].text;
  if (running) {
    say({ type: "command_lifecycle", command_uuid: message.uuid, state: "started" });
    storeUser([{ type: "text", text: prompt }]);
    return assistant({ type: "text", text: `You say: ${prompt}` });
  }
  running = true;
  // It reads commands where a person has typed the message.
  void work(message.client_composed === false ? `command ${prompt}` : prompt);
});

async function work(prompt) {
  // The request stands in the last line of a request to continue.
  const words = prompt.split("\n").at(-1).split(" ");
  if (words.includes("exit")) await act("exit");
  if (resumeId !== undefined && fault("repeat-history") !== undefined) {
    stores = false;
    assistant({ type: "text", text: OLD_ANSWER });
    toolResult(toolCall("Write", { file_path: "old.txt", content: "x" }), "an old result");
    stores = true;
  }
  say({
    type: "system",
    subtype: "init",
    model,
    claude_code_version: FAKE_CLAUDE_VERSION,
    permissionMode: option("--permission-mode"),
    cwd: process.cwd(),
  });
  if (words.includes("forget") && once("forget")) process.kill(process.pid, "SIGKILL");
  storeUser([{ type: "text", text: prompt }]);
  for (const word of words) await act(word);
  const text = `Done: ${words.join(" ")}`;
  assistant({ type: "text", text }, { input_tokens: 100, cache_read_input_tokens: 1_000, output_tokens: 20 });
  for (const late of afterAnswer.splice(0)) late();
  result({
    result: text,
    total_cost_usd: sumOf(), // The sum over the session, which nobody should add up.
    model_usage_since_last_result: { [model]: used, "claude-haiku-4-5": { inputTokens: 7, outputTokens: 3 } },
  });
  running = false;
}
