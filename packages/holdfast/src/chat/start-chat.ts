// `startChat`: a conversation with an agent file, begun or continued, in this process.

import {
  ConflictError,
  HoldfastError,
  isEnded,
  mintId,
  NotFoundError,
  UsageError,
  validate,
  type Session,
} from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import type { Agent, StartOptions } from "@holdfast/runtime";
import { graceOf } from "../frame/arguments.ts";
import type { Arguments, Io } from "../frame/command.ts";
import { quoted } from "../frame/plain-text.ts";
import { randomU32 } from "../frame/random.ts";
import { placeOfExact, findSession, withReader } from "../place/find-session.ts";
import { findDatabase, type Database } from "../place/project.ts";
import { drive, type DriveOptions } from "../run/drive/drive.ts";
import { agentSourceText } from "@holdfast/machine/agent-source";
import { noteSharedFolder } from "../agents/workspaces/shared-folder.ts";
import { noteUncommitted } from "../agents/workspaces/uncommitted-work.ts";
import { loadAgent } from "../run/load-agent.ts";
import { externalOptions, overridesOf, refuseProfile } from "../run/loading/external-input.ts";
import { loadedAgentOf } from "../run/recorded-agent.ts";
import { noteIsolation } from "../agents/workspaces/isolation-note.ts";
import { secretsFor } from "../secrets/agent-secrets.ts";
import { ChatTalk } from "./chat-talk.ts";

export interface Chat {
  /** The name of an agent file, or its path; `undefined` to continue a session. */
  readonly path: string | undefined;
  /** The first message. */
  readonly text: string | undefined;
  readonly wanted: string | undefined;
  readonly limits: Pick<StartOptions, "budget">;
}

/** @returns the exit code. */
export async function startChat(chat: Chat, args: Arguments, io: Io): Promise<number> {
  const { path, text, wanted } = chat;
  const grace = graceOf(args);
  const given = findDatabase(args, io);
  const database = wanted === undefined ? given : await placeOfExact(given, wanted);
  const found = wanted === undefined ? undefined : await sessionOf(wanted, database, path === undefined);
  const chosen = AT_START.filter((option) => args.has(option)).map((option) => `--${option}`);
  if (found !== undefined) {
    if (chosen.length > 0) throw refuseAtStart(chosen);
    return continueChat(found, database, chat, args, io);
  }
  const inWorktree = args.has("worktree");
  const { agent, source, record } = await loadAgent(path ?? "", {
    cwd: io.cwd,
    env: io.env,
    resumesAtReset: args.has("resume-at-reset"),
    overrides: overridesOf(args),
    profile: args.text("profile"),
  });
  if (record !== undefined) noteIsolation(record, io);
  const file = agentSourceText(source);
  const isExternal = source.kind === "program";
  if (args.has("profile") && !isExternal) refuseProfile(agent.name);
  if (record === undefined && !isExternal)
    throw new UsageError(`"${agent.name}" is an agent of code, and a chat needs an agent file`, {
      at: file,
      expected: "an agent file; `holdfast agents list` shows all",
      fix: `run it: ${io.call(`run ${quoted(path ?? "")}`)}`,
    });
  if (record?.isConversation === false && record.inputSchema !== null)
    throw new UsageError(`agent "${agent.name}" takes another input than a text`, {
      at: file,
      expected: "an agent without an input schema",
      fix: `run it with its input: ${io.call(`run ${quoted(path ?? "")} --input '{…}'`)}`,
    });
  const sessionId = wanted ?? mintId("ses", Date.now(), randomU32);
  const inputOf = (said: string): unknown =>
    record?.isConversation === true
      ? said
      : { text: said, conversation: true, ...(isExternal ? externalOptions(args) : {}) };
  if (text !== undefined) await checkText(agent, inputOf(text));
  const secrets = await secretsFor({ agents: [agent] }, args, io);
  const talk = new ChatTalk(io, sessionId, text === undefined ? undefined : []);
  const said = text ?? (await talk.first());
  if (said === undefined) {
    await talk.close();
    return 0;
  }
  const input = inputOf(said);
  if (isExternal ? inWorktree : record?.workspace === "worktree") await noteUncommitted(io);
  else await noteSharedFolder({ sessionId, agent, source, record, place: database }, io);
  const limits = { ...(record === undefined ? {} : budgetOf(record)), ...chat.limits };
  return drive(
    {
      agent,
      sessionId,
      database,
      begin: async (runtime) => {
        const handle = await runtime.start(agent, input, { sessionId, file, ...limits });
        return handle.created ? handle : runtime.resume(sessionId);
      },
      isBudgeted: limits.budget !== undefined,
      runtime: { secrets },
      ...grace,
      ...common(talk),
    },
    io,
  );
}

