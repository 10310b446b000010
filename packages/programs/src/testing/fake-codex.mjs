// A program that speaks the app-server protocol of Codex as it was observed, for tests. Its acts are those of `fake-acts.mjs`. It stores its
// sessions in $HOME/.codex/sessions.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  answerVersion,
  doActs,
  OLD_ANSWER,
  readMessages,
  record,
  resumedId,
  writeMessage,
} from "./fake-acts.mjs";
import { sessionTools } from "./fake-session-tools.mjs";

answerVersion("codex-cli 0.169.0");
const sessions = join(process.env["HOME"] ?? "/", ".codex/sessions/2026/11/27");
mkdirSync(sessions, { recursive: true });

const [waiting, answers, reports] = [new Map(), new Map(), new Map()];
let threadId;
let servers = {};
let turnId;
let model;
let interrupt = () => {};
let asked = 0;

const notifyOf = (thread, turn, method, params) =>
  writeMessage({ method, params: { threadId: thread, turnId: turn, ...params } });
const notify = (method, params) => writeMessage({ method, params: { threadId, turnId, ...params } });
const fileOf = (id) => join(sessions, `rollout-2026-11-27T10-00-00-${id}.jsonl`);
const store = (type, payload) =>
  appendFileSync(
    fileOf(threadId),
    `${JSON.stringify({ timestamp: new Date().toISOString(), type, payload })}\n`,
  );
const storeItem = (payload) => store("response_item", payload);
/** The tokens of the thread. */
let total = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
const stored = ({ inputTokens = 0, cachedInputTokens = 0, outputTokens = 0 }) => ({
  input_tokens: inputTokens,
  cached_input_tokens: cachedInputTokens,
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
});
/** Stores a call of the model at its end. @returns what tells the host of it, once the tools of the call have ended. */
function called(last) {
  total = {
    inputTokens: total.inputTokens + (last.inputTokens ?? 0),
    cachedInputTokens: total.cachedInputTokens + (last.cachedInputTokens ?? 0),
    outputTokens: total.outputTokens + (last.outputTokens ?? 0),
  };
  const [own, usage, thread_token_usage] = [total, stored(last), stored(total)];
  store("token_usage_record", { thread_id: threadId, turn_id: turnId, usage, thread_token_usage });
  return () => {
    const info = { total_token_usage: thread_token_usage, last_token_usage: usage };
    store("event_msg", { type: "token_count", info });
    notify("thread/tokenUsage/updated", { tokenUsage: { last, total: own } });
  };
}
/** The tokens of the thread, as its rollout has them. */
function storedTotal(file) {
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const last = lines.findLast((line) => line.includes('"token_usage_record"'));
  if (last === undefined) return total;
  const { input_tokens, cached_input_tokens, output_tokens } = JSON.parse(last).payload.thread_token_usage;
  return { inputTokens: input_tokens, cachedInputTokens: cached_input_tokens, outputTokens: output_tokens };
}
const started = (item) => notify("item/started", { item });
const completed = (item) => notify("item/completed", { item });

function itemOf(tool, input) {
  const id = `call_${randomUUID()}`;
  const [, server, name] = /^mcp__(holdfast_session)__(\w+)$/.exec(tool) ?? [];
  const mcpCall = { type: "mcpToolCall", id, server, tool: name, arguments: input, status: "inProgress" };
  if (name !== undefined) {
    waiting.set(id, mcpCall);
    return mcpCall;
  }
  const item =
    tool === "shell"
      ? {
          type: "commandExecution",
          id,
          command: `/bin/bash -lc '${input.command}'`,
          status: "inProgress",
          aggregatedOutput: null,
        }
      : {
          type: "fileChange",
          id,
          changes: [{ path: input.path, kind: { type: "add" }, diff: "x\n" }],
          status: "inProgress",
        };
  waiting.set(id, item);
  return item;
}

