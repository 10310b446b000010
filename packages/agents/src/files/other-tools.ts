// The kinds of files in the folders of other tools that Holdfast does not read (`kindIn`), and why not
// (`REASONS`).
//
//   - A file that stands in no table is one of the tool alone, so that a kind that is new is named, too. `null` is for what another place reads, and for what says nothing to an agent.
//   - A reason of files that forbid something says that it does not hold here, and where to write it.

export const REASONS = {
  instructions: "the instructions of a project are those in AGENTS.md, which may be a link to this file",
  rules: "no session reads these rules; what always holds belongs into AGENTS.md",
  style: "it changes how another tool answers; write it into the text of an agent file",
  skills: "skills are read in .agents/skills and .claude/skills, which may have links to these",
  servers: "MCP servers are read in .mcp.json and .vscode/mcp.json",
  agents: "agents of this tool are not read; their files belong into .claude/agents",
  "agents of settings": "its agents are not read here; `holdfast agents import FILE` writes them as files",
  "chat modes":
    "Copilot reads chat modes as agents in .github/agents: move NAME.chatmode.md to NAME.agent.md",
  commands: "commands of this tool are not read; a conversation has those in .claude/commands",
  hooks:
    "hooks of this tool are not run, also not those that forbid something; write them under holdfast.hooks of an agent file, or in .claude/settings.json",
  permissions:
    "what this file forbids is not forbidden here; write it under holdfast.approvals of an agent file, or for agents of .claude in .claude/settings.json",
  "denied files":
    "agents may read what this file names; write `Read(PATTERN)` below holdfast.approvals.deny of an agent file",
  plugins: "plugins of this tool are not loaded; those in .agents/plugins are read",
  tools: "tools of this tool are not loaded; a script in .holdfast/scripts is one",
  memory: "it is what another tool remembers; what always holds belongs into AGENTS.md",
  plans: "it is a plan or a specification for another tool; give its path to an agent",
  "set-up": "it prepares the machine of another tool, and no session runs it",
  settings: "they are settings of another tool alone",
} as const satisfies Readonly<Record<string, string>>;

export type OtherKind = keyof typeof REASONS;

const FOLDERS: Readonly<Record<string, Readonly<Record<string, OtherKind | null>>>> = {
  ".claude": {
    agents: null,
    skills: null,
    commands: null,
    "settings.json": null,
    "settings.local.json": null,
    hooks: null, // Programs of hooks.
    worktrees: null,
    "CLAUDE.md": "instructions",
    "CLAUDE.local.md": "instructions",
    rules: "rules",
    "output-styles": "style",
    "agent-memory": "memory",
    "agent-memory-local": "memory",
    plugins: "plugins",
    workflows: "commands",
    "loop.md": "commands",
    plans: "plans",
    "launch.json": "set-up",
  },
  ".opencode": {
    agents: null,
    agent: null,
    commands: null,
    command: null,
    "opencode.json": null,
    "opencode.jsonc": null,
    skills: "skills",
    skill: "skills",
    modes: "agents",
    mode: "agents",
    plugins: "plugins",
    plugin: "plugins",
    tools: "tools",
    tool: "tools",
    rules: "rules",
    "AGENTS.md": "instructions",
    plans: "plans",
  },
  ".codex": {
    agents: null,
    rules: null,
    "config.toml": null,
    "managed_config.toml": null,
    "requirements.toml": null,
    skills: "skills",
    prompts: "commands",
    hooks: null, // Programs of hooks.
    "hooks.json": "hooks",
    plugins: "plugins",
    "AGENTS.md": "instructions",
    "AGENTS.override.md": "instructions",
    environments: "set-up",
    "environment.toml": "set-up",
  },
  ".gemini": {
    agents: null,
    commands: null,
    policies: null,
    "settings.json": null,
    "system-defaults.json": null,
    hooks: null, // Programs of hooks.
    skills: "skills",
    extensions: "plugins",
    "GEMINI.md": "instructions",
    "system.md": "instructions",
    "styleguide.md": "rules",
  },
  ".cursor": {
    rules: "rules",
    agents: "agents",
    commands: "commands",
    skills: "skills",
    "mcp.json": "servers",
    "hooks.json": "hooks",
    hooks: null, // Programs of hooks.
    "cli.json": "permissions",
    "permissions.json": "permissions",
    "sandbox.json": "permissions",
    "environment.json": "set-up",
    "worktrees.json": "set-up",
    Dockerfile: "set-up",
    "BUGBOT.md": "rules",
    plugins: "plugins",
    plans: "plans",
  },
  ".windsurf": {
    rules: "rules",
    workflows: "commands",
    skills: "skills",
    "hooks.json": "hooks",
    hooks: null, // Programs of hooks.
    "mcp_config.json": "servers",
    memories: "memory",
    plans: "plans",
  },
  ".cline": {
    rules: "rules",
    workflows: "commands",
    skills: "skills",
    hooks: "hooks",
    agents: "agents",
    "mcp.json": "servers",
  },
  ".roo": {
    rules: "rules",
    commands: "commands",
    skills: "skills",
    tools: "tools",
    "mcp.json": "servers",
  },
  ".agents": {
    skills: null,
    plugins: null,
    agents: "agents",
    commands: "commands",
    workflows: "commands",
    rules: "rules",
    hooks: "hooks",
    "hooks.json": "hooks",
    "mcp.json": "servers",
  },
  ".agent": { skills: "skills", workflows: "commands", rules: "rules" },
  ".kiro": {
    steering: "rules",
    specs: "plans",
    hooks: "hooks",
    agents: "agents",
    prompts: "commands",
    skills: "skills",
    settings: "servers",
    powers: "plugins",
  },
};

/** The folders of tools whose whole content is looked at. */
export const OTHER_FOLDERS: readonly string[] = Object.keys(FOLDERS);

/** Files beside those of a tool that are for people and for package managers. */
const PLAIN =
  /^(\..*|README.*|LICENSE.*|node_modules|package(-lock)?\.json|bun\.lockb?|.*\.lock|tsconfig\.json)$/i;

/** @returns nothing for a file or folder that is read, or that says nothing to an agent. */
export function kindIn(folder: string, name: string): OtherKind | undefined {
  const table = FOLDERS[folder];
  if (table === undefined) return undefined;
  if (Object.hasOwn(table, name)) return table[name] ?? undefined;
  if (folder === ".roo" && /^(rules|skills|system-prompt)-/.test(name))
    return name.startsWith("skills") ? "skills" : "rules";
  return PLAIN.test(name) ? undefined : "settings";
}
