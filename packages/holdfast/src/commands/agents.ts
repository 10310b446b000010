import {
  refuse,
  refuseAction,
  refuseForeignOptions,
  takeNothing,
  takeOnly,
} from "@holdfast/terminal/frame/arguments";
import { catalogueAction, isCatalogueAction } from "../library/catalogue-actions.ts";
import type { Command } from "@holdfast/terminal/frame/command";
import { checkAgents } from "../agents/check-agents.ts";
import { importAgent, newAgent } from "../agents/new-agent.ts";

const listing = () => import("../agents/list-agents.ts");
const registry = () => import("../agents/registry/install-agent.ts");

/** The options of each action. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  list: ["trust", "pushed", "tag"],
  show: ["trust"],
  check: [],
  new: ["user"],
  import: ["user"],
  trust: ["remove", "sessions", "yes"],
  push: ["tag"],
  history: [],
  rollback: [],
  tag: [],
  activate: [],
  deactivate: [],
  install: ["registry", "key", "yes"],
  uninstall: [],
};

export const agents: Command = {
  name: "agents",
  usage:
    "agents list [--trust | --pushed] [--tag TAG,...] | agents show NAME|PATH [--trust] | agents check [NAME|PATH...] | agents new NAME [--user] | agents import FILE [--user] | agents trust [PATH] [--remove] | agents trust --sessions [--yes] | " +
    "agents push NAME|PATH... [--tag TAG] | agents history NAME | agents rollback NAME [VERSION|TAG] | agents tag NAME TAG [VERSION] | agents " +
    "activate NAME | agents deactivate NAME | agents install NAME --registry FILE|URL [--key VARIABLE]... [--yes] | agents uninstall NAME",
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
    pushed: { help: "list the agent files at the coordinator", excludes: ["trust", "tag"] },
    tag: {
      help: "push: the tag that the pushed versions get; list: only agents with all of these tags (a,b)",
      value: "TAG",
    },
    registry: { help: "install: the registry, a file or an address", value: "FILE|URL" },
    key: { help: "install: a variable with a key that the program gets", value: "VARIABLE", repeats: true },
    yes: { help: "install, trust --sessions: do not ask", short: "y" },
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
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(agents, OPTIONS_OF, args);
    if (isCatalogueAction(action)) return catalogueAction(["agent", agents.usage], action, rest, args, io);
    switch (action) {
      case "list":
        takeNothing(rest, agents.usage);
        if (args.has("pushed"))
          return (await import("../library/catalogue-calls.ts")).listPushed("agent", args, io);
        return (await listing()).showAgents(args, io);
      case "show":
        return (await import("../agents/show-agent.ts")).showAgent(
          takeOnly(rest, "the name", agents.usage),
          args,
          io,
        );
      case "check":
        return checkAgents(rest, io);
      case "new":
        return newAgent(takeOnly(rest, "the name", agents.usage), args.has("user"), io);
      case "import":
        return importAgent(takeOnly(rest, "the file", agents.usage), args.has("user"), io);
      case "trust":
        if (args.has("sessions")) {
          takeNothing(rest, agents.usage);
          return (await import("../run/loading/trust-sessions.ts")).trustSessions(args, io);
        }
        if (rest.length > 1) throw refuse(`"${rest[1]}" is one argument too many`, agents.usage);
        return (await listing()).trustProject(rest[0], args, io);
      case "push":
        return (await import("../library/push-contents.ts")).pushAgents(rest, args, io);
      case "install": {
        const name = takeOnly(rest, "the name", agents.usage);
        return (await registry()).installAgent(name, args, io);
      }
      case "uninstall": {
        const name = takeOnly(rest, "the name", agents.usage);
        return (await registry()).uninstallAgent(name, io);
      }
      default:
        throw refuseAction("agents", action, Object.keys(OPTIONS_OF), agents.usage);
    }
  },
};