/** A request to the host. */
function request(method, params) {
  const id = `ask-${++asked}`;
  const answered = new Promise((resolve) => answers.set(id, resolve));
  writeMessage({ id, method, params: { threadId, turnId, ...params } });
  return answered;
}

const speech = {
  async choose(choices) {
    const questions = choices.map(({ multiSelect: _ofClaude, ...question }) => question);
    record(
      "answers",
      JSON.stringify(await request("item/tool/requestUserInput", { itemId: "q", questions })),
    );
  },
  async elicit({ message, schema }) {
    const asks = { serverName: "notes", mode: "form", message, requestedSchema: schema };
    record("answers", JSON.stringify(await request("mcpServer/elicitation/request", asks)));
  },
  call(tool, input) {
    const item = itemOf(tool, input);
    storeItem({ type: "function_call", name: tool, arguments: JSON.stringify(input), call_id: item.id });
    reports.set(item.id, called({ inputTokens: 50, outputTokens: 6 }));
    started(item);
    return item.id;
  },
  result(id, text, isError) {
    storeItem({ type: "function_call_output", call_id: id, output: text });
    reports.get(id)();
    const status = isError ? "declined" : "completed";
    const item = { ...waiting.get(id), status };
    if (item.type === "mcpToolCall")
      return completed({ ...item, result: { content: [{ type: "text", text }] } });
    completed(
      item.type === "fileChange" ? item : { ...item, aggregatedOutput: text, exitCode: isError ? 1 : 0 },
    );
  },
  async ask(itemId) {
    const answer = await request("item/fileChange/requestApproval", { itemId, reason: null });
    return { isAllowed: answer.decision === "accept", answer };
  },
  callSession: (tool, input) => sessionTools(servers["mcp_servers.holdfast_session"])(tool, input),
  /** The turn fails, as it does when the account has reached a limit. */
  fail(cause, resetsAt) {
    const isQuota = cause === "quota";
    const message = isQuota ? "You've hit your usage limit." : "unexpected status 401 Unauthorized";
    const error = { message, codexErrorInfo: isQuota ? "usageLimitExceeded" : "unauthorized" };
    const primary = { usedPercent: 100, windowDurationMins: 300, resetsAt };
    if (isQuota) writeMessage({ method: "account/rateLimits/updated", params: { rateLimits: { primary } } });
    notify("error", { error, willRetry: false });
    notify("turn/completed", { turn: { id: turnId, status: "failed", error } });
    return new Promise(() => {});
  },
  /** A thread of a sub-agent, whose first item comes before the call that started the thread is completed. */
  subAgent() {
    const [thread, turn, id] = [randomUUID(), randomUUID(), `call_${randomUUID()}`];
    const call = {
      type: "collabAgentToolCall",
      id,
      tool: "spawnAgent",
      senderThreadId: threadId,
      prompt: "Look.",
    };
    const say = (method, params) => notifyOf(thread, turn, method, params);
    const shell = {
      type: "commandExecution",
      id: `call_${randomUUID()}`,
      command: "ls",
      status: "inProgress",
    };
    started({ ...call, status: "inProgress", receiverThreadIds: [] });
    say("turn/started", { turn: { id: turn, status: "inProgress" } });
    const thought = { type: "reasoning", id: randomUUID(), summary: ["The sub-agent thinks."] };
    say("item/completed", { item: thought });
    say("item/started", { item: shell });
    completed({ ...call, status: "completed", receiverThreadIds: [thread] });
    say("item/completed", { item: { ...shell, aggregatedOutput: "listed", exitCode: 0 } });
    say("item/agentMessage/delta", { itemId: "m", delta: "The sub-agent" });
    const text = "The sub-agent has looked.";
    say("item/completed", { item: { type: "agentMessage", id: "m", text } });
    const last = { inputTokens: 50, outputTokens: 6 };
    for (const report of [turn, "an earlier one"])
      notifyOf(thread, report, "thread/tokenUsage/updated", { tokenUsage: { last, total: last } });
    say("turn/completed", { turn: { id: turn, status: "completed", error: null } });
  },
  plan: (steps) =>
    notify("turn/plan/updated", {
      explanation: null,
      plan: steps.map(([step, status]) => ({ step, status: status.replace("_p", "P") })),
    }),
  memory: () => fileOf(threadId),
  think: (text) => completed({ type: "reasoning", id: randomUUID(), summary: [text], content: [] }),
  use: (inputTokens) => called({ inputTokens })(),
  garbage() {
    notify("tomorrow/news", { is: "unknown" });
    writeMessage({ method: "item/completed", params: "a text" });
    writeMessage({ id: "question", method: "tomorrow/ask", params: {} });
    writeMessage({ id: 999, result: {} });
  },
};

