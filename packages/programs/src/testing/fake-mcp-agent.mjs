// An agent behind the tools `begin` and `reply` of an MCP server, for tests. Its acts are those of `fake-acts.mjs`. It stores its sessions in
// $HOME/.mcp-agent.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { doActs, readMessages, resumedId, writeMessage } from "./fake-acts.mjs";

const sessions = join(process.env["HOME"] ?? "/", ".mcp-agent");
mkdirSync(sessions, { recursive: true });
const answers = new Map();
const send = (message) => writeMessage({ jsonrpc: "2.0", ...message });

const speech = {
  call: () => randomUUID(),
  result: () => {},
  think: () => {},
  use: () => {},
  async ask(id) {
    const answered = new Promise((resolve) => answers.set(id, resolve));
    const requestedSchema = { type: "object", properties: {} };
    send({ id, method: "elicitation/create", params: { message: "May I write?", requestedSchema } });
    const answer = await answered;
    return { isAllowed: answer.action === "accept", answer: answer.action };
  },
  garbage() {
    send({ method: "notifications/tomorrow", params: { is: "unknown" } });
  },
};

const schema = { type: "object", properties: { prompt: { type: "string" } } };
const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "fake", version: "1" },
  }),
  "tools/list": () => ({ tools: ["begin", "reply"].map((name) => ({ name, inputSchema: schema })) }),
  async "tools/call"({ name, arguments: { prompt, session = randomUUID() } }) {
    const file = join(sessions, session);
    if (name === "reply" && !existsSync(file))
      return { isError: true, content: [{ type: "text", text: `session not found: ${session}` }] };
    appendFileSync(file, `${JSON.stringify(prompt)}\n`);
    const text = await doActs(prompt, speech);
    return { content: [{ type: "text", text }], structuredContent: { session: resumedId(session) } };
  },
};

await readMessages(({ id, method, params, result }) => {
  if (method === undefined) return answers.get(id)?.(result);
  if (id === undefined) return undefined;
  const run = METHODS[method];
  if (run === undefined) return send({ id, error: { code: -32601, message: "unknown method" } });
  return void Promise.resolve(run(params)).then((given) => send({ id, result: given }));
});
