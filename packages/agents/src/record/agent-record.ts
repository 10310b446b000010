// The internal record of an agent without code (`AgentRecord`). The loader reads every file format into it,
// and the model loop runs it.
//
//   - A record names tools by Holdfast's own names (`read_file`, `shell`, `mcp__SERVER__TOOL`). A format's
//     names are mapped by its dialect; a name that has no counterpart is reported and is in no record.
//   - A rule that a dialect cannot map exactly is mapped to one that permits less, or the file is refused.

import type { Budget, EffectClass, Json, JsonSchema } from "@holdfast/core";
import type { McpReference, McpServer } from "@holdfast/mcp";

/** The decision about a call of a tool: it runs, a person is asked first, or it is refused. */
export type PermissionDecision = "allow" | "ask" | "deny";

/**
 * A rule for calls of a tool. The order of rules has no meaning. The rules with a pattern that match the call
 * decide first, then the rules without a pattern. Among these a `deny` wins over an `ask`, which wins over an `allow`. Thus `deny shell` and `allow shell
 * git diff:*` permit `git diff` alone. A call that no rule matches is allowed when its tool only reads, and asked otherwise.
 */
export interface PermissionRule {
  readonly decision: PermissionDecision;
  /** The name of a tool. `*` at its end stands for any text: `mcp__github__*`. */
  readonly tool: string;
  /**
   * A pattern for the call's main argument, `null` for any. For `shell` it is a command, and `git diff:*` is
   * the command `git diff` with any arguments. For a file tool it is a glob of the path, and for `web_fetch`
   * a host. `*` is a pattern that every call matches.
   */
  readonly pattern: string | null;
}

/** The points of a session that hooks see. */
export type HookPoint = "on_run_start" | "on_run_finish" | "before_tool" | "after_tool";

/** A program that sees a point of a session and may restrict what follows. */
export interface AgentHook {
  readonly point: HookPoint;
  /** The tools whose calls it sees, `null` for all. `*` at the end of a name stands for any text. */
  readonly tools: readonly string[] | null;
  /** The rules of which a call has to match one, as it would match a denial. Absent means every call. */
  readonly only?: readonly Pick<PermissionRule, "tool" | "pattern">[];
  readonly run:
    | { readonly type: "command"; readonly command: string }
    /** `hash`: the version that a session began with, `null` in a file. */
    | { readonly type: "script"; readonly name: string; readonly hash: string | null }
    | { readonly type: "agent"; readonly name: string };
  readonly timeoutMs: number;
  /** The effect of a hook that fails or ends without an answer. */
  readonly onError: "block" | "continue";
  /** The event of Claude Code that it was written for, `null` for a hook of Holdfast. */
  readonly claudeEvent: string | null;
  /**
   * The folder of the project that it was written for: absolute, or from the folder of the session. Absent
   * means the folder of the session.
   */
  readonly folder?: string;
}

