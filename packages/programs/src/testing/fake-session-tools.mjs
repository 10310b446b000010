// A client of the tools of a session, for fake agents (`sessionTools`). It starts the MCP server that the agent was given, as a real agent does.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** The arguments of a call with one text, in which an underscore stands for a space. */
export const inputOf = (tool, given) => {
  if (tool === "remaining_budget") return {};
  if (tool === "start_agent_session") return { agent_name: given, parameters: { prompt: "write:b.txt" } };
  if (tool === "delete_all_agent_sessions" || tool.startsWith("list_")) return {};
  const text = given.replaceAll("_", " ");
  return tool === "ask_parent" || tool === "request_input" ? { question: text } : { text };
};

/** @returns calls one tool. */
export function sessionTools({ command, args, env = {} }) {
  const server = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const waiting = new Map();
  createInterface({ input: server.stdout }).on("line", (line) => {
    const { id, result, error } = JSON.parse(line);
    waiting.get(id)?.(result ?? { content: [{ text: error.message }], isError: true });
  });
  let count = 0;
  const request = (method, params) => {
    const id = ++count;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return answered;
  };
  const clientInfo = { name: "fake", version: "1" };
  const opened = request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  return async (name, input) => {
    await opened;
    const { tools } = await request("tools/list", {});
    if (!tools.some((tool) => tool.name === name)) throw new Error(`no tool ${name}`);
    const { content, isError } = await request("tools/call", { name, arguments: input });
    server.stdin.end();
    return { text: content[0].text, isError };
  };
}