async function work(prompt) {
  const interrupted = new Promise((resolve) => (interrupt = () => resolve("interrupted")));
  notify("turn/started", { turn: { id: turnId, status: "inProgress" } });
  if (readFileSync(fileOf(threadId), "utf8") === "")
    store("session_meta", { id: threadId, model_provider: "openai" });
  store("turn_context", { turn_id: turnId, model });
  storeItem({ type: "message", role: "user", content: [{ type: "input_text", text: prompt }] });
  const done = (async () => {
    const text = await doActs(prompt, speech);
    const id = randomUUID();
    for (const delta of text.match(/.{1,4}/g)) notify("item/agentMessage/delta", { itemId: id, delta });
    completed({ type: "agentMessage", id, text });
    storeItem({ type: "message", role: "assistant", content: [{ type: "output_text", text }] });
    called({ inputTokens: 110, cachedInputTokens: 100, outputTokens: 20 })();
    return "completed";
  })();
  const status = await Promise.race([done, interrupted]);
  notify("turn/completed", { turn: { id: turnId, status, error: null } });
}

const opened = () => ({ thread: { id: threadId }, model, modelProvider: "openai" });

const METHODS = {
  initialize: () => ({ userAgent: "fake" }),
  "thread/start": (params) => {
    servers = params.config ?? {};
    record("codex.log", JSON.stringify({ ...params, config: Object.keys(servers) }));
    model = params.model ?? "gpt-5.1-codex";
    threadId = randomUUID();
    writeFileSync(fileOf(threadId), "");
    return opened();
  },
  "thread/resume": (params) => {
    servers = params.config ?? {};
    record("codex.log", JSON.stringify({ ...params, config: Object.keys(servers) }));
    model = params.model ?? "gpt-5.1-codex";
    if (!existsSync(fileOf(params.threadId)))
      throw new Error(`no rollout found for thread id ${params.threadId}`);
    threadId = resumedId(params.threadId);
    total = storedTotal(fileOf(params.threadId));
    // The history is repeated before the turn begins.
    if (readFileSync(fileOf(params.threadId), "utf8") !== "") {
      completed({ type: "agentMessage", id: randomUUID(), text: OLD_ANSWER });
      notify("thread/tokenUsage/updated", {
        turnId: "an earlier one",
        tokenUsage: { last: { inputTokens: 7_000 }, total },
      });
    }
    return opened();
  },
  "turn/start": ({ input }) => {
    turnId = randomUUID();
    setImmediate(() => void work(input[0].text));
    return { turn: { id: turnId, status: "inProgress" } };
  },
  "turn/steer": ({ input, expectedTurnId }) => {
    if (expectedTurnId !== turnId) throw new Error("no such turn");
    completed({ type: "agentMessage", id: randomUUID(), text: `You say: ${input[0].text}` });
    return { turnId };
  },
  "turn/interrupt": () => {
    interrupt();
    return {};
  },
};

await readMessages(({ id, method, params, result }) => {
  if (method === undefined) return answers.get(id)?.(result);
  if (id === undefined) return undefined;
  try {
    return writeMessage({ id, result: METHODS[method](params) });
  } catch (error) {
    return writeMessage({ id, error: { code: -32600, message: error.message } });
  }
});
