// `refuseStart`: the combinations that a command refuses to start, each with its text. They combine the
// options of a call with its agent, the session that it continues, and the place where the session would run.

import { UsageError, type Session } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import type { AgentSource } from "@holdfast/machine/agent-source";
import type { Agent } from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";

/** The facts of a call, as far as they are known. A fact that is not known yet refuses nothing. */
export interface RefusalFacts {
  readonly command: "run" | "chat" | "fork" | "schedule";
  readonly args: Pick<Arguments, "has" | "usage">;
  /** For the advice of `chat`: the command that runs its agent without a conversation. */
  readonly insteadOfChat?: string;
  /** The input as a text of the command line. */
  readonly text?: string | undefined;
  readonly loaded?:
    | {
        readonly agent: Pick<Agent, "name" | "input">;
        readonly source: AgentSource;
        /** The agent file. */
        readonly record?: Pick<AgentRecord, "inputSchema" | "isConversation"> | undefined;
      }
    | undefined;
  /** The session that exists already; `null` where none does. */
  readonly found?: Pick<Session, "sessionId"> | null;
  /** Whether the local stack would start the session. */
  readonly isOfStack?: boolean;
}

/** The options that choose something for the whole life of a session. */
const AT_START = ["resume-at-reset", "profile", "worktree", "sandbox", "conversation"];
/** The options of `fork` for the agent that goes on. */
const OF_HAND_OVER = ["worktree", "profile", "budget", "ttl"];

/** In the order in which the facts become known. */
const REFUSALS: readonly ((facts: RefusalFacts) => UsageError | undefined)[] = [
  ({ command, args }) => {
    const given = OF_HAND_OVER.filter((name) => args.has(name)).map((name) => `--${name}`);
    return command === "fork" && !args.has("agent") && given.length > 0
      ? refuse(`${given.join(" and ")}: for a hand-over to another agent`, args.usage, {
          fix: "name the agent with --agent; a fork keeps the agent and the workspace of its session",
        })
      : undefined;
  },
  ({ args }) =>
    args.has("demand") && !args.has("agent")
      ? refuse("--demand is for sessions that runners run", args.usage, {
          fix: "give --agent NAME in place of the file; this process ignores demands for the sessions that it runs",
        })
      : undefined,
  ({ args, text }) =>
    text !== undefined && args.has("input")
      ? refuse("a text and --input exclude each other", args.usage, {
          got: quoted(text),
          fix: "give one of them",
        })
      : undefined,
  ({ args, loaded }) =>
    args.has("profile") && loaded !== undefined && loaded.source.kind !== "program"
      ? new UsageError(`--profile is for external agents, and "${loaded.agent.name}" is none`, {
          at: "--profile",
          expected: "an external agent, such as claude-code or codex",
          fix: "give the fields of the profile in the agent file",
        })
      : undefined,
  ({ args, loaded }) =>
    loaded !== undefined && loaded.record === undefined && (args.has("scripted") || args.has("replies"))
      ? refuse(
          `--scripted and --replies are for agent files, and "${loaded.agent.name}" is ${loaded.source.kind === "program" ? "an external agent" : "code"}`,
          args.usage,
          { fix: "leave the option out, or name an agent file" },
        )
      : undefined,
  (facts) => (facts.command === "chat" ? refusalOfChat(facts) : undefined),
  (facts) => (facts.args.has("conversation") ? refusalOfConversation(facts) : undefined),
  ({ args, text, loaded }) =>
    text !== undefined && loaded?.source.kind === "code" && loaded.agent.input === undefined
      ? refuse(`"${text}" is one argument too many`, args.usage, {
          got: `a text for agent "${loaded.agent.name}", which has no input schema`,
          fix: "give the input by --input",
        })
      : undefined,
  ({ args, text, found }) => {
    // Without an input there is nothing that the choices are compared with.
    const isCompared = text !== undefined || args.has("input");
    const names = AT_START.filter((name) => args.has(name)).map((name) => `--${name}`);
    if (found === undefined || found === null || isCompared || names.length === 0) return undefined;
    const given = names.join(" and ");
    return new UsageError(`session ${found.sessionId} exists already, and keeps the choices of its start`, {
      at: given,
      expected: "these options at the start of a session alone",
      fix: `leave ${given} out, or start another session`,
    });
  },
  (facts) =>
    facts.found !== undefined && facts.loaded !== undefined && optionsOfFiles(facts) !== ""
      ? refusalOfFileOptions(facts)
      : undefined,
  (facts) => {
    const options = ownOptionsOfFiles(facts).join(" and ");
    return facts.isOfStack === true && options !== "" && !resumesInStack(facts)
      ? refuse(
          `the local stack would run this session, and does not get ${options} of this call`,
          facts.args.usage,
          { fix: "give --local, or set the fields of the agent file" },
        )
      : undefined;
  },
];

