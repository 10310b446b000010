// `planStart`: what a command starts, and where that runs. It is pure: it reads and writes nothing. It takes
// facts that others have read, and `start` carries the plan out.
//
//   it has ended                                   nowhere: its end is shown
//   it exists, and the local stack runs its agent  in the stack, and this process follows
//   only the name of its agent is known            at the coordinator, and this process follows
//   it is new, and the stack has loaded its agent  in the stack, and this process follows
//   otherwise                                      in this process, over a database or in memory
//
// The stack works in the folder of its start. An agent that works where it is called is left to the stack in
// that folder alone.

import { defined, isEnded, UsageError, type Session } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import { agentSourceText } from "@holdfast/machine/agent-source";
import { checkBounds, type StartOptions } from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { readLabels } from "@holdfast/terminal/frame/labels";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { URL_DEFAULT, type CoordinatorAccess } from "@holdfast/place/coordinator-access";
import type { Database, StackDatabase } from "@holdfast/place/project";
import { readLimits } from "@holdfast/terminal/view/budget-text";
import type { LoadedAgent } from "../load-agent.ts";
import { refuseStart, resumesInStack, type RefusalFacts } from "./start-refusals.ts";

/** The facts that are read before a start is planned. */
export interface StartFacts extends Omit<RefusalFacts, "args" | "isOfStack"> {
  readonly wish: StartWish;
  /** Absent where the call has only the name of the agent (`--agent`). */
  readonly loaded: LoadedAgent | undefined;
  /** The input as the call gives it. */
  readonly input: unknown;
  /** The id of a new session: one that the user chose, or a new one. */
  readonly sessionId: string;
  /** The folder of the call. */
  readonly cwd: string;
  /** The place of the session; absent for one that lives in memory. */
  readonly database: Database | undefined;
  readonly found: Session | null;
  /** A session that nothing bounds is refused. */
  readonly isStrict: boolean;
  /** The session whose conversation the new one goes on with (`fork --agent`). */
  readonly continues?: string;
}

/** A start, apart from its place. */
export interface SessionStart {
  /** The source of the agent, as the session stores it. */
  readonly file?: string;
  readonly input: unknown;
  readonly sessionId: string;
  readonly options: StartWish;
}

/** The wishes that a caller may have for a session, whatever its agent. */
export interface StartWish extends Pick<
  StartOptions,
  "title" | "budget" | "timeoutMs" | "environment" | "traceparent"
> {
  readonly persistence?: "full" | "minimal";
  /** Labels that its runner must have. */
  readonly demands?: Readonly<Record<string, string>>;
}

export type StartPlace =
  | { readonly type: "ended"; readonly session: Session }
  | { readonly type: "followed"; readonly database: Database }
  | { readonly type: "runners"; readonly name: string; readonly database: RunnersDatabase }
  | { readonly type: "here"; readonly loaded: LoadedAgent; readonly database: Database | undefined };

type RunnersDatabase = Database & { readonly coordinator: CoordinatorAccess };

export interface StartPlan {
  readonly start: SessionStart;
  readonly place: StartPlace;
  readonly loaded: LoadedAgent | undefined;
  readonly found: Session | null;
  readonly hasInput: boolean;
  /** The folder that the session works in; a continued one has its worktree already. */
  readonly folder: "worktree" | "shared" | "own";
  readonly continues: string | undefined;
  /** Why the local stack, which runs, does not run the session. */
  readonly missedByStack: string | undefined;
}

/** The wishes that options say. @throws UsageError */
export function wishOf(args: Arguments, env: Io["env"]): StartWish {
  const persistence = args.text("persistence");
  if (persistence !== undefined && persistence !== "full" && persistence !== "minimal")
    throw refuse("--persistence is neither full nor minimal", args.usage, {
      got: persistence,
      fix: "use --ephemeral for a session that need not survive its process",
    });
  const demands = readLabels(args, "demand");
  // The calling process passes its trace in the environment, as it does to other commands.
  const traceparent = env["TRACEPARENT"];
  const isTrace = traceparent !== undefined && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent);
  return {
    ...defined({ title: args.text("title") }),
    ...readLimits(args),
    ...(persistence === undefined ? {} : { persistence }),
    ...(Object.keys(demands).length === 0 ? {} : { demands }),
    ...(isTrace ? { traceparent } : {}),
  };
}

/** @throws UsageError for a combination that is refused, and for limits that are missing or wrong. */
export function planStart(args: Arguments, facts: StartFacts): StartPlan {
  const { loaded, found, isStrict, text, continues } = facts;
  const place = placeOf(args, facts);
  const isOfStack = place.type === "runners" && loaded !== undefined;
  const refusalFacts = { ...facts, args, isOfStack };
  refuseStart(refusalFacts);
  const asked = inputOf(facts.input, args, facts);
  const input =
    isOfStack && resumesInStack(refusalFacts) ? withFields(asked, { resumeAtReset: true }) : asked;
  const planned = startOf(loaded, input, found?.sessionId ?? facts.sessionId, facts.wish);
  // The form of an agent is known where it runs: there a bound is asked of any.
  const bounded =
    place.type === "runners" ? { name: place.name, turns: true, limitsTurns: false } : loaded?.agent;
  if (isStrict && found === null && bounded !== undefined) checkBounds(bounded, planned.options, true);
  return {
    start: planned,
    place,
    loaded,
    found,
    hasInput: text !== undefined || args.has("input") || continues !== undefined,
    folder: folderOf(loaded, input),
    continues,
    missedByStack:
      place.type === "here" && found === null ? missedBy(stackOf(args, facts), facts) : undefined,
  };
}

