import { catalogueAction, catalogueActions, isCatalogueAction } from "../library/catalogue-actions.ts";
import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { checkAgents } from "../agents/check-agents.ts";
import { importAgent, newAgent } from "../agents/added/new-agent.ts";
import { wantedTags } from "@holdfast/terminal/frame/labels";

const listing = () => import("../agents/list-agents.ts");
const registry = () => import("../agents/added/install-agent.ts");

export const agents: Command = {
  name: "agents",
  actions: {
    list: {
      does: "the agents of the project and of yours, or those at the coordinator",
      options: ["trust", "catalogue", "tag"],
    },
    show: {
      does: "one agent: its file, fields and rights",
      takes: [{ name: "NAME|PATH", is: "the name" }],
      options: ["trust"],
    },
    check: {
      does: "each field of each file, and what becomes of it",
      takes: [{ name: "NAME|PATH", is: "the name", optional: true, repeats: true }],
    },
    new: { does: "write a file to begin with", takes: [NAME_ARGUMENT], options: ["user"] },
    import: {
      does: "write the agents of another tool's file in our own form",
      takes: [{ name: "FILE", is: "the file" }],
      options: ["user"],
    },
    trust: {
      does: "load the files of this project from now on",
      takes: [{ name: "PATH", is: "the path", optional: true }],
      options: ["remove", "sessions", "yes"],
    },
    push: {
      does: "store new versions at the coordinator",
      takes: [{ name: "NAME|PATH", is: "the name", repeats: true }],
      options: ["tag"],
    },
    ...catalogueActions([]),
    install: {
      does: "install an agent of a registry",
      takes: [NAME_ARGUMENT],
      options: ["registry", "key", "yes"],
    },
    uninstall: { does: "remove an installed agent", takes: [NAME_ARGUMENT] },
  },
  description:
    "An agent file is Markdown with YAML front matter in .holdfast/agents of the project or of your home folder (docs/agent-files.md). Agents " +
    "of Claude Code, OpenCode, Codex, Gemini CLI and Copilot are read where they are. `check` says for each field whether it is honoured, " +
    "mapped, ignored or refused, and why; a refused field refuses its file. Files of a project that you have not trusted are listed and not " +
    "loaded. `trust --sessions` is for a database that came with a project. `push` stores files at a coordinator, by versions; runners whose policy allows them offer them. Of an inactive one no session can " +
    "be started. `install` installs an agent that speaks the Agent Client Protocol from a file in the format of the ACP registry, pins its content by " +
    "a hash, and checks the hash before each start. Exit codes: 3 a file is refused or there is no such agent, 12 the project is not trusted.",
  options: {
    trust: { help: "also load the files of this project when you have not trusted it, for this call" },
    user: { help: "write the file into your home folder, for all projects" },
    catalogue: { help: "list the agent files at the coordinator", excludes: ["trust"] },
    tag: {
      help: "the tag that the pushed versions get; for the list, only agents with all of these tags (a,b)",
      value: "TAG",
    },
    registry: { help: "the registry, a file or an address", value: "FILE|URL", required: true },
    key: { help: "a variable with a key that the program gets", value: "VARIABLE", repeats: true },
    yes: { help: "do not ask", short: "y" },
    remove: { help: "trust the project no longer", excludes: ["sessions"] },
    sessions: { help: "show the rights of the sessions in the project's database, and trust them" },
  },
  examples: [
    ["agents list", "all agents of the project and of yours, and which of them can be used"],
    ["agents check", "each field of each file, and what becomes of it"],
    ["agents check reviewer", "the file of one agent; a path names a file or a folder"],
    ["agents new reviewer", "writes .holdfast/agents/reviewer.md"],
    [
      "agents import agents/report",
      "writes the agent of a file of another tool, or of a folder, in our own form",
    ],
    [
      "agents import agent.yaml",
      "the agents of a file of Docker Agent, opencode.json or a managed agent of Anthropic",
    ],
    ["agents push reviewer --tag stable", "a new version at the coordinator, for its runners"],
    ["agents history reviewer", "its versions at the coordinator"],
    [
      "agents install goose --registry registry.json",
      "shows an agent of the registry and its hash, and installs it",
    ],
    ["agents trust", "load the files of this project from now on"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    if (isCatalogueAction(action)) return catalogueAction("agent", action, args, io);
    switch (action) {
      case "list":
        if (args.has("catalogue"))
          return (await import("@holdfast/place/calls/catalogue-calls")).listPushed(
            "agent",
            args,
            io,
            wantedTags(args),
          );
        return (await listing()).showAgents(args, io);
      case "show":
        return (await import("../agents/show-agent.ts")).showAgent(rest[0]!, args, io);
      case "check":
        return checkAgents(rest, io);
      case "new":
        return newAgent(rest[0]!, args.has("user"), io);
      case "import":
        return importAgent(rest[0]!, args.has("user"), io);
      case "trust":
        if (args.has("sessions")) {
          return (await import("../run/loading/trust-sessions.ts")).trustSessions(args, io);
        }
        return (await listing()).trustProject(rest[0], args, io);
      case "push":
        return (await import("../library/push-contents.ts")).pushAgents(rest, args, io);
      case "install": {
        return (await registry()).installAgent(rest[0]!, args, io);
      }
      default: {
        return (await registry()).uninstallAgent(rest[0]!, io);
      }
    }
  },
};