/** @throws UsageError for the first combination that is refused. */
export function refuseStart(facts: RefusalFacts): void {
  for (const refusalOf of REFUSALS) {
    const refusal = refusalOf(facts);
    if (refusal !== undefined) throw refusal;
  }
}

/** Whether the stack gets `--resume-at-reset` as a field of the input, which an input schema may not know. */
export function resumesInStack(facts: RefusalFacts): boolean {
  return (
    ownOptionsOfFiles(facts).join() === "--resume-at-reset" && facts.loaded?.record?.inputSchema === null
  );
}

/** The names of options that say something about an agent file. */
function optionsOfFiles(facts: RefusalFacts): string {
  const { args } = facts;
  const variables = args.has("env") || args.has("env-ref") ? ["--env", "--env-ref"] : [];
  return [...variables, ...ownOptionsOfFiles(facts)].join(" and ");
}

/** Only the process that loads the file can honour these. The variables of a start are stored with it. */
function ownOptionsOfFiles({ args, loaded }: RefusalFacts): readonly string[] {
  if (loaded?.source.kind === "program") return [];
  return ["resume-at-reset", "worktree", "sandbox"]
    .filter((name) => args.has(name))
    .map((name) => `--${name}`);
}

function refusalOfFileOptions(facts: RefusalFacts): UsageError | undefined {
  const { args, loaded, found } = facts;
  const { usage } = args;
  const options = optionsOfFiles(facts);
  if (loaded?.source.kind === "program")
    return refuse(`${options}: for agent files, and this is an external agent`, usage, {
      fix: "name the variables of your environment that its program gets in a profile (`variables`, `keys`), and give --profile",
    });
  if (loaded?.record === undefined)
    return refuse(`${options}: for agent files, and this agent is code`, usage, {
      fix: "leave it out; an agent of code declares `secrets`, and has its own input",
    });
  if (found === null) return undefined;
  return refuse("the session exists already, and keeps the variables and the agent of its start", usage, {
    fix: `leave ${options} out, or start another session`,
  });
}

/** A chat needs an agent that takes a text and waits for the next one. */
function refusalOfChat({ args, loaded, found, insteadOfChat = "" }: RefusalFacts): UsageError | undefined {
  const at = AT_START.filter((name) => args.has(name)).map((name) => `--${name}`);
  if (found !== undefined && found !== null && at.length > 0)
    return new UsageError("the conversation exists already, and keeps the agent of its start", {
      at: at.join(", "),
      expected: "a new conversation",
      fix: `leave ${at.join(", ")} out, or start another conversation`,
    });
  if (loaded?.source.kind === "code")
    return new UsageError(`"${loaded.agent.name}" is an agent of code, and a chat needs an agent file`, {
      at: loaded.source.path,
      expected: "an agent file; `holdfast agents list` shows all",
      fix: `run it: ${insteadOfChat}`,
    });
  if (
    loaded?.source.kind === "file" &&
    loaded.record?.isConversation === false &&
    loaded.record.inputSchema !== null
  )
    return new UsageError(`agent "${loaded.agent.name}" takes another input than a text`, {
      at: loaded.source.path,
      expected: "an agent without an input schema",
      fix: `run it with its input: ${insteadOfChat} --input '{…}'`,
    });
  return undefined;
}

function refusalOfConversation({ loaded }: RefusalFacts): UsageError | undefined {
  if (loaded === undefined || loaded.source.kind === "program") return undefined;
  const { agent, record } = loaded;
  if (record?.isConversation === true || record?.inputSchema === null) return undefined;
  const at = "--conversation";
  const expected = "an agent file without an input schema, or an external agent";
  return record === undefined
    ? new UsageError(`--conversation is for agent files and external agents, and "${agent.name}" is code`, {
        at,
        expected,
        fix: "leave it out; an agent of code waits itself: ctx.waitForSignal(…)",
      })
    : new UsageError(`agent "${agent.name}" takes another input than a text, and so no next request`, {
        at,
        expected,
        fix: "leave it out, or set `holdfast.conversation` in the agent file",
      });
}
