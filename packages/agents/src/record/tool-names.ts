// The names of tools in other formats, and Holdfast's names for them.

/** The tools that Holdfast offers; tools of MCP servers are `mcp__SERVER__TOOL`, and those of scripts `script__NAME`. */
export const TOOLS = [
  "read_file",
  "list_files",
  "search",
  "write_file",
  "edit_file",
  "shell",
  "git_diff",
  "web_fetch",
  "todo",
  "delegate",
  "ask_user",
  "read_skill",
  "message_agent",
] as const;

export type ToolName = (typeof TOOLS)[number];

/**
 * Tools that change something or reach outside the workspace. They are denied where a format says that
 * nothing may be changed.
 */
export const CHANGING_TOOLS = [
  "write_file",
  "edit_file",
  "shell",
  "web_fetch",
  "delegate",
  "mcp__*",
  "script__*",
] as const;

/** The names of one format, with Holdfast's names for them; `null` for a tool that Holdfast does not offer. */
export type ToolNames = Readonly<Record<string, readonly ToolName[] | null>>;

export const CLAUDE_TOOLS: ToolNames = {
  Read: ["read_file"],
  Bash: ["shell"],
  Grep: ["search"],
  Glob: ["list_files"],
  LS: ["list_files"],
  Write: ["write_file"],
  Edit: ["edit_file"],
  MultiEdit: ["edit_file"],
  WebFetch: ["web_fetch"],
  TodoWrite: ["todo"],
  TodoRead: ["todo"],
  Task: ["delegate"],
  Agent: ["delegate"],
  AskUserQuestion: ["ask_user"],
  Skill: ["read_skill"],
  WebSearch: null,
  NotebookEdit: null,
  NotebookRead: null,
  BashOutput: null,
  KillShell: null,
  KillBash: null,
  SlashCommand: null,
  ExitPlanMode: null,
  EnterPlanMode: null,
  ListMcpResourcesTool: null,
  ReadMcpResourceTool: null,
  LSP: null,
};

/** The names that Claude Code has for a tool of Holdfast. */
export function claudeNames(tool: string): readonly string[] {
  return Object.entries(CLAUDE_TOOLS).flatMap(([name, own]) =>
    own?.some((one) => one === tool) === true ? [name] : [],
  );
}

/** Holdfast's own names, for files in its own form. */
export const OWN_TOOLS: ToolNames = Object.fromEntries(TOOLS.map((name) => [name, [name]]));

/** Whether a tool's name is the name that stands in a rule or a list; `*` at its end stands for any text. */
export function matchesName(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}
