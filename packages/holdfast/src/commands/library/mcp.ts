import {
  refuse,
  refuseAction,
  refuseForeignOptions,
  takeNothing,
  takeOnly,
} from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { login, logout } from "../../agents/mcp/mcp-sign-in.ts";
import { addServer, listServers, removeServer, showServer } from "../../agents/mcp/show-mcp-servers.ts";

/** The options of each action. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  serve: ["url", "parent", "demand", "tag", "agent-tools", "allow-delete"],
  list: ["check"],
  show: ["check"],
  add: ["url", "header", "env", "user"],
  remove: ["user"],
  login: ["no-browser", "client-id"],
  logout: [],
};

export const mcp: Command = {
  name: "mcp",
  usage:
    "mcp [serve] [--url URL] [--parent SESSION] [--demand NAME=VALUE...] [--tag A,B] [--agent-tools] [--allow-delete] | mcp list [--check] | mcp show NAME [--check] | mcp add NAME [--user] [--env N=V] -- COMMAND [ARGS...] | mcp add NAME --url URL [--user] [--header N=V] | mcp remove NAME [--user] | mcp login NAME [--no-browser] [--client-id ID] | mcp logout NAME",
  description:
    "Alone, it is an MCP server over standard input and output for a client such as Claude Code. Its tools start sessions of the agents that " +
    "runners offer, wait for them and return their results (docs/orchestrator.md). The coordinator is that of --url, HOLDFAST_URL or the local stack. " +
    "The other actions concern the servers that agents use. " +
    "An MCP server gives agent files its tools, as mcp__SERVER__TOOL (docs/mcp.md). An agent file names it in `mcpServers` or one of its tools in `tools`. " +
    "The servers of a project are in .mcp.json and count once you have trusted it; with --user a server is yours, for all projects. No secret is " +
    "written into a file: write '${NAME}' for the value of a variable. Exit codes: 1 a checked server failed, 2 a name or an option is wrong, 3 a file " +
    "cannot be used, 4 there is no such server.",
  options: {
    check: { help: "start the servers and list their tools" },
    user: { help: "your own file, for all projects" },
    url: { help: "the address of a server that is no program; for serve, the coordinator", value: "URL" },
    parent: { help: "the calling session, which new sessions are children of", value: "SESSION" },
    demand: {
      help: "a label that a runner must have for each session; may be given more than once",
      value: "NAME=VALUE",
      repeats: true,
    },
    tag: { help: "only agents that have all of these tags", value: "A,B" },
    "agent-tools": { help: "offer each agent as a tool of its own, too" },
    "allow-delete": {
      help: "let delete_all_agent_sessions delete ended sessions that this token started here",
    },
    "no-browser": { help: "only print the address that a person opens to sign in" },
    "client-id": { help: "a client that the issuer knows, where it registers none by itself", value: "ID" },
    header: {
      help: "a header of each request to the address; may be given more than once",
      value: "N=V",
      repeats: true,
    },
    env: { help: "a variable of the program; may be given more than once", value: "N=V", repeats: true },
  },
  examples: [
    ["mcp", "for the configuration of a client: command `holdfast`, arguments `mcp`"],
    ["mcp list --check", "all servers, and whether they answer"],
    [
      "mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
      "a program, in .mcp.json of the project",
    ],
    [
      "mcp add issues --user --url https://mcp.example.org/mcp --header 'Authorization=Bearer ${ISSUES_TOKEN}'",
      "an address, for all projects",
    ],
    ["mcp login issues", "sign in by OAuth in a browser; the tokens are kept among your secrets"],
    ["mcp show files --check", "its settings, its tools and their effects"],
  ],

  async run(args, io) {
    const [action = "serve", ...rest] = args.positionals;
    refuseForeignOptions(mcp, OPTIONS_OF, args);
    switch (action) {
      case "serve":
        takeNothing(rest, mcp.usage);
        return (await import("./serve-mcp.ts")).serveMcp(args, io);
      case "list":
        takeNothing(rest, mcp.usage);
        return listServers(args, io);
      case "show":
        return showServer(takeOnly(rest, "the name", mcp.usage), args, io);
      case "add": {
        const [name, ...command] = rest;
        if (name === undefined) throw refuse("the name is missing", mcp.usage);
        return addServer(name, command, args, io, mcp.usage);
      }
      case "remove":
        return removeServer(takeOnly(rest, "the name", mcp.usage), args, io);
      case "login":
        return login(takeOnly(rest, "the name", mcp.usage), args, io);
      case "logout":
        return logout(takeOnly(rest, "the name", mcp.usage), io);
      default:
        throw refuseAction("mcp", action, Object.keys(OPTIONS_OF), mcp.usage);
    }
  },
};
