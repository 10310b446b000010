// A program that speaks Holdfast's own JSON lines, for tests. Its acts are those of `fake-acts.mjs`. It stores its sessions in $HOME/.lines.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { doActs, readMessages, resumedId, writeMessage } from "./fake-acts.mjs";

const sessions = join(process.env["HOME"] ?? "/", ".lines");
mkdirSync(sessions, { recursive: true });
const answers = new Map();
let file = "";

const speech = {
  call(name, input) {
    const id = randomUUID();
    writeMessage({ type: "tool_call", id, name, input });
    return id;
  },
  result: (id, text, isError) => writeMessage({ type: "tool_result", id, text, isError }),
  async ask(id, tool, input) {
    const answered = new Promise((resolve) => answers.set(id, resolve));
    writeMessage({ type: "ask", id, tool, input });
    const { allowed, message } = await answered;
    return { isAllowed: allowed, answer: message ?? "allow" };
  },
  callSession(tool, input) {
    const id = randomUUID();
    const answered = new Promise((resolve) => answers.set(id, resolve));
    writeMessage({ type: "call", id, tool, input });
    return answered;
  },
  plan: (steps) =>
    writeMessage({ type: "plan", steps: steps.map(([step, status]) => ({ text: step, status })) }),
  memory: () => file,
  think: (text) => writeMessage({ type: "thinking", text }),
  use: (inputTokens) => writeMessage({ type: "usage", model: "test/model", inputTokens }),
  garbage() {
    writeMessage({ type: "tomorrow", is: "unknown" });
    writeMessage({ type: "tool_call" });
  },
};

await readMessages((message) => {
  switch (message.type) {
    case "prompt":
      return void work(message);
    case "answer":
    case "call_result":
      return answers.get(message.id)?.(message);
    case "message":
      return writeMessage({ type: "text", text: `You say: ${message.text}` });
    case "interrupt":
      writeMessage({ type: "aborted" });
      return process.exit(0);
    default:
      return undefined;
  }
});

async function work({ text: prompt, session, resumed }) {
  file = join(sessions, session);
  if (resumed && !existsSync(file)) return writeMessage({ type: "unknown_session" });
  writeMessage({ type: "session", session: resumed ? resumedId(session) : session, model: "test/model" });
  appendFileSync(file, `${JSON.stringify(prompt)}\n`);
  const text = await doActs(prompt, speech);
  writeMessage({ type: "text", text });
  writeMessage({ type: "usage", model: "test/model", inputTokens: 110, outputTokens: 20 });
  return writeMessage({ type: "done" });
}
