import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { login, logout } from "../../agents/mcp/mcp-sign-in.ts";
import { addServer, listServers, removeServer, showServer } from "../../agents/mcp/show-mcp-servers.ts";

export const mcp: Command = {
  name: "mcp",
  actions: {
    serve: {
      does: "be an MCP server over standard input and output",
      options: ["url", "parent", "demand", "tag", "agent-tools", "allow-delete"],
    },
    list: { does: "the servers that agents use", options: ["check"] },
    show: {
      does: "one server: its settings, and its tools",
      takes: [NAME_ARGUMENT],
      options: ["check"],
    },
    add: {
      does: "add a program, or an address",
      takes: [
        NAME_ARGUMENT,
        {
          name: "COMMAND",
          is: "the program",
          orOption: "url",
          optional: true,
          repeats: true,
          afterDashes: true,
        },
      ],
      options: ["url", "header", "env", "user"],
    },
    remove: {
      does: "remove a server from the file",
      takes: [NAME_ARGUMENT],
      options: ["user"],
    },
    login: {
      does: "sign in by OAuth in a browser",
      takes: [NAME_ARGUMENT],
      options: ["no-browser", "client-id"],
    },
    logout: { does: "forget the tokens of a server", takes: [NAME_ARGUMENT] },
  },
  defaultAction: "serve",
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
    url: { help: "the address of a server that is no program, or of the coordinator", value: "URL" },
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
    const { action, positionals: rest } = args;
    switch (action) {
      case "serve":
        return (await import("./serve-mcp.ts")).serveMcp(args, io);
      case "list":
        return listServers(args, io);
      case "show":
        return showServer(rest[0]!, args, io);
      case "add": {
        const [name = "", ...command] = rest;
        return addServer(name, command, args, io);
      }
      case "remove":
        return removeServer(rest[0]!, args, io);
      case "login":
        return login(rest[0]!, args, io);
      default:
        return logout(rest[0]!, io);
    }
  },
};