/** An agent without code, as an agent file or a program describes it. */
export interface AgentRecord {
  readonly name: string;
  /** For the model of a parent that may delegate to this agent, and for people. */
  readonly description: string;
  /** Words by which a list of agents is filtered. */
  readonly tags: readonly string[];
  /** The system prompt. */
  readonly prompt: string;
  /** `provider/model` or an alias; `null` for the model that the environment or configuration chooses. */
  readonly model: string | null;
  /** Models that are asked in this order when the one before cannot be reached or is over its usage limit. */
  readonly fallbackModels: readonly string[];
  /** A session that a usage limit pauses continues without a person when the limit is reset. Absent means no. */
  readonly resumeAtReset?: boolean;
  /**
   * The tools that are offered to the model, `null` for all built-in tools. `*` at the end of a name stands
   * for any text.
   */
  readonly tools: readonly string[] | null;
  /** Tools that are not offered, although `tools` names them. */
  readonly deniedTools: readonly string[];
  readonly permissions: readonly PermissionRule[];
  /** Effect classes of tools whose own declaration is missing or wrong. */
  readonly effects: Readonly<Record<string, EffectClass>>;
  /** The most turns (model calls with their tool calls) of one run; `null` for the default of the loop. */
  readonly turnsMax: number | null;
  /** Until a person has approved a plan, only tools that read run. */
  readonly planFirst: boolean;
  /** Names of the agents that the tool `delegate` may start. */
  readonly agents: readonly string[];
  /** Agents that this file itself defines, by name. The tool `delegate` may start them, too. */
  readonly subAgents: Readonly<Record<string, SubAgent>>;
  /** The agents that it starts may send messages to each other. */
  readonly relaysMessages: boolean;
  /** Names of skills that the prompt lists; `null` for all that are found. */
  readonly skills: readonly string[] | null;
  /** The script that carries out the session in the place of a model. Absent means a model. It is one of `scripts`. */
  readonly script?: string;
  /** Names of scripts that its tools run. */
  readonly scripts: readonly string[];
  /** Files of the project whose tasks are tools, as paths from the project's folder. */
  readonly tasks: readonly string[];
  /** Tools that can be called only after calls of these other tools have succeeded in the session. */
  readonly when: Readonly<Record<string, ToolCondition>>;
  readonly hooks: readonly AgentHook[];
  /** MCP servers by name. A string names a server of the project's or the user's registry. */
  readonly mcpServers: Readonly<Record<string, McpServer | McpReference | string>>;
  /** `worktree`: each session works in a git worktree of its own. */
  readonly workspace: "shared" | "worktree" | "empty";
  /** The name of a sandbox backend; `null` for the default of the mode. */
  readonly sandbox: string | null;
  /** Names of environments whose variables its tools and servers may use. */
  readonly environments: readonly string[];
  /** Names of variables that its commands get, from its environments and its secrets. */
  readonly variables: readonly string[];
  /** Names of the secrets that its tools and servers need. */
  readonly secrets: readonly string[];
  /** `null`: the input is a text. */
  readonly inputSchema: JsonSchema | null;
  /** `null`: the output is the model's last text. */
  readonly outputSchema: JsonSchema | null;
  /** After its answer a conversation waits for the next input; other agents end. */
  readonly isConversation: boolean;
  readonly budget: Budget | null;
  readonly ttlMs: number | null;
  /** Labels that a runner must have. */
  readonly labels: Readonly<Record<string, Json>> | null;
  readonly source: AgentSource;
}

/** When a tool can be called. */
export interface ToolCondition {
  /** Names of tools. A call of each of them has succeeded. */
  readonly after: readonly string[];
}

/**
 * An agent that another agent's file defines. It is otherwise like the agent of the file, and never has more
 * tools or fewer rules. It starts no agents itself.
 */
export type SubAgent = Pick<
  AgentRecord,
  "description" | "prompt" | "model" | "tools" | "deniedTools" | "permissions" | "turnsMax"
>;

/** The file that an agent record was read from. */
export interface AgentSource {
  /** The environments of this machine that the agent may use; all of them when absent. */
  readonly environments?: readonly string[];
  /** The environments of its file that its coordinator has, for an agent that gets environments of the coordinator. */
  readonly storedEnvironments?: readonly string[];
  /** The absolute path of the file, or of the folder of a folder form. */
  readonly path: string;
  /** `holdfast`, `claude`, `opencode`, `codex`, `gemini`, `copilot`, `folder`. */
  readonly dialect: string;
  readonly scope: "project" | "user" | "path" | "coordinator";
  /** SHA-256 of the content, in hexadecimal. It is the version of the agent. */
  readonly hash: string;
}

/** A profile of an external agent, as its file says it. */
export interface AgentProfile {
  readonly name: string;
  /** The external agent that it is for; `undefined` for each. */
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly permissionMode?: string | undefined;
  /** Rules for the calls that the agent asks about. */
  readonly rules: readonly PermissionRule[];
  /** Settings of the program, in its own form. */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /** MCP servers by name, in the program's own form. */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** The external agents that its sessions may start. */
  readonly agents?: readonly string[] | undefined;
  /** Whether its sessions may delete the ended ones that they have started. */
  readonly deletesSessions?: boolean | undefined;
  /** The agent's program: an absolute path, or a name on the PATH. */
  readonly program?: string | undefined;
  /** The names of variables that the program gets of the user's environment, besides those that it always gets. */
  readonly variables?: readonly string[] | undefined;
  /**
   * The names of variables whose values are keys, which are replaced in everything that is recorded. The
   * program gets them, too.
   */
  readonly keys?: readonly string[] | undefined;
  /** The places that the program needs in a sandbox besides its own. Absolute paths. */
  readonly folders?: { readonly written: readonly string[]; readonly read: readonly string[] } | undefined;
}