/** A start of an agent, with the limits of its file. The limits of a caller go before. */
export function startOf(
  loaded: Pick<LoadedAgent, "source" | "record"> | undefined,
  input: unknown,
  sessionId: string,
  wish: StartWish,
): SessionStart {
  const file = loaded === undefined ? {} : { file: agentSourceText(loaded.source) };
  return { ...file, input, sessionId, options: { ...limitsOf(loaded?.record, input), ...wish } };
}

/** Whether the local stack runs this session already. A paused session is resumed by the process that asks for it. */
export function isRunByStack({ status, agent }: Session, database: Database | undefined): boolean {
  const isOfStack = database !== undefined && "agents" in database;
  if (!isOfStack || isEnded(status) || status === "paused") return false;
  return (database as StackDatabase).agents.includes(agent.name);
}

/** @returns why this stack does not run a new session of the call; `undefined` where it does, or where there is none. */
function missedBy(
  stack: StackDatabase | undefined,
  { loaded, cwd }: Pick<StartFacts, "loaded" | "cwd">,
): string | undefined {
  if (stack === undefined || loaded === undefined) return undefined;
  const { agent, source } = loaded;
  if (!stack.sources.includes(agentSourceText(source)) || !stack.agents.includes(agent.name))
    return "the local stack has not loaded this agent";
  // A file of code chooses its own folders.
  if (source.kind === "code" || stack.project === cwd) return undefined;
  return `the local stack works in ${plainLine(stack.project, 200)} and not here`;
}

/** The limits of an agent file, for a start of its agent. */
export function limitsOf(
  record: Pick<AgentRecord, "budget" | "ttlMs" | "isConversation"> | undefined,
  input: unknown,
): Pick<StartWish, "budget" | "timeoutMs"> {
  if (record === undefined) return {};
  const { budget, ttlMs } = record;
  // A conversation waits this long for its next request.
  const isConversation = record.isConversation || fieldsOf(input)["conversation"] === true;
  return {
    ...(budget === null ? {} : { budget }),
    ...(ttlMs === null || isConversation ? {} : { timeoutMs: ttlMs }),
  };
}

/** The profile that an input for an external agent names. */
export function profileIn(input: unknown): string | undefined {
  const profile = fieldsOf(input)["profile"];
  return typeof profile === "string" ? profile : undefined;
}

/** The input of the session, with the options of the call that are fields of it. */
function inputOf(
  plain: unknown,
  args: Arguments,
  { loaded, command }: Pick<StartFacts, "loaded" | "command">,
): unknown {
  if (loaded === undefined) return plain;
  const conversation = command === "chat" || args.has("conversation") ? { conversation: true } : {};
  if (loaded.source.kind !== "program")
    return loaded.record?.isConversation === true ? plain : withFields(plain, conversation);
  return withFields(plain, {
    ...conversation,
    ...(args.has("sandbox") ? { sandbox: args.text("sandbox") } : {}),
    ...(args.has("worktree") ? { worktree: true } : {}),
    ...(args.has("resume-at-reset") ? { resumeAtReset: true } : {}),
    ...(args.has("profile") ? { profile: args.text("profile") } : {}),
  });
}

function placeOf(args: Arguments, facts: StartFacts): StartPlace {
  const { loaded, found, database } = facts;
  if (loaded === undefined) {
    const name = args.text("agent") ?? "";
    return { type: "runners", name, database: withRunners(database?.stack ?? database) };
  }
  if (found !== null && isEnded(found.status)) return { type: "ended", session: found };
  if (found !== null && database !== undefined && isRunByStack(found, database))
    return { type: "followed", database };
  const stack = found === null ? stackOf(args, facts) : undefined;
  if (stack !== undefined && missedBy(stack, facts) === undefined)
    return { type: "runners", name: loaded.agent.name, database: stack };
  return { type: "here", loaded, database };
}

/** The local stack, if it may run a new session of this call. */
function stackOf(
  args: Arguments,
  { command, database }: Pick<StartFacts, "command" | "database">,
): StackDatabase | undefined {
  // A chat steers what streams in this process, and a hand-over stays where its conversation is.
  const isHere = command === "chat" || command === "fork";
  // Only this process can honour these options.
  return isHere || ["local", "ephemeral", "trace", "scripted", "replies"].some((option) => args.has(option))
    ? undefined
    : database?.stack;
}

function withRunners(database: Database | undefined): RunnersDatabase {
  const coordinator = database?.coordinator;
  if (database !== undefined && coordinator !== undefined) return { ...database, coordinator };
  throw new UsageError("no coordinator is named for the agent's runners", {
    expected: "--url URL, or HOLDFAST_URL",
    fix: `name the coordinator (--url ${URL_DEFAULT} is the default of one on this machine), or start the local stack`,
  });
}

function folderOf(loaded: LoadedAgent | undefined, input: unknown): StartPlan["folder"] {
  const asked = fieldsOf(input);
  const ofProgram = asked["workspace"] ?? (asked["worktree"] === true ? "worktree" : "shared");
  const folder = loaded?.source.kind === "program" ? ofProgram : (loaded?.record?.workspace ?? "shared");
  return folder === "worktree" || folder === "shared" ? folder : "own";
}

/** The input with these fields. A text becomes the field `text`. */
function withFields(input: unknown, fields: Readonly<Record<string, unknown>>): unknown {
  if (Object.keys(fields).length === 0) return input;
  if (typeof input === "string") return { text: input, ...fields };
  return typeof input === "object" && input !== null ? { ...input, ...fields } : input;
}

function fieldsOf(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>) : {};
}
