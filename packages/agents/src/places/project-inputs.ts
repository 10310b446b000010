// `PROJECT_FILES` and `VARIABLES`: everything that Holdfast reads in a project or from its environment, each
// with the trust that it needs. The settings of `.holdfast/config.json` have their own rows in
// `setting-trust.ts` of the package holdfast.
//
//   - A cloned repository brings any file. A file that gives a right, or names code, a file outside, a server
//     or a program, counts only with the trust of its row. A row that counts before trust says why that is
//     harmless.
//   - The readers take their paths from the type `ProjectPath`, and `npm run tidy` finds paths and variables
//     without a row. A path that gives a right is one that agents cannot write (`granting-places.ts`), or it
//     does not compile.
//   - A test plants every row in a clone (`planted-inputs.test.ts`). A row without a plant does not compile
//     there.
//   - Variables come from the shell of the user. No file of a project sets one, so `.env` has no meaning to
//     Holdfast.
//
// Variables that only the programs of coding agents read stand with these agents
// (`ExternalAgentCapabilities`).

import type { ProtectedPath } from "@holdfast/workspace";

/** The condition for a file of a project to count. */
export type NeededTrust =
  /** The user has trusted the project with this content. */
  | "content"
  /** The user has trusted the project with this content, except for rules that only take something away. */
  | "content, or it restricts"
  /** The user trusts the folder of the project. */
  | "folder"
  /** The user has approved this version. */
  | "approval"
  /** The file has the mark of this user. */
  | "mark"
  /** A person names the file, or a file beside it, in the call. */
  | "call"
  /** Nothing, for the reason that the row gives. */
  | "nothing"
  /** The file never counts. */
  | "never";

export interface ProjectFileRow {
  readonly needs: NeededTrust;
  readonly why: string;
}

/** Files that agents may write, because no such file gives a right on its own. */
type OpenPath =
  | "AGENTS.md"
  | ".github/prompts"
  | ".git"
  | ".env"
  | "package.json"
  | "tsconfig.json"
  | "node_modules"
  | "node_modules/.bin"
  | "executors"
  | "profiles"
  | "code of tasks";

const AGENT = { needs: "content", why: "it names hooks, servers, tasks and allowed calls" } as const;
const SERVERS = { needs: "content", why: "a server is a program to start, or an address" } as const;
const RULES = { needs: "content, or it restricts", why: "rules may allow calls" } as const;
const RESTRICTING = { needs: "nothing", why: "its rules are read for what they forbid or ask" } as const;
const COMMANDS = { needs: "folder", why: "a person types its name, and it gives no right" } as const;
const SKILLS = { needs: "approval", why: "a skill tells an agent what to run" } as const;

/** Paths from the folder of the project. A folder stands for all that is read in it. */
export const PROJECT_FILES = {
  ".holdfast": { needs: "nothing", why: "the folder only marks the project" },
  ".holdfast/config.json": { needs: "content", why: "its settings name files, servers and a sandbox" },
  ".holdfast/holdfast.db": { needs: "mark", why: "its sessions have the rights of their start" },
  ".holdfast/agents": AGENT,
  ".holdfast/profiles": { needs: "folder", why: "a profile of a project can only restrict" },
  ".holdfast/scripts": { needs: "approval", why: "a script is a program" },
  ".claude/agents": AGENT,
  ".claude/settings.json": {
    needs: "content, or it restricts",
    why: "hooks are programs, and rules may allow",
  },
  ".claude/settings.local.json": {
    needs: "content, or it restricts",
    why: "hooks are programs, and rules may allow",
  },
  ".claude/skills": SKILLS,
  ".claude/commands": COMMANDS,
  ".opencode/commands": COMMANDS,
  ".opencode/command": COMMANDS,
  ".gemini/commands": COMMANDS,
  ".github/prompts": COMMANDS,
  ".opencode/agents": AGENT,
  ".opencode/agent": AGENT,
  "opencode.json": RULES,
  "opencode.jsonc": RULES,
  ".opencode/opencode.json": RULES,
  ".opencode/opencode.jsonc": RULES,
  ".codex": RESTRICTING,
  ".codex/agents": AGENT,
  ".gemini": RESTRICTING,
  ".gemini/agents": AGENT,
  ".github/agents": AGENT,
  ".vscode": RESTRICTING,
  ".vscode/mcp.json": SERVERS,
  ".mcp.json": SERVERS,
  "mcp-servers": SERVERS,
  ".agents/plugins": { needs: "content", why: "a plugin has servers and skills" },
  ".agents/skills": SKILLS,
  agents: AGENT,
  "AGENTS.md": { needs: "nothing", why: "it instructs, and gives no right" },
  "code of tasks": { needs: "content", why: "an agent file names it, and it runs outside of a sandbox" },
  executors: { needs: "call", why: "a runner starts the executors that its owner allows" },
  profiles: { needs: "call", why: "a runner starts the executors that its owner allows" },
  ".git": { needs: "nothing", why: "git is called without the programs that a repository names" },
  "package.json": { needs: "call", why: "it says how code is loaded that a person names" },
  "tsconfig.json": { needs: "call", why: "it says how code is loaded that a person names" },
  node_modules: { needs: "call", why: "only code that a person names imports from it" },
  "node_modules/.bin": { needs: "never", why: "`npx` puts it on the PATH, and its programs have any name" },
  ".env": { needs: "never", why: "variables come from the shell of the user" },
} as const satisfies Readonly<
  Partial<Record<ProtectedPath, ProjectFileRow>> & Record<OpenPath, ProjectFileRow>
