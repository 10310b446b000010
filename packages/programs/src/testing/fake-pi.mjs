// A program that speaks the RPC mode of Pi with the extension `pi-gate.ts`, as it was observed, for tests. Its acts are those of
// `fake-acts.mjs`. It stores its sessions in $HOME/.pi/agent/sessions.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { doActs, readMessages, record, resumedId, answerVersion, writeMessage } from "./fake-acts.mjs";

answerVersion("0.87.1");
const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const id = option("--session-id");
const sessions = join(process.env["HOME"] ?? "/", ".pi/agent/sessions/--fake--");
mkdirSync(sessions, { recursive: true });
const file = join(sessions, `2026-11-27T10-00-00_${id}.jsonl`);
const hasGate = existsSync(option("--extension"));
record("pi.log", JSON.stringify(args));

const answers = new Map();
const calls = new Map();
let abort = () => {};

const model = { provider: "anthropic", id: option("--model") ?? "claude-sonnet-4-5" };
const usage = { input: 10, output: 20, cacheRead: 100, cacheWrite: 0, cost: { total: 9 } };
const store = (message) => appendFileSync(file, `${JSON.stringify({ type: "message", message })}\n`);
/** A message of the model, which is stored before the host is told. */
function saidWith(used, content, stopReason = "stop", errorMessage) {
  const named = { provider: model.provider, model: model.id, responseId: `msg_${randomUUID()}` };
  const message = { role: "assistant", content, usage: used, stopReason, errorMessage, ...named };
  store(message);
  writeMessage({ type: "message_end", message });
}
const said = (...message) => saidWith(usage, ...message);

const speech = {
  call(tool, input) {
    const toolCallId = `call_${randomUUID()}`;
    const toolName = tool === "shell" ? "bash" : tool;
    calls.set(toolCallId, toolName);
    said([{ type: "toolCall", id: toolCallId, name: toolName, arguments: input }], "toolUse");
    writeMessage({ type: "tool_execution_start", toolCallId, toolName, args: input });
    return toolCallId;
  },
  result(toolCallId, text, isError) {
    const result = { content: [{ type: "text", text }] };
    store({ role: "toolResult", toolCallId, toolName: calls.get(toolCallId), ...result, isError });
    writeMessage({
      type: "tool_execution_end",
      toolCallId,
      toolName: calls.get(toolCallId),
      result,
      isError,
    });
  },
  async ask(toolCallId, tool, input) {
    if (!hasGate) return { isAllowed: true, answer: "no gate" };
    const askId = randomUUID();
    const answered = new Promise((resolve) => answers.set(askId, resolve));
    writeMessage({
      type: "extension_ui_request",
      id: askId,
      method: "input",
      title: "holdfast:permission",
      placeholder: JSON.stringify({ toolCallId, tool, input }),
    });
    const { value } = await answered;
    return { isAllowed: value === "allow", answer: value };
  },
  async callSession(tool, input) {
    if (!(process.env["HOLDFAST_SESSION_TOOLS"] ?? "").includes(tool)) throw new Error(`no tool ${tool}`);
    const askId = randomUUID();
    const answered = new Promise((resolve) => answers.set(askId, resolve));
    const placeholder = JSON.stringify({ tool, input });
    const asked = { id: askId, method: "input", title: "holdfast:call", placeholder };
    writeMessage({ type: "extension_ui_request", ...asked });
    return JSON.parse((await answered).value);
  },
  /** The turn fails, as it does when the account has reached a limit. */
  fail(cause, resetsAt) {
    const text =
      cause === "quota"
        ? `429 {"type":"usage_limit_reached","resets_at":${resetsAt}}`
        : "No API key for provider";
    said([], "error", text);
    writeMessage({ type: "agent_settled" });
    return new Promise(() => {});
  },
  memory: () => file,
  think: (thinking) => said([{ type: "thinking", thinking }], "toolUse"),
  use: (input) => saidWith({ input }, []),
  garbage() {
    writeMessage({ type: "tomorrow", is: "unknown" });
    writeMessage({ type: "message_end", message: "a text" });
    writeMessage({ type: "extension_ui_request", id: "x", method: "notify", message: "news" });
    writeMessage({ type: "response", command: "tomorrow", success: true });
  },
};

async function work(prompt) {
  const aborted = new Promise((resolve) => (abort = () => resolve("aborted")));
  writeMessage({ type: "agent_start" });
  store({ role: "user", content: [{ type: "text", text: prompt }] });
  const done = (async () => {
    const text = await doActs(prompt, speech);
    for (const delta of text.match(/.{1,4}/g))
      writeMessage({ type: "message_update", assistantMessageEvent: { type: "text_delta", delta } });
    said([{ type: "text", text }]);
  })();
  // Observed: the call of the model that was aborted is an error.
  if ((await Promise.race([done, aborted])) === "aborted") said([], "error", "This operation was aborted");
  writeMessage({ type: "agent_end", messages: [], willRetry: false });
  writeMessage({ type: "agent_settled" });
}

const COMMANDS = {
  get_state: () => ({
    sessionId: resumedId(id),
    messageCount: existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0,
    model,
  }),
  prompt: ({ message }) => void setImmediate(() => void work(message)),
  steer: ({ message }) => said([{ type: "text", text: `You say: ${message}` }]),
  clear_queue: undefined, // Old versions do not know it, and answer without an id.
  abort: () => abort(),
};

await readMessages((command) => {
  const { id: requestId, type } = command;
  if (type === "extension_ui_response") return answers.get(command.id)?.(command);
  const run = COMMANDS[type];
  if (run === undefined)
    return writeMessage({ type: "response", command: type, success: false, error: "unknown command" });
  return writeMessage({ id: requestId, type: "response", command: type, success: true, data: run(command) });
});
