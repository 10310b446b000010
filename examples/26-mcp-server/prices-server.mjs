// An MCP server over standard input and output, with one tool. It is written without an SDK to show what a server says.

import { createInterface } from "node:readline";

const PRICES = { tea: 250, coffee: 320 };
const TOOL = {
  name: "price",
  description: "The price of a thing, in cents.",
  inputSchema: { type: "object", properties: { thing: { type: "string" } }, required: ["thing"] },
  annotations: { readOnlyHint: true },
};

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "prices", version: "1.0.0" },
      };
    case "tools/list":
      return { tools: [TOOL] };
    case "tools/call": {
      const cents = PRICES[params.arguments.thing];
      const text = cents === undefined ? "There is no such thing." : `${cents} cents`;
      return { content: [{ type: "text", text }], isError: cents === undefined };
    }
    default:
      return undefined;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue; // A notification has no answer.
  const result = answer(request);
  const error = { code: -32601, message: `there is no method ${request.method}` };
  const reply = { jsonrpc: "2.0", id: request.id, ...(result === undefined ? { error } : { result }) };
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