>;

/** A path from the folder of a project that is read. */
export type ProjectPath = keyof typeof PROJECT_FILES;

/** The kind of thing that the value of a variable names. */
export type VariableKind = "program" | "folder" | "file" | "server" | "secret" | "right" | "display";

/** Every variable that Holdfast reads itself, with what its value names. Each comes from the shell of the user. */
export const VARIABLES = {
  AGENT_EXECUTOR_PATH: "program",
  AGENT_ORCHESTRATOR_API_URL: "server",
  ANTHROPIC_API_KEY: "secret",
  ANTHROPIC_BASE_URL: "server",
  CLAUDE_CONFIG_DIR: "folder",
  CODEX_HOME: "folder",
  COLUMNS: "display",
  DAYTONA_API_KEY: "secret",
  DAYTONA_API_URL: "server",
  DAYTONA_SNAPSHOT: "program",
  E2B_API_KEY: "secret",
  E2B_API_URL: "server",
  E2B_TEMPLATE: "program",
  ENV: "right",
  FORCE_COLOR: "display",
  GEMINI_API_KEY: "secret",
  GOOGLE_GEMINI_BASE_URL: "server",
  HEARTBEAT_INTERVAL: "display",
  HOLDFAST_COMMAND_NAMESPACE: "right",
  HOLDFAST_DB: "file",
  HOLDFAST_ENV: "display",
  HOLDFAST_HANDED_KEYS: "file",
  HOLDFAST_MODE: "right",
  HOLDFAST_MODEL: "server",
  HOLDFAST_SANDBOX: "right",
  HOLDFAST_SANDBOX_IMAGE: "program",
  HOLDFAST_SCRIPTED_MODEL_URL: "server",
  HOLDFAST_SECRET_KEY_FILE: "file",
  HOLDFAST_TOKEN: "secret",
  HOLDFAST_URL: "server",
  HOME: "folder",
  HTTPS_PROXY: "server",
  HTTP_PROXY: "server",
  LANG: "display",
  LC_ALL: "display",
  LC_CTYPE: "display",
  MODE: "right",
  NODE_ENV: "display",
  NO_COLOR: "display",
  NO_PROXY: "server",
  OLLAMA_HOST: "server",
  OPENAI_API_KEY: "secret",
  OPENAI_BASE_URL: "server",
  OPENCODE_CONFIG: "file",
  PATH: "program",
  POLL_TIMEOUT: "display",
  PROJECT_DIR: "folder",
  SANDBOX_ROOT_DIR: "folder",
  SANDBOX_TYPE: "right",
  TERM: "display",
  TRACEPARENT: "display",
  XDG_CONFIG_HOME: "folder",
  XDG_DATA_HOME: "folder",
  XDG_RUNTIME_DIR: "folder",
  npm_command: "display",
  npm_lifecycle_event: "display",
} as const satisfies Readonly<Record<string, VariableKind>>;

export type Variable = keyof typeof VARIABLES;
