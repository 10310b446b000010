// Rooms: the folders of each package, in layers.
//
// A room imports from the layers below its own and from itself. Rooms of one layer do not know each other. A
// source directly in `src` is a room of its own if the table has its name. Any other source there composes
// the package: it may import every room, and no room may import it. Tests import any room.

/** Layers from the bottom up. Each has its rooms with a phrase that says what belongs there. */
export type Layers = readonly Readonly<Record<string, string>>[];

/** For each package its rooms under `src`. A package without rooms is not in the table. CONTRIBUTING.md shows it. */
export const ROOMS: Readonly<Record<string, Layers>> = {
  core: [
    {
      "units.ts": "numbers of milliseconds and of bytes",
    },
    {
      errors: "error classes, damage to stored rows, the author's line in a stack",
      collections: "queues, heaps and maps",
      contents: "hashes and paths of the contents of folders",
      "defined.ts": "an object without the fields that have no value",
      "hash.ts": "the function that turns a text into its hash",
      "ids.ts": "where ids are made and checked",
      "limits.ts": "every limit, with its unit in its name",
    },
    {
      json: "JSON text: reading, writing and comparing it",
      "duration.ts": "time spans as people write them",
      "options.ts": "checks of the options of a call",
      "standard-schema.ts": "the interface of the schema libraries",
    },
    {
      journal: "the records of a session: their types, codec and the values they hold",
      "title.ts": "the title of a session, made of its input",
    },
    {
      budget: "what a session and the sessions below it may spend, and have spent",
    },
    {
      session: "the types of a session, its changes, schedules, documents and audit; forks",
    },
    {
      environment: "named sets of variables, what a start names and gives, and their merging",
    },
    {
      rules: "pure decisions about one session: creation, batches, signals, claims, moves, deletion",
      state: "the state of a session, as its agent changes it",
    },
    {
      transaction: "one change with everything that follows from it, over the row port of a storage",
      ports: "the interfaces of storage, tasks, signals, clock and tracer, and the wire form of storage",
    },
    {
      time: "the clock that never goes back",
      transfer: "a whole session as a file",
      replay: "the parts of a kernel: its place in the journal, open asks, pending signals, one segment",
    },
    {
      asks: "what an agent asks its kernel for",
    },
    {
      kernel: "replay and scheduling of one agent, and the context that the agent gets",
    },
  ],
  dashboard: [
    {
      api: "requests, and the lists and sessions that they keep current",
      code: "code and differences of files, with syntax colours",
      design: "the tokens of the design, and the parts of screens that know nothing of sessions",
    },
    {
      parts: "what screens share: the frame, texts, hooks",
    },
    {
      screens: "one source for each screen, or a folder of its parts",
    },
  ],
  proto: [
    {
      gen: "the code that `buf` generates from the contract",
      view: "what sessions mean to people, as pure functions for the command and the page",
    },
    {
      "line.ts": "many calls over one stream of HTTP/2",
      "zod-names.ts": "the names of `zod` that the packed packages share",
    },
    {
      "services.ts": "all services of the contract, for code that handles each of them",
    },
  ],
  runtime: [
    {
      loop: "turns of the event loop: slices, timers, group commit, queues per key",
      agents: "definitions of agents and tasks, the registry, how a kernel starts",
      sources: "signals from standard input and from a channel",
      node: "the ports of a Node process",
      memory: "the storage in memory",
    },
    {
      tasks: "attempts of tasks, their times and costs; in `local` the handlers that run in this process",
      gateway:
        "the server on loopback by which a program reaches the runner and its providers, without their keys",
    },
    {
      session: "one session that this process drives",
    },
    {
      isolation: "watchdog, stray rejections, development checks",
      tracers: "tracers that write to a file, to the terminal or to OpenTelemetry",
    },
    {
      api: "the types that users see, and checks of their arguments",
    },
    {
      claims: "the claims and leases of this process, and sessions that are claimed but cannot be driven",
    },
    {
      sessions: "all sessions that this process drives: their states, eviction, waits for outcomes",
    },
    {
      requests: "what callers ask of sessions: start, signal, export, move, replay",
      schedules: "cron, stored schedules, firing them",
    },
  ],
  storage: [
    { "node-timers.ts": "the timers of a Node process" },
    {
      "journal-parts.ts": "an imported journal as rows",
      "verify-report.ts": "the findings of a full check of a database",
      "sqlite-tracer": "a tracer that writes to a SQLite file",
      remote: "the storage of a coordinator, over HTTP",
    },
    {
      "sqlite/file": "opening, locking and migrating the database file",
      "postgres/database": "connections, errors, the database's clock",
    },
    {
      "host-presence.ts": "whether another process of this host is gone",
      "sqlite/tables": "one file for each table, and the checksums of rows",
    },
    {
      "sqlite/engine": "reading, writing and verifying sessions over the tables",
      "postgres/tables": "one file for each table",
    },
    {
      "sqlite/socket": "the owner's socket: other processes of the machine use the database through it",
      "postgres/write": "one statement for a group of changes",
    },
    {
      sqlite: "opens a file, as its owner or through the owner's socket",
      "postgres/read": "reads, due sessions, verification",
    },
    {
      "postgres/news": "listeners, and change notifications from other processes",
      "postgres/engine": "transactions and claims over the tables",
    },
    {
      postgres: "opens a database, and the storage over it",
    },
  ],
  system: [
    {
      processes: "programs that are started, watched and ended with all that they started",
      secrets: "declared secrets, keys of this process, and their replacement in texts",
      "address-kind.ts": "which network an address belongs to",
      "own-file.ts": "files of ours that are found by their address",
      "package-version.ts": "the versions of optional packages",
      "user-namespace.ts": "a user namespace for one command",
    },
    {
      files: "files that only their user reads and writes",
      "bounded-calls.ts": "calls of programs and servers that end in time",
    },
  ],
  workspace: [
    {
      "granting-places.ts": "the places of a project whose files give rights",
    },
    {
      workspace: "a folder and its commands: contained files, search, processes",
    },
    {
      sandboxes: "the sandboxes around commands, and what each of them can do",
      git: "Git as Holdfast calls it",
    },
    {
      worktrees: "Git worktrees of sessions, from their creation to their removal",
    },
  ],
  mcp: [
    {
      settings: "the settings of a server, and the placeholders in them",
      protocol:
        "what servers and clients send, as far as a session keeps it: tools, results, questions, tasks",
    },
    {
      "sign-in": "the sign-ins that are kept, and their tokens",
    },
    {
      client: "the connection to one server",
    },
  ],
  agents: [
    {
      "lazy-packages.ts": "packages that are loaded at their first use",
    },
    {
      models: "the port for models, its adapter over the AI SDK, prices, the durable task that asks a model",
      record: "the record of an agent without code, into which every format is read, and the names in it",
    },
    {
      format: "the parts of all formats: front matter, tables of fields, verdicts, patterns of tools",
      tasks: "durable tasks over a workspace",
    },
    {
      contents: "folders of skills and scripts as stored contents, with their versions",
    },
    {
      places: "where files are read in a project and for its user, each with the trust that it needs",
    },
    {
      permissions: "whether a call of a tool runs, is asked for, or is refused; the rules that people keep",
    },
    {
      trust: "the folders and contents that a user trusts, the rights of a file, and what endangers them",
      "model-loop": "the agent that is made of a record: turns, tools, running of hooks",
    },
    {
      environments: "named sets of variables of the user, and what a session gets of them",
      scripts: "scripts of the user: finding, checking and running them, as tools and as agents",
      web: "pages of the public web, as text for a model",
    },
    {
      hooks: "the hooks of agent files and of settings, with their trust and the versions of their scripts",
    },
    {
      "files/dialects": "one source for each tool: its fields, and what they mean in an agent record",
    },
    {
      files: "agent files, profiles, plugins and instructions: finding, loading, writing and importing them",
    },
    {
      servers: "the MCP servers that files name, and what a session gets of them",
      skills: "skills: reading and approving their files, and what a session gets of them",
    },
    {
      commands: "commands that a person types in a conversation: finding their files, filling in arguments",
    },
  ],
  programs: [
    {
      "included-programs.ts": "the table of the programs that Holdfast knows",
    },
    {
      session: "a program's work as a durable session: the port, turns, questions, receipts, limits",
    },
    {
      adapters: "one folder for each protocol or program",
    },
    {
      registry: "agents of the ACP registry that a user installs",
    },
  ],
  machine: [
    {
      "agent-source.ts": "the source of an agent, as a value and as the text that sessions store",
      "machine-options.ts": "what the command hands to a machine",
      "project-rules.ts": "the permission rules that a user keeps for a project",
      "session-folder.ts": "the folder that a session works in",
      "sign-in-store.ts": "the sign-ins of the user to MCP servers, among the stored secrets",
    },
    {
      programs: "external programs: their names, adapters and agents",
    },
    {
      agents: "one agent file and all below it: tree, tasks, variables, demands",
      checks: "what is wrong with an agent besides the fields of its file",
    },
    {
      pushed: "agents of the agent files at a coordinator, as far as the policy of the machine gives rights",
    },
  ],
  terminal: [
    {
      frame: "what every command needs: arguments, help, terminal, files, errors",
    },
    {
      view: "how sessions are shown: reads their journals, makes texts of them",
      secrets: "values of the secrets that loaded agents declare, from their places or from a person",
    },
  ],
  place: [
    {
      settings: "configuration files and their schemas, and the tracer that a user asked for",
    },
    {
      "admin-token.ts": "the token of a coordinator of this machine",
      "local-stack.ts": "the files of a local stack, and whether it runs",
    },
    {
      "coordinator-access.ts": "which coordinator, and with which token",
    },
    {
      calls: "the calls of commands to a coordinator: its runners, its tokens, its catalogue",
    },
  ],
  coordinator: [
    {
      call: "what belongs to one call: caller, token, refusal, JSON fields",
      store: "everything between the services and the storage: joined commits, time, registry, notifications",
    },
    {
      dispatch: "which runner gets which session",
      catalogue: "agent files of a fleet, by their versions",
      environments: "variables and secrets of persons and of projects, encrypted",
    },
    {
      input: "checks of inputs by the schemas that runners announce",
    },
    {
      services: "requests as changes of storage",
    },
    {
      api: "one port: gRPC, Connect, REST and server-sent events",
    },
    {
      endpoint:
        "what the protocols beside the contract share: its client for their caller, the turn of a session",
    },
    {
      page: "the files of the page, and the sign-in of browsers",
      mcp: "the tools of the orchestrator for MCP clients",
      a2a: "agents of runners for clients of A2A: cards, and sessions as tasks",
    },
  ],
  runner: [
    {
      secrets: "where values of secrets come from",
      polls: "what a runner takes from its coordinator, and keeps",
    },
    {
      policy: "what the owner of the machine allows the runner",
    },
    {},
  ],
  holdfast: [
    {
      agents: "agent files and MCP servers: their list, check, trust, and new ones",
    },
    {
      library: "skills, scripts and variables: their lists, changes and versions, here and at a coordinator",
      stack: "the local stack: its supervisor, its merged log, and in `process` what its two processes share",
    },
    {
      run: "running an agent until its session ends or parks; in `typing` what a person types meanwhile",
    },
    {
      sessions:
        "requests to sessions that run elsewhere, the questions of all of them, and calls of an admin",
      doctor: "checks of the whole installation",
      chat: "a conversation with a session at a terminal",
    },
    {
      screens: "screens of a terminal that are drawn again and answered by keys",
    },
    {
      ipc: "a runner that a program holds by its standard input and output",
      transfer: "the configuration as one file: what is here, what would change, changing it",
    },
    {
      "commands/people": "commands with which a person talks to sessions",
      "commands/library": "commands for what agents are given: models, servers, skills, scripts, variables",
      "commands/work": "commands for the worktrees of sessions",
    },
    {
      commands: "one file for each other command, and the table of all",
    },
    {
      entries: "the public API beside `index.ts`: one source for each path that users import",
    },
  ],
  testkit: [
    {
      "failing-calls.ts": "a storage of which single calls fail",
    },
    {
      "canary-scan.ts": "the search for a secret that must be nowhere",
      "faulty-storage.ts": "a storage that fails on purpose",
      "test-runtime.ts": "a clock that a test moves, and runtimes for tests",
      "scripted-model": "the scripted model server: its script, and the wires that it speaks",
      "mcp-server": "an MCP server with its sign-in, for tests",
      "a2a-server": "an A2A agent, for tests",
      conformance: "what every storage must do, by the clauses of its port",
    },
    {
      crash: "crashes at every point of a scenario",
    },
  ],
  simulator: [
    {
      world: "dice, event log, simulated time, processes and storage faults",
    },
    {
      programs: "random programs of agents, and what they must come to",
    },
    {
      machine: "one simulated process",
    },
    {
      fleet: "several processes, with coordinators and a network",
    },
    {
      nemesis: "faults on a fleet of real processes",
    },
  ],
};

export const SOURCES_MAX = 12;

/** Rooms with more sources than `SOURCES_MAX`. A number only falls: the next source goes into a room of its own. */
export const LARGE_ROOMS: Readonly<Record<string, { readonly sources: number; readonly why: string }>> = {
  "packages/coordinator/src/api": {
    sources: 21,
    why: "protocols, JSON and connection limits are three subjects",
  },
  "packages/coordinator/src/services": {
    sources: 18,
    why: "one service of the contract each, with their scopes",
  },
  "packages/holdfast/src/commands": { sources: 31, why: "one source for each command" },
  "packages/terminal/src/frame": { sources: 14, why: "small sources that all commands share" },
  "packages/terminal/src/view": { sources: 21, why: "one source for each thing that is shown" },
  "packages/runtime/src/session": { sources: 14, why: "the parts of one session driver" },
  "packages/simulator/src/nemesis": { sources: 13, why: "processes, faults, recorders and checkers" },
  "packages/testkit/src/conformance": { sources: 24, why: "one source for each group of clauses" },
};
