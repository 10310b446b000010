// A small MCP server for tests, written after the protocol and without an SDK. Its arguments choose how it misbehaves.
//
// Its second argument is a file: each start, call and end is a line of it.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { argv, env, exit, pid, stdin, stdout } from "node:process";

const [, , mode = "good", log] = argv;
const note = (text) => log !== undefined && appendFileSync(log, `${text}\n`);
note(`start ${pid}`);
const send = (message) => stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const tool = (name, annotations = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  annotations,
});
const TOOLS = [
  tool("greet", { readOnlyHint: true }),
  tool("count"),
  tool("die"),
  tool("die_reading", { readOnlyHint: true }),
  tool("flood"),
  tool("large"),
  tool("change"),
  tool("wait"),
  tool("ask"),
  tool("ask_reading", { readOnlyHint: true }),
  tool("ask_forever"),
  tool("ask_address"),
  tool("environment", { readOnlyHint: true }),
  tool("picture", { readOnlyHint: true }),
];
if (mode === "mute") setInterval(() => {}, 1_000);
else if (mode === "exit") exit(3);
else if (mode === "garbage") for (let at = 0; at < 200; at++) stdout.write(`garbage ${at}\n`);
if (mode === "greeting") stdout.write("Welcome to the server!\n");

const text = (said) => ({ content: [{ type: "text", text: said }] });
/** Questions of ours to the client, by id. */
const waiting = new Map();
const ask = (params) =>
  new Promise((resolve) => {
    const id = `question ${waiting.size}`;
    waiting.set(id, resolve);
    send({ id, method: "elicitation/create", params });
  });
const FORM = {
  message: "Which size?",
  requestedSchema: {
    type: "object",
    properties: {
      size: { type: "string", enum: ["small", "large"] },
      count: { type: "integer", default: 1 },
    },
    required: ["size"],
  },
};
const input = createInterface({ input: stdin });
input.on("close", () => note("end"));
input.on("line", (line) => {
  const { id, method, params, result: said } = JSON.parse(line);
  if (method === undefined) return void waiting.get(id)?.(said);
  if (id === undefined || mode === "mute") return;
  const answer = (result) => send({ id, result });
  if (method === "initialize")
    return answer({
      protocolVersion: "2025-11-25",
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "test", version: "1" },
      instructions: "Greet first.",
    });
  if (method === "tools/list") return answer({ tools: TOOLS });
  if (method !== "tools/call") return send({ id, error: { code: -32601, message: "no such method" } });
  const { name } = params;
  note(`call ${name}`);
  switch (name) {
    case "greet":
      return answer(text(`Hello ${params.arguments.text}, ${env.TEST_TOKEN ?? "no token"}.`));
    case "environment":
      return answer(text(Object.keys(env).toSorted().join(" ")));
    case "die":
    case "die_reading":
      return exit(7);
    case "ask":
    case "ask_reading":
      return void ask(FORM).then(({ action, content }) => {
        answer(text(`${action} ${content?.size} ${content?.count}`));
      });
    case "ask_address":
      return void ask({
        mode: "url",
        message: "Pay first.",
        url: "https://pay.example/1",
        elicitationId: "1",
      }).then(({ action }) => answer(text(action)));
    case "ask_forever": {
      const again = (at) => ask({ ...FORM, message: `Question ${at}?` }).then(() => again(at + 1));
      return void again(1);
    }
    case "wait":
      return;
    case "flood":
      return void stdout.write("x".repeat(20 * 1024 * 1024));
    case "large":
      return answer(text(`begin${"x".repeat(1_000_000)}end`));
    case "picture":
      return answer({
        content: [
          { type: "text", text: "A picture and more." },
          { type: "image", mimeType: "image/png", data: Buffer.alloc(90_000, 7).toString("base64") },
          { type: "audio", mimeType: "audio/wav", data: Buffer.alloc(300, 1).toString("base64") },
          { type: "resource", resource: { uri: "file:///a.txt", text: "The text of a resource." } },
          { type: "resource", resource: { uri: "file:///a.zip", mimeType: "application/zip", blob: "AAAA" } },
          { type: "resource_link", uri: "file:///b.txt", name: "b.txt" },
          { type: "image", mimeType: "image/png", data: "A".repeat(6 * 1024 * 1024) },
        ],
      });
    case "change":
      send({ method: "notifications/tools/list_changed" });
      return send({ id, error: { code: -32602, message: "Unknown tool: change" } });
    default:
      return answer(text("counted"));
  }
});
