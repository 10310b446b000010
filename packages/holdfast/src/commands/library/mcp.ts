import { takeNothing } from "../../frame/arguments.ts";
import type { Command } from "../../frame/command.ts";

export const mcp: Command = {
  name: "mcp",
  summary: "Serve the tools that start sessions to an MCP client, such as Claude Code",
  usage: "mcp [--url URL] [--parent SESSION] [--demand NAME=VALUE...] [--agent-tools] [--allow-delete]",
  description:
    "An MCP server over standard input and output. Its tools start sessions of the agents that runners offer, wait for them and " +
    "return their results: list_agent_blueprints, list_agent_sessions, start_agent_session, resume_agent_session, " +
    "get_agent_session_status, get_agent_session_result and delete_all_agent_sessions. A call that is repeated does no work twice. " +
    "A coordinator serves the same tools at /mcp. Which coordinator: --url, HOLDFAST_URL, the local stack, or http://127.0.0.1:8765. " +
    "Exit codes: 0 the client has ended, 2 an option is wrong, 5 there is no token, 130 stopped by Ctrl-C.",
  options: {
    parent: { help: "the session that is called back by the mode async_callback", value: "SESSION" },
    demand: {
      help: "a label that a runner must have for each session; may be given more than once",
      value: "NAME=VALUE",
      repeats: true,
    },
    "agent-tools": { help: "offer each agent as a tool of its own, too" },
    "allow-delete": {
      help: "let delete_all_agent_sessions delete ended sessions that this token started here",
    },
  },
  examples: [
    ["mcp", "for the configuration of a client: command `holdfast`, arguments `mcp`"],
    ["mcp --agent-tools --demand gpu=yes", "each agent is a tool, and its sessions run where the label is"],
  ],

  async run(args, io) {
    takeNothing(args.positionals, mcp.usage);
    return (await import("../../mcp-server/serve-mcp.ts")).serveMcp(args, io);
  },
};
