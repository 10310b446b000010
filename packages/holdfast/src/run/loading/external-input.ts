// The input of an external agent's session that `run`, `chat` or `fork --agent` starts: the options of the call as its fields (`withOptions`).

import { UsageError } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import type { Arguments, Options } from "../../frame/command.ts";

/** The options of `run` for agent files and external agents. */
export const START_OPTIONS: Options = {
  "resume-at-reset": {
    help: "for agent files and external agents: when a usage limit pauses the session, it continues by itself at the reset",
    excludes: ["agent", "continue"],
  },
  profile: {
    help: "for external agents: a profile of ~/.holdfast/profiles, or of .holdfast/profiles of the project",
    value: "NAME",
    excludes: ["agent", "continue"],
  },
  worktree: {
    help: "for agent files and external agents: work in a git worktree of its own (`holdfast diff ID`, `holdfast merge ID`)",
    excludes: ["agent", "continue"],
  },
  sandbox: {
    help: "for agent files and external agents: the sandbox that it works in (`holdfast doctor` lists them)",
    value: "NAME",
    excludes: ["agent", "continue"],
  },
  conversation: {
    help: "for agent files and external agents: after its answer the session waits for the next request, and the command prints the session's id and ends",
    excludes: ["agent", "continue", "ephemeral"],
  },
};

/** The options of this call that count before the fields of an agent file. */
export function overridesOf(args: Arguments): Partial<Pick<AgentRecord, "workspace" | "sandbox">> {
  const sandbox = args.text("sandbox");
  return {
    ...(args.has("worktree") ? { workspace: "worktree" } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
  };
}

/** The options of this call that are fields of the input of an external agent. */
export function externalOptions(args: Arguments): Readonly<Record<string, unknown>> {
  return {
    ...(args.has("conversation") ? { conversation: true } : {}),
    ...(args.has("sandbox") ? { sandbox: args.text("sandbox") } : {}),
    ...(args.has("worktree") ? { worktree: true } : {}),
    ...(args.has("resume-at-reset") ? { resumeAtReset: true } : {}),
    ...(args.has("profile") ? { profile: args.text("profile") } : {}),
  };
}

interface Starting {
  readonly agent: string;
  readonly isExternal: boolean;
  /** The agent file. */
  readonly record: AgentRecord | undefined;
}

/** The input of a session with the options of this call. @throws UsageError for an option that the agent does not have. */
export function inputOf(plain: unknown, args: Arguments, { agent, isExternal, record }: Starting): unknown {
  if (isExternal) return withOptions(plain, externalOptions(args));
  if (args.has("profile")) refuseProfile(agent);
  if (!args.has("conversation") || record?.isConversation === true) return plain;
  if (record !== undefined && record.inputSchema === null) return withOptions(plain, { conversation: true });
  throw new UsageError(
    record === undefined
      ? `--conversation is for agent files and external agents, and "${agent}" is code`
      : `agent "${agent}" takes another input than a text, and so no next request`,
    {
      at: "--conversation",
      expected: "an agent file without an input schema, or an external agent",
      fix:
        record === undefined
          ? "leave it out; an agent of code waits itself: ctx.waitForSignal(…)"
          : "leave it out, or set `holdfast.conversation` in the agent file",
    },
  );
}

/** A session that exists keeps the choices of its start. Without a text there is nothing that they are compared with. */
export function refuseForFound(args: Arguments, sessionId: string): void {
  const given = Object.keys(START_OPTIONS).filter((name) => args.has(name));
  if (given.length === 0) return;
  const names = given.map((name) => `--${name}`).join(" and ");
  throw new UsageError(`session ${sessionId} exists already, and keeps the choices of its start`, {
    at: names,
    expected: "these options at the start of a session alone",
    fix: `leave ${names} out, or start another session`,
  });
}

export function refuseProfile(agent: string): never {
  throw new UsageError(`--profile is for external agents, and "${agent}" is none`, {
    at: "--profile",
    expected: "an external agent, such as claude-code or codex",
    fix: "give the fields of the profile in the agent file",
  });
}

export function refuseWorktree(agent: string): never {
  throw new UsageError(`--worktree is for agent files and external agents, and "${agent}" is code`, {
    at: "--worktree",
    expected: "an agent file, or an external agent such as claude-code",
    fix: "leave it out; an agent of code chooses its folders itself",
  });
}

/** The profile that an input for an external agent names. */
export function profileIn(input: unknown): string | undefined {
  const { profile } = fieldsOf(input);
  return typeof profile === "string" ? profile : undefined;
}

/** The workspace that an input for an external agent asks for. */
export function askedWorkspace(input: unknown): unknown {
  const { workspace, worktree } = fieldsOf(input);
  return workspace ?? (worktree === true ? "worktree" : "shared");
}

function fieldsOf(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>) : {};
}

/** The input with these fields. A text becomes the field `text`. */
export function withOptions(input: unknown, options: Readonly<Record<string, unknown>>): unknown {
  if (Object.keys(options).length === 0) return input;
  if (typeof input === "string") return { text: input, ...options };
  return typeof input === "object" && input !== null ? { ...input, ...options } : input;
}
