// A harness of the AI SDK's specification `harness-v1`, for tests. Its acts are those of `fake-acts.mjs`. As a real one without a bridge, it keeps its
// conversation in this process and gives it out between turns alone.

import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { doActs, resumedId } from "./fake-acts.mjs";

const home = process.env["HOME"] ?? "/";
let emitted = 0;

function session(id, memory, permissionMode) {
  const file = join(home, ".harness", id);
  mkdirSync(join(home, ".harness"), { recursive: true });
  writeFileSync(file, memory);
  return {
    sessionId: id,
    async doPromptTurn({ prompt, emit: give, abortSignal, tools }) {
      const waiting = new Map();
      const emit = (part) => {
        give(part);
        const dieAt = join(home, "die-at");
        if (existsSync(dieAt) && ++emitted >= Number(readFileSync(dieAt, "utf8")))
          process.kill(process.pid, "SIGKILL");
      };
      const wait = (key) => new Promise((resolve) => waiting.set(key, resolve));
      const say = (type, text) => {
        emit({ type: `${type}-start`, id: "1" });
        for (const delta of text.split(/(?= )/)) emit({ type: `${type}-delta`, id: "1", delta });
        emit({ type: `${type}-end`, id: "1" });
      };
      const call = (toolName, input) => {
        const toolCallId = randomUUID();
        emit({ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) });
        return toolCallId;
      };
      const speech = {
        call,
        result: (toolCallId, result, isError) => emit({ type: "tool-result", toolCallId, result, isError }),
        async ask(toolCallId) {
          if (permissionMode !== "allow-reads") return { isAllowed: true, answer: "allow" };
          emit({ type: "tool-approval-request", toolCallId, approvalId: `approve-${toolCallId}` });
          const { approved, reason } = await wait(`approve-${toolCallId}`);
          return { isAllowed: approved, answer: reason ?? "allow" };
        },
        async callSession(tool, input) {
          if (!tools.some(({ name }) => name === tool)) throw new Error(`no tool ${tool}`);
          const { output, isError } = await wait(call(tool, input));
          return { text: output, isError };
        },
        memory: () => file,
        think: (text) => say("reasoning", text),
        use: (total) => emit({ type: "finish-step", usage: { inputTokens: { total }, outputTokens: {} } }),
        garbage: () => emit({ type: "tomorrow", is: "unknown" }),
      };
      const work = async () => {
        emit({ type: "stream-start", modelId: "test/model" });
        writeFileSync(file, `${JSON.stringify(prompt)}\n`, { flag: "a" });
        const text = await doActs(prompt, speech);
        say("text", text);
        emit({ type: "finish-step", usage: { inputTokens: { total: 110 }, outputTokens: { total: 20 } } });
        emit({ type: "finish", totalUsage: { inputTokens: { total: 110 }, outputTokens: { total: 20 } } });
      };
      const aborted = new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
      return {
        submitToolResult: async ({ toolCallId, ...given }) => waiting.get(toolCallId)?.(given),
        submitToolApproval: async ({ approvalId, ...given }) => waiting.get(approvalId)?.(given),
        submitUserMessage: async (text) => say("text", `You say: ${text}`),
        done: Promise.race([work(), aborted]),
      };
    },
    doStop: async () => ({ type: "resume-session", data: { id, memory: readFileSync(file, "utf8") } }),
    doDestroy: async () => {},
  };
}

export default {
  specificationVersion: "harness-v1",
  harnessId: "fake",
  builtinTools: {},
  supportsBuiltinToolApprovals: true,
  doStart: async ({ sessionId, resumeFrom, permissionMode }) =>
    resumeFrom === undefined
      ? session(sessionId, "", permissionMode)
      : session(resumedId(sessionId), resumeFrom.data.memory, permissionMode),
};