/** Options that only a new conversation has. */
const AT_START = ["resume-at-reset", "worktree", "profile", "sandbox"] as const;

function refuseAtStart(chosen: readonly string[]): UsageError {
  return new UsageError("the conversation exists already, and keeps the agent of its start", {
    at: chosen.join(", "),
    expected: "a new conversation",
    fix: `leave ${chosen.join(", ")} out, or start another conversation`,
  });
}

async function continueChat(
  session: Session,
  database: Database,
  { path, text }: Chat,
  args: Arguments,
  io: Io,
): Promise<number> {
  const { sessionId, status, agent: ref } = session;
  if (isEnded(status))
    throw new ConflictError("session_ended", `session ${sessionId} has ended (${status})`, {
      fix: `look at it: ${io.call(`logs ${sessionId}`)}, or start another conversation`,
    });
  if (path !== undefined) await checkName(path, session, io);
  const isElsewhere = database.coordinator !== undefined && ref.file === undefined;
  const loaded = isElsewhere ? undefined : await loadedAgentOf(session, database, args, io);
  const agent = loaded?.agent;
  if (loaded !== undefined)
    await noteSharedFolder({ record: undefined, ...loaded, sessionId, place: database }, io);
  const secrets = agent === undefined ? undefined : await secretsFor({ agents: [agent] }, args, io);
  await showRecent(session, database, io);
  const talk = new ChatTalk(io, sessionId, text === undefined ? [] : [text]);
  return drive(
    {
      agent,
      sessionId,
      database,
      begin: (runtime) => (agent === undefined ? Promise.resolve(undefined) : runtime.resume(sessionId)),
      ...(secrets === undefined ? {} : { runtime: { secrets } }),
      ...graceOf(args),
      ...common(talk),
    },
    io,
  );
}

const common = (chat: ChatTalk): Pick<DriveOptions, "tracer" | "parks" | "readsStdin" | "chat"> => ({
  tracer: undefined,
  parks: false,
  readsStdin: false,
  chat,
});

async function sessionOf(
  wanted: string,
  database: Database,
  mustExist: boolean,
): Promise<Session | undefined> {
  return withReader(database, async (reader) => {
    if (reader === undefined && mustExist)
      throw new NotFoundError("session_not_found", `there is no session ${quoted(wanted)}`, {
        at: database.path,
        fix: "run `holdfast list` to see all sessions",
      });
    if (reader === undefined) return undefined;
    return mustExist ? findSession(reader, wanted) : reader.session(wanted);
  });
}

async function checkName(path: string, { sessionId, agent }: Session, io: Io): Promise<void> {
  const { agent: loaded } = await loadAgent(path, { cwd: io.cwd, env: io.env });
  if (loaded.name === agent.name) return;
  throw new ConflictError("session_exists", `session ${sessionId} belongs to another agent`, {
    got: `agent "${loaded.name}"`,
    expected: `agent "${agent.name}"`,
    fix: `continue it: ${io.call(`chat --session ${sessionId}`)}, or choose another id`,
  });
}

async function checkText(agent: Agent, input: unknown): Promise<void> {
  try {
    await validate(agent.input, input, `input of agent "${agent.name}"`, "invalid_input");
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    throw new UsageError("the message is empty", { expected: "a text", cause: error });
  }
}

function budgetOf({ budget }: AgentRecord): Pick<StartOptions, "budget"> {
  return budget === null ? {} : { budget };
}

const RECENT = 6;

/** The end of the conversation so far. */
async function showRecent({ sessionId, entryCount }: Session, database: Database, io: Io): Promise<void> {
  if (io.isJson) return;
  const { entryText, roleText } = await import("../view/event-line.ts");
  const { decodeJson } = await import("@holdfast/core");
  await withReader(database, async (reader) => {
    const entries = (await reader?.entries(sessionId, Math.max(0, entryCount - RECENT), RECENT)) ?? [];
    for (const { role, content } of entries) {
      const value = decodeJson(content);
      const said = entryText(role, value);
      if (said !== "")
        io.note(io.notes.paint.dim(`${role === "user" ? "you" : roleText(role, value)}: ${said}`));
    }
  });
}
